package sqlite_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/storetest"
)

// TestNoStatementIsPreparedAnew: SQLite plans some statements again whenever they are given other values, which costs more than most of them do.
func TestNoStatementIsPreparedAnew(t *testing.T) {
	s := open(t, filled(t))
	ctx := t.Context()
	l := storetest.Create(t, s, "s")
	turn := session.TurnID("0123456789abcdef0123456789abcdef")
	for i := session.Seq(1); i <= 9; i++ {
		e := storetest.Entry(i, turn, &protocol.AssistantDelta{Text: "t"})
		if i == 1 {
			e = storetest.Entry(i, turn, &protocol.TurnAccepted{})
		}
		e.PortableFirst, e.PortableCount = int64(i), 1
		b := session.Batch{Entries: []session.Entry{e}, Row: &session.Row{Title: "t", Fold: []byte{byte(i)}, FoldSeq: i}, Release: i%2 == 1, Retake: i%2 == 0}
		if err := storetest.Append(s, l, b); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		must := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		for v := range protocol.ViewTasks + 1 {
			must(s.Read(ctx, "s", session.Seq(i), 1+i, v))
			must(s.ReadBack(ctx, "s", session.Seq(9-i), 1+i, v))
		}
		must(s.ReadTurn(ctx, turn, int64(i), 1+i, nil))
		must(s.TurnSession(ctx, turn))
		must(s.Turns(ctx, session.TurnQuery{Limit: 1 + i, Before: int64(100 + i)}))
		must(s.Turns(ctx, session.TurnQuery{Limit: 1 + i, Session: "s"}))
		_, _, err := s.Sessions(ctx, session.Query{Limit: 1 + i, All: true, Workspace: "/w"})
		must(nil, err)
		must(s.Usage(ctx, time.Unix(int64(i), 0)))
		must(s.Open(ctx, "s"))
		must(s.Rules(ctx, "/w"))
		must(s.Session(ctx, "s"))
		must(s.Conversation(ctx, "conv_s"))
		must(s.Health(ctx))
		if _, err := s.Key(ctx, "s", "rind", fmt.Sprint(i)); !errors.Is(err, session.ErrNotFound) {
			t.Fatal(err)
		}
		if _, err := s.Outcome(ctx, int64(i)); !errors.Is(err, session.ErrNotFound) {
			t.Fatal(err)
		}
		_, _, err = s.Fold(ctx, "s")
		must(nil, err)
		must(s.Prune(ctx, time.Unix(int64(i), 0)))
	}
	seen := s.PreparedAnew(ctx)
	for q, n := range seen {
		if n > 1 { // once is for a file that was changed by somebody else
			t.Errorf("%d times: %s", n, q)
		}
	}
	if len(seen) < 20 {
		t.Errorf("%d statements were looked at", len(seen))
	}
}
