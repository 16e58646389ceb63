package dispatcher

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/store/memory"
)

// The random conversation found what these hold still: two moments between the outbox and the reading goroutine that no client can choose.

// pausing is a store that lets a test do something right before the log is read from its beginning, and pass on the next acknowledgement itself.
type pausing struct {
	session.Store
	before atomic.Pointer[func()] // sessions look for what is new on goroutines of their own
	keep   atomic.Pointer[chan func()]
	faults atomic.Int32 // reads of facts that fail
}

func (p *pausing) Append(l session.Lease, b session.Batch, done func(error)) {
	kept := p.keep.Swap(nil)
	p.Store.Append(l, b, func(err error) {
		if kept != nil {
			*kept <- func() { done(err) }
			return
		}
		done(err)
	})
}

func (p *pausing) Read(ctx context.Context, id session.SessionID, after session.Seq, limit int, v protocol.View) ([]session.Entry, error) {
	if after == 0 {
		if f := p.before.Swap(nil); f != nil {
			(*f)()
		}
	}
	if v == protocol.ViewFacts && p.faults.Add(-1) >= 0 {
		return nil, errors.New("the disk is away")
	}
	return p.Store.Read(ctx, id, after, limit, v)
}

// stored is a session of one finished turn, opened anew over a pausing store: nothing of it is in memory.
func stored(t *testing.T) (*session.Sessions, *session.Session, *pausing) {
	t.Helper()
	back := memory.NewBacking()
	models := peers.Scripted{Script: script.Must(`[{"text": "one"}, {"call": {"id": "c", "name": "none", "arguments": {}}}, {"finish": "tool_calls"}, {"text": "two"}]`)}
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
	const place = 7
	held := false
	limit := func() session.Seq {
		if held {
			return place
		}
		return -1
	}
	var f *stream
	if err := s.InspectNow(t.Context(), func(v *session.View) { f = c.newStream(s, c.bell(v), 0) }); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pause := func() { held = true } // the reading goroutine holds the answer of a snapshot
	store.before.Store(&pause)
	buf, more, err := f.Page(nil, limit)
	if err != nil || !held {
		t.Fatalf("the log was not read: %v", err)
	}
	early := cursorsOf(buf)
	if len(early) == 0 || slices.Max(early) > place {
		t.Errorf("told before a snapshot at %d: %v", place, early)
	}
	if more {
		if rest, _, _ := f.Page(nil, limit); len(rest) > 0 {
			t.Errorf("told before the answer: %s", rest)
		}
	}
	held = false // it is written
	rest, _, err := f.Page(nil, limit)
	if err != nil || bytes.Count(rest, []byte("\n")) < 3 {
		t.Fatalf("%v, behind the answer:\n%s", err, rest)
	}
	for _, n := range cursorsOf(rest) {
		if n <= place {
			t.Errorf("told after the snapshot at %d: %d", place, n)
		}
	}
}
