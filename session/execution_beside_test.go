package session_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// gated is a provider that returns when it is let, whatever else happens.
type gated struct{ let chan struct{} }

func (g *gated) Run(context.Context, *session.Execution) (string, error) {
	<-g.let
	return "done", nil
}

func beside(r session.Runner) session.ExecutionRequest {
	return session.ExecutionRequest{Provider: "p", Input: "go", Config: json.RawMessage(`{}`), Runner: r}
}

func (h *house) execute(s *session.Session, r session.ExecutionRequest) session.TurnID {
	h.t.Helper()
	a, err := s.SubmitExecution(r)(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return a.Turn
}

// of lists the kinds of a turn's entries.
func (h *house) of(s *session.Session, turn session.TurnID) string {
	h.t.Helper()
	var es []session.Entry
	for _, e := range h.entries(s.ID) {
		if e.Turn == turn {
			es = append(es, e)
		}
	}
	return kinds(es)
}

func TestACancelInLineThatCannotBeStoredLeavesTheExecutionInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f := faultHouse(t, answering())
		h.all.SetExecutions(session.ExecutionOptions{Running: 1})
		s := h.draft()
		h.prompt(s, "a turn before")
		g := &gated{let: make(chan struct{})}
		h.execute(s, beside(g))
		waiting := h.execute(s, beside(g))
		f.FailAt(1, session.ErrFull)
		if err := s.SubmitCancel(waiting, nil)(t.Context()); protocol.KindOf(err) != protocol.PersistenceError {
			t.Errorf("cancel on a full disk: %v", err)
		}
		f.Mend()
		close(g.let)
		synctest.Wait()
		if got := h.of(s, waiting); !strings.HasSuffix(got, "turn_started turn_completed") {
			t.Errorf("it went %s", got)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestACancelBehindAnEndThatCannotBeStoredYetIsAnsweredWithThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f := faultHouse(t, answering())
		s := h.draft()
		h.prompt(s, "a turn before")
		g := &gated{let: make(chan struct{})}
		turn := h.execute(s, beside(g))
		f.FailAt(1, session.ErrFull)
		close(g.let)
		synctest.Wait()
		answered := make(chan error, 1)
		wait := s.SubmitCancel(turn, nil)
		go func() { answered <- wait(context.Background()) }()
		synctest.Wait()
		select {
		case err := <-answered:
			t.Errorf("answered before the end is on disk: %v", err)
		default:
		}
		f.Mend()
		if err := <-answered; err != nil {
			t.Error(err)
		}
		if got := h.of(s, turn); !strings.HasSuffix(got, "turn_started turn_completed") {
			t.Errorf("it went %s", got)
		}
		checkLog(t, h)
		h.close()
	})
}

// refusing is a store whose appends can be held until the test says how they end.
type refusing struct {
	session.Store
	mu  sync.Mutex
	end chan error // nil: nothing is held
}

func (r *refusing) hold() (end chan error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end = make(chan error)
	return r.end
}

func (r *refusing) Append(l session.Lease, b session.Batch, done func(error)) {
	r.mu.Lock()
	end := r.end
	r.end = nil
	r.mu.Unlock()
	if end == nil {
		r.Store.Append(l, b, done)
		return
	}
	go func() {
		if err := <-end; err != nil {
			done(err)
			return
		}
		r.Store.Append(l, b, done)
	}()
}

func TestWhatAProviderReturnsWhileItsCancelCannotBeStoredCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := answering()
		store := &refusing{Store: memory.New()}
		h := newHouse(t, store.Store.(*memory.Store), m)
		h.all = session.NewSessions(session.Config{Store: store, Agent: agentFunc(nil), Models: m, Now: time.Now})
		s := h.draft()
		g := &gated{let: make(chan struct{})}
		turn := h.execute(s, beside(g))
		end := store.hold()
		cancelled := s.SubmitCancel(turn, nil)
		synctest.Wait()
		close(g.let)
		synctest.Wait()
		end <- session.ErrFull
		if err := cancelled(t.Context()); protocol.KindOf(err) != protocol.PersistenceError {
			t.Errorf("cancel: %v", err)
		}
		synctest.Wait()
		if got := h.of(s, turn); !strings.HasSuffix(got, "turn_started turn_completed") {
			t.Errorf("it went %s", got)
		}
		checkLog(t, h)
		h.close()
	})
}
