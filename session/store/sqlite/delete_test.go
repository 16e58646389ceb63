package sqlite_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/store/storetest"
)

const (
	longTurn  session.TurnID = "00000000000000000000000000000001"
	otherTurn session.TurnID = "00000000000000000000000000000002"
)

// grow makes a session of n entries in a turn of its own and gives it back.
func grow(t *testing.T, s *sqlite.Store, id session.SessionID, turn session.TurnID, n session.Seq) {
	t.Helper()
	if err := s.Create(t.Context(), session.Meta{ID: id, ConversationID: "conv_" + string(id), Workspace: "/w", Created: time.Unix(0, 0)}); err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for at := session.Seq(0); at < n; at += 500 {
		var b session.Batch
		for i := range min(500, n-at) {
			e := storetest.Entry(at+i+1, turn, &protocol.AssistantDelta{Text: "private words of a long conversation"})
			e.PortableFirst, e.PortableCount = int64(at+i+1), 1
			b.Entries = append(b.Entries, e)
		}
		if err := storetest.Append(s, l, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

// unseen asks for everything a deleted session could still be found by.
func unseen(t *testing.T, s *sqlite.Store, id session.SessionID) {
	t.Helper()
	ctx := t.Context()
	_, byID := s.Session(ctx, id)
	_, byConversation := s.Conversation(ctx, "conv_"+string(id))
	_, byTurn := s.TurnSession(ctx, longTurn)
	_, entries := s.Read(ctx, id, 0, 10, protocol.ViewAll)
	_, ofTurn := s.ReadTurn(ctx, longTurn, 0, 10, nil)
	_, lease := s.Acquire(ctx, id)
	for what, err := range map[string]error{
		"session": byID, "conversation": byConversation, "turn": byTurn, "entries": entries, "entries of its turn": ofTurn, "lease": lease,
	} {
		if !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s of a deleted session: %v", what, err)
		}
	}
	all, _, err := s.Sessions(ctx, session.Query{Limit: 10, All: true})
	if err != nil {
		t.Error(err)
	}
	for _, m := range all {
		if m.ID != "other" {
			t.Errorf("%q is listed", m.ID)
		}
	}
}

// TestALongSessionIsDeletedInStepsThatHoldNobodyUp deletes a session of many entries while another process, which must not see
// anything of it any more, appends between the steps.
func TestALongSessionIsDeletedInStepsThatHoldNobodyUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions", "rind.db")
	const entries = 5000
	steps := make(chan struct{})
	hook := func(string) {}
	s, err := sqlite.Open(path, sqlite.Options{Kill: func(point string) { hook(point) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	grow(t, s, "long", longTurn, entries)
	grow(t, other, "other", otherTurn, 1)
	l, err := other.Acquire(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}

	hook = func(point string) {
		if point == "after-commit" { // a moment at which anybody may write
			steps <- struct{}{}
			<-steps
		}
	}
	gone := make(chan error, 1)
	go func() {
		gone <- s.Delete(t.Context(), "long")
		close(steps)
	}()
	seq, n := session.Seq(1), 0
	for range steps {
		n++
		unseen(t, other, "long")
		seq++
		if err := storetest.Append(other, l, fact(seq)); err != nil {
			t.Errorf("append after step %d: %v", n, err)
		}
		steps <- struct{}{}
	}
	if err := <-gone; err != nil {
		t.Fatal(err)
	}
	if n < entries/500 {
		t.Errorf("%d entries were deleted in %d steps", entries, n)
	}
	if h, err := other.Health(t.Context()); err != nil || h.Sessions != 1 || h.Entries != int64(seq) || h.Integrity != "ok" {
		t.Errorf("%+v, %v; want 1 session of %d entries", h, err, seq)
	}
}

// TestADeletionCutOffInTheMiddleIsFinishedByTheNextProcess closes the store between two steps.
func TestADeletionCutOffInTheMiddleIsFinishedByTheNextProcess(t *testing.T) {
	t.Cleanup(sqlite.ShortenWaits(5*time.Second, 10*time.Millisecond))
	path := filepath.Join(t.TempDir(), "sessions", "rind.db")
	commits := -1
	var s *sqlite.Store
	ended := make(chan struct{})
	s, err := sqlite.Open(path, sqlite.Options{Kill: func(point string) {
		if point == "before-ack" && commits >= 0 {
			if commits++; commits == 3 {
				go func() {
					_ = s.Close()
					close(ended)
				}()
				for !errors.Is(probe(t, s), session.ErrClosed) { // until nothing more is taken
				}
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	grow(t, s, "long", longTurn, 5000)
	commits = 0
	if err := s.Delete(t.Context(), "long"); err != nil {
		t.Fatal(err)
	}
	<-ended

	next, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	unseen(t, next, "long")
	if h, err := next.Health(t.Context()); err != nil || h.Sessions != 0 || h.Entries == 0 || h.Entries == 5000 {
		t.Fatalf("not cut off in the middle: %+v, %v", h, err)
	}
	grow(t, next, "other", otherTurn, 1) // it writes, and is idle then
	testkit.Eventually(t, "the rest of the deleted session goes", func() bool {
		h, err := next.Health(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h.Entries == 1
	})
	unseen(t, next, "long")
}

// probe asks a store whether it is closed.
func probe(t *testing.T, s *sqlite.Store) error {
	_, err := s.Session(t.Context(), "none")
	return err
}
