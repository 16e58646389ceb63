package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/images"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/undo"
)

// turnEvents is how many entries a turn of writeTurns has.
const turnEvents = 10

// writeTurns appends turns as an editor has them to a session that exists, without a snapshot of its state: opening it reads all of it.
func writeTurns(t *testing.T, s *sqlite.Store, id session.SessionID, workspace string, turns int) {
	t.Helper()
	l, err := s.Acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Release(context.WithoutCancel(t.Context()), l) }()
	ids := protocol.RandomIDs{}
	seq, done, waiting := session.Seq(0), make(chan error, 1024), 0
	var batch session.Batch
	add := func(turn session.TurnID, number, count int64, b protocol.Body) {
		e, err := protocol.Encode(protocol.Head{Time: time.Now(), EventID: ids.Hex32(), Session: id, Turn: turn}, b)
		if err != nil {
			t.Fatal(err)
		}
		seq++
		e.Seq, e.Turn, e.PortableFirst, e.PortableCount = seq, turn, number, int(count)
		batch.Entries = append(batch.Entries, e)
	}
	flush := func() {
		batch.Row = &session.Row{Title: "long", Preview: "what was said last", Activity: time.Now(), Messages: turns * 2, UserPrompt: true}
		s.Append(l, batch, func(err error) { done <- err })
		waiting++
		batch = session.Batch{}
	}
	created := &protocol.SessionCreated{}
	created.More.WorkspaceRoot, created.More.ConversationID = workspace, "conv_"+string(id)
	created.More.Provider, created.More.Model, created.More.Mode = "t", "m", "ask"
	add("", 0, 0, created)
	for n := range turns {
		turn := session.TurnID(ids.Hex32())
		accepted := &protocol.TurnAccepted{}
		accepted.More.Provider, accepted.More.Surface, accepted.More.Input = "agent", protocol.SurfaceEditor, "go on"
		add(turn, 1, 1, accepted)
		msg := &protocol.UserMessage{}
		msg.More.ID, msg.More.Text, msg.More.Origin = ids.Hex32(), fmt.Sprintf("Prompt %d: look at the file and go on.", n), protocol.OriginUser
		add(turn, 2, 0, msg)
		add(turn, 2, 1, &protocol.TurnStarted{Operation: protocol.OpPrompt, Origin: protocol.OriginUser, UserMessageID: msg.More.ID, Input: msg.More.Text})
		text, message := "", ids.Hex32()
		for i := range int64(turnEvents - 5) {
			d := &protocol.AssistantDelta{Text: fmt.Sprintf("Sentence %d of what the model says in turn %d. ", i, n)}
			d.More.MessageID = message
			text += d.Text
			add(turn, 3+i, 1, d)
		}
		add(turn, 8, 1, &protocol.AssistantMessageCompleted{MessageID: message, Content: text})
		add(turn, 9, 1, &protocol.TurnCompleted{})
		if len(batch.Entries) >= 500 {
			flush()
		}
	}
	flush()
	for range waiting {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// long measures what is done with a session of so many turns.
func long(t *testing.T, dir string, turns int, sync1 time.Duration) {
	m := &talker{n: 1}
	where := filepath.Join(dir, fmt.Sprintf("long%d", turns))
	st := openStore(t, where)
	if err := st.Create(t.Context(), session.Meta{ID: "long", ConversationID: "conv_long", Workspace: dir, Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	writeTurns(t, st, "long", dir, turns)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	events := turns * turnEvents
	row := func(what, got, goal string) {
		line(fmt.Sprintf("%d turns, %d events: %s", turns, events, what), got, goal)
	}
	timed := func(what, goal string, f func()) {
		began := time.Now()
		f()
		row(what, time.Since(began).Round(time.Microsecond).String(), goal)
	}

	all, end := house(t, where, m)
	var s *session.Session
	open := func() {
		var err error
		if s, err = all.Open(t.Context(), "long"); err != nil {
			t.Fatal(err)
		}
	}
	timed("open without a snapshot", "", open)
	began := time.Now()
	prompt(t, s)
	row("first prompt of a process", m.asked.Sub(began).String(), "")
	end()

	all, end = house(t, where, m)
	defer func() { end() }()
	timed("open", "<= 50 ms", open)
	began = time.Now()
	prompt(t, s)
	row("first prompt of the next process", m.asked.Sub(began).String(), "")
	var took []time.Duration
	for range 50 {
		began := time.Now()
		prompt(t, s)
		took = append(took, m.asked.Sub(began))
	}
	row("prompt in to first model request, p50", median(took).String(), fmt.Sprintf("<= 2 ms + 3 sync = %v", 2*time.Millisecond+3*sync1))

	before := heap()
	timed("replay in pages", "", func() {
		n := 0
		for at := session.Seq(0); ; {
			es, _, err := s.Read(t.Context(), at, 256)
			if err != nil {
				t.Fatal(err)
			}
			if len(es) == 0 {
				break
			}
			at, n = es[len(es)-1].Seq, n+len(es)
		}
		if n < events {
			t.Errorf("%d of %d events were replayed", n, events)
		}
	})
	row("heap it leaves", fmt.Sprintf("%+.1f MB", float64(heap()-before)/(1<<20)), "flat")
	timed("messages", "", func() {
		if err := s.RecallNow(t.Context(), func(v *session.Recalled) {
			if all := v.Wire(); len(all) < 2*turns {
				t.Errorf("%d messages", len(all))
			}
		}); err != nil {
			t.Fatal(err)
		}
	})
	timed("undo when nothing was written", "", func() {
		u := undo.New(undo.Config{Store: all.Store(), Images: images.New(func(session.SessionID) string { return dir }, images.Options{})})
		if _, err := u.Undo(t.Context(), "long", ""); err != nil {
			t.Error(err)
		}
	})
	var f *session.Session
	timed("fork", "", func() {
		var err error
		if f, err = s.Fork(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	})
	began = time.Now()
	prompt(t, f)
	row("first prompt of the fork", m.asked.Sub(began).String(), "")
	began = time.Now()
	done := make(chan session.Outcome, 1)
	s.Compact(func(o session.Outcome, err error) {
		if err != nil {
			t.Error(err)
		}
		done <- o
	})
	if o := <-done; o.Outcome != session.OutcomeCompleted {
		t.Errorf("compaction: %+v", o)
	}
	row("compaction: to the model's request, and in all", fmt.Sprintf("%v, %v", m.asked.Sub(began), time.Since(began)), "")
	timed("first page of the list", "", func() {
		if page, _, err := all.List(t.Context(), session.Query{Limit: 50}); err != nil || len(page) != 2 {
			t.Errorf("%d sessions, %v", len(page), err)
		}
	})
	s.Close()

	other, err := all.Draft(t.Context(), session.DraftOptions{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	prompt(t, other)
	gone := make(chan time.Duration, 1)
	go func() {
		began := time.Now()
		if err := all.Delete(t.Context(), "long"); err != nil {
			t.Error(err)
		}
		gone <- time.Since(began)
	}()
	longest := time.Duration(0)
	for {
		began := time.Now()
		prompt(t, other)
		longest = max(longest, time.Since(began))
		select {
		case d := <-gone:
			row("delete", d.Round(time.Millisecond).String(), "")
			row("longest prompt of another session meanwhile", longest.Round(time.Millisecond).String(), "")
			return
		default:
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestLongSessions is the part of the report about sessions that grew for weeks.
func TestLongSessions(t *testing.T) {
	if !*report {
		t.Skip("measured by make bench")
	}
	dir := t.TempDir()
	sync := syncTime(t, dir)
	for _, turns := range []int{2000, 10_000} {
		long(t, dir, turns, sync)
	}
}
