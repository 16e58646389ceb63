package dispatcher

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/store/memory"
)

// The random conversation found what these hold still: two moments between the outbox and the reading goroutine that no client can choose.

// pausing is a store that lets a test do something right before the log is read from its beginning.
type pausing struct {
	session.Store
	before atomic.Pointer[func()] // sessions look for what is new on goroutines of their own
}

func (p *pausing) Read(ctx context.Context, id session.SessionID, after session.Seq, limit int, v protocol.View) ([]session.Entry, error) {
	if after == 0 {
		if f := p.before.Swap(nil); f != nil {
			(*f)()
		}
	}
	return p.Store.Read(ctx, id, after, limit, v)
}

type only struct{ m session.Model }

func (o only) Default() session.Selection {
	return session.Selection{Provider: "p", Model: "m", Mode: "ask"}
}

func (o only) Select(context.Context, session.Selection) (session.Selected, error) {
	return session.Selected{Model: o.m}, nil
}
func (only) List(context.Context, bool) ([]session.ModelInfo, string, error) { return nil, "", nil }

// stored is a session of one finished turn, opened anew over a pausing store: nothing of it is in memory.
func stored(t *testing.T) (*session.Sessions, *session.Session, *pausing) {
	t.Helper()
	back := memory.NewBacking()
	models := only{script.Must(`[{"text": "one"}, {"call": {"id": "c", "name": "none", "arguments": {}}}, {"finish": "tool_calls"}, {"text": "two"}]`)}
	loop, err := session.NewLoop(session.Loop{Models: models})
	if err != nil {
		t.Fatal(err)
	}
	open := func(store session.Store) *session.Sessions {
		return session.NewSessions(session.Config{Store: store, Agent: loop, Models: models, IDs: protocol.RandomIDs{}})
	}
	first := back.Open("first")
	all := open(first)
	s, err := all.Draft(t.Context(), session.DraftOptions{Workspace: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	s.Prompt(session.PromptRequest{Input: "go"}, func(_ session.Outcome, err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := all.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	store := &pausing{Store: back.Open("second")}
	all = open(store)
	t.Cleanup(func() {
		_ = all.Shutdown(context.Background())
		_ = store.Close()
	})
	again, err := all.Open(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	return all, again, store
}

var cursorOf = regexp.MustCompile(`"cursor":([0-9]+)`)

func cursorsOf(buf []byte) []int {
	var out []int
	for _, g := range cursorOf.FindAllSubmatch(buf, -1) {
		n, _ := strconv.Atoi(string(g[1]))
		out = append(out, n)
	}
	return out
}

func TestNothingBehindASnapshotTakenWhileTheLogIsReadIsToldBeforeIt(t *testing.T) {
	all, s, store := stored(t)
	c := newConn(New(Config{Sessions: all}), strings.NewReader(""), io.Discard)
	c.env = rindv2.Rind
	o := c.out
	o.add(newFollow(s, nil, 0))
	const place = 7
	var h *hold
	pause := func() { h = o.hold(&hold{session: s.ID, seq: place, exact: true, id: "1"}) }
	store.before.Store(&pause)
	buf, more, err := o.page(nil, s.ID)
	if err != nil || h == nil {
		t.Fatalf("the log was not read: %v", err)
	}
	early := cursorsOf(buf)
	if len(early) == 0 || slices.Max(early) > place {
		t.Errorf("told before a snapshot at %d: %v", place, early)
	}
	if more {
		if rest, _, _ := o.page(nil, s.ID); len(rest) > 0 {
			t.Errorf("told before the answer: %s", rest)
		}
	}
	o.ready(h, func(last int64) protocol.Reply { return protocol.Reply{ID: []byte("1"), Result: last} })
	lines := 0
	for buf, again := buf, true; again; lines += bytes.Count(buf, []byte("\n")) {
		var err error
		if buf, again, _, err = o.fill(nil); err != nil {
			t.Fatal(err)
		}
		for _, n := range cursorsOf(buf) {
			if n <= place {
				t.Errorf("told after the snapshot at %d: %d", place, n)
			}
		}
	}
	if lines < 3 {
		t.Errorf("only %d lines followed", lines)
	}
	o.remove(s.ID)
}

func TestTheLastAnswerIsNotWrittenBeforeItIsKnown(t *testing.T) {
	c := newConn(New(Config{}), strings.NewReader(""), io.Discard)
	h := c.out.hold(&hold{last: true, id: "1"})
	if buf, last := c.out.answers(nil, true); len(buf) > 0 || last {
		t.Fatalf("written: %q", buf)
	}
	c.out.ready(h, func(int64) protocol.Reply { return protocol.Reply{ID: []byte("1"), Result: okResult} })
	other := c.out.hold(&hold{id: "2"})
	if _, last := c.out.answers(nil, true); last {
		t.Fatal("written ahead of another answer")
	}
	c.out.ready(other, func(int64) protocol.Reply { return protocol.Reply{ID: []byte("2"), Result: okResult} })
	var buf []byte
	last := false
	for range 2 {
		if buf, last = c.out.answers(buf, true); last {
			break
		}
	}
	if want := `{"kind":"response","request_id":2,"result":{"ok":true}}` + "\n" + `{"kind":"response","request_id":1,"result":{"ok":true}}` + "\n"; !last || string(buf) != want {
		t.Errorf("last %v, written:\n%s", last, buf)
	}
}
