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

func TestAnExecutionInLineIsNotGivenUpBecauseItsStartCannotBeStoredForAMoment(t *testing.T) {
	for meanwhile, want := range map[string]string{
		"nothing":              "turn_accepted user_message turn_started turn_completed",
		"it is cancelled":      "turn_accepted cancel_requested turn_cancelled",
		"the runtime ends":     "turn_accepted",
		"another cancel fails": "turn_accepted user_message turn_started turn_completed",
	} {
		t.Run(meanwhile, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, f := faultHouse(t, answering())
				h.all.SetExecutions(session.ExecutionOptions{Running: 1})
				s := h.draft()
				h.prompt(s, "a turn before")
				g := &gated{let: make(chan struct{}, 2)}
				h.execute(s, beside(g))
				waiting := h.execute(s, beside(g))
				f.FailAt(2, session.ErrFull) // the end of the first is stored, the start of the second is not
				g.let <- struct{}{}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if got := h.of(s, waiting); got != "turn_accepted" {
					t.Errorf("it went %s", got)
				}
				switch meanwhile {
				case "another cancel fails":
					if err := s.SubmitCancel(waiting, nil)(t.Context()); protocol.KindOf(err) != protocol.PersistenceError {
						t.Errorf("cancel on a full disk: %v", err)
					}
					f.Mend()
				case "it is cancelled":
					f.Mend()
					if err := s.SubmitCancel(waiting, nil)(t.Context()); err != nil {
						t.Error(err)
					}
				case "the runtime ends":
					f.Mend()
					if err := h.all.Shutdown(t.Context()); err != nil {
						t.Error(err)
					}
				default:
					f.Mend()
				}
				g.let <- struct{}{}
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := h.of(s, waiting); got != want {
					t.Errorf("it went %s, want %s", got, want)
				}
				if meanwhile != "the runtime ends" {
					next := h.execute(s, beside(g)) // the place is free again
					if meanwhile != "it is cancelled" {
						g.let <- struct{}{}
					}
					synctest.Wait()
					if got := h.of(s, next); !strings.HasSuffix(got, "turn_completed") {
						t.Errorf("one after it went %s", got)
					}
				}
				h.close()
			})
		})
	}
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
