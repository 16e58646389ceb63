package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// stuck is a store whose reads wait while it is shut, or until their context ends.
type stuck struct {
	session.Store
	mu   sync.Mutex
	gate chan struct{} // nil: open

	reads atomic.Int64 // calls of Read
}

func (s *stuck) shut() (open func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gate = gate
	return func() { close(gate) }
}

func (s *stuck) pass(ctx context.Context) error {
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	if gate == nil {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *stuck) Key(ctx context.Context, id session.SessionID, surface, key string) (session.Key, error) {
	if err := s.pass(ctx); err != nil {
		return session.Key{}, err
	}
	return s.Store.Key(ctx, id, surface, key)
}

func (s *stuck) Read(ctx context.Context, id session.SessionID, after session.Seq, limit int, v protocol.View) ([]session.Entry, error) {
	s.reads.Add(1)
	if err := s.pass(ctx); err != nil {
		return nil, err
	}
	return s.Store.Read(ctx, id, after, limit, v)
}

func (s *stuck) ReadBack(ctx context.Context, id session.SessionID, before session.Seq, limit int, v protocol.View) ([]session.Entry, error) {
	if err := s.pass(ctx); err != nil {
		return nil, err
	}
	return s.Store.ReadBack(ctx, id, before, limit, v)
}

func (s *stuck) ReadTurn(ctx context.Context, turn session.TurnID, after int64, limit int, into *session.Page) ([]session.Entry, error) {
	if err := s.pass(ctx); err != nil {
		return nil, err
	}
	return s.Store.ReadTurn(ctx, turn, after, limit, into)
}

func (s *stuck) Open(ctx context.Context, id session.SessionID) ([]session.Letter, error) {
	if err := s.pass(ctx); err != nil {
		return nil, err
	}
	return s.Store.Open(ctx, id)
}

// slowHouse is a house on a store whose reads can be held.
func slowHouse(t *testing.T, m *model, mem *memory.Store) (*house, *stuck) {
	t.Helper()
	h := newHouse(t, mem, m)
	store := &stuck{Store: mem}
	loop, err := session.NewLoop(session.Loop{Models: m})
	if err != nil {
		t.Fatal(err)
	}
	h.all = session.NewSessions(session.Config{Store: store, Agent: loop, Models: m, Now: time.Now})
	return h, store
}

// hanging is a model that says nothing until its turn is cancelled.
func hanging() *model {
	return &model{play: func(ctx context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
		<-ctx.Done()
		yield(session.Chunk{}, context.Cause(ctx))
	}}
}

func TestAReadThatHangsHoldsUpNobodyButWhoWaitsForIt(t *testing.T) {
	keyed := beside(session.Mock{})
	keyed.Key, keyed.Digest = "k", "d"
	unknown := strings.Repeat("0", 32)
	for what, begin := range map[string]func(h *house, s *session.Session, done func(error)){
		"the key of a prompt": func(_ *house, s *session.Session, done func(error)) {
			s.Prompt(session.PromptRequest{Input: "y", Surface: "rind", Key: "k", Digest: "d"}, func(_ session.Outcome, err error) { done(err) })
		},
		"the key of an execution": func(_ *house, s *session.Session, done func(error)) {
			wait := s.SubmitExecution(keyed)
			go func() {
				_, err := wait(context.Background())
				done(err)
			}()
		},
		"an answer to nothing": func(_ *house, s *session.Session, done func(error)) { s.ResolveApproval(unknown, "allow_once", done) },
		"an answer to nothing of an execution": func(_ *house, s *session.Session, done func(error)) {
			wait := s.SubmitAnswer("t", unknown, func() (session.ActionReply, error) { return session.ActionReply{}, nil })
			go func() { done(wait(context.Background())) }()
		},
		"a letter of another process": func(h *house, s *session.Session, done func(error)) {
			other := h.store
			go func() {
				_, err := other.Post(context.Background(), s.ID, json.RawMessage(`{"op":"question","action":"none"}`))
				done(err)
			}()
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, store := slowHouse(t, hanging(), memory.New())
				s := h.draft()
				_, running := ask(s, session.PromptRequest{Input: "x"})
				synctest.Wait()
				open := store.shut()
				answered := make(chan error, 1)
				begin(h, s, func(err error) { answered <- err })
				synctest.Wait()

				short, over := context.WithTimeout(t.Context(), time.Second)
				defer over()
				if err := s.InspectNow(short, func(*session.View) {}); err != nil {
					t.Errorf("the session is not looked at: %v", err)
				}
				cancelled := make(chan error, 1)
				began := time.Now()
				s.Cancel(session.CancelRequest{}, func(err error) { cancelled <- err })
				if err := <-cancelled; err != nil {
					t.Errorf("cancel: %v", err)
				}
				if o := <-running; o.err != nil || o.Outcome.Outcome != session.OutcomeCancelled {
					t.Errorf("the running turn: %+v", o)
				}
				if took := time.Since(began); took > 100*time.Millisecond {
					t.Errorf("the cancel took %v", took)
				}
				open()
				if what == "the key of a prompt" { // it is asked now, of a model that does not answer
					synctest.Wait()
					s.Cancel(session.CancelRequest{}, func(err error) { cancelled <- err })
					if err := <-cancelled; err != nil {
						t.Errorf("cancel of the prompt: %v", err)
					}
				}
				<-answered
				h.close()
			})
		})
	}
}

func TestTheDeadlineOfACallerEndsACallThatTheStoreHoldsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, store := slowHouse(t, answering(), memory.New())
		s := h.draft()
		h.prompt(s, "a turn before")
		open := store.shut()
		req := beside(session.Mock{})
		req.Key, req.Digest = "k", "d"
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.SubmitExecution(req)(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the execution: %v", err)
		}
		if err := s.SubmitAnswer("t", strings.Repeat("0", 32), nil)(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the answer: %v", err)
		}
		open()
		synctest.Wait()
		h.all.SetExecutions(session.ExecutionOptions{Cleanup: time.Millisecond})
		h.close()
	})
}

func TestAReadThatNeverEndsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, store := slowHouse(t, answering(), memory.New())
		s := h.draft()
		h.prompt(s, "a turn before")
		open := store.shut()
		_, ch := ask(s, session.PromptRequest{Input: "y", Surface: "rind", Key: "k", Digest: "d"})
		if o := <-ch; protocol.KindOf(o.err) != protocol.PersistenceError || !strings.Contains(o.err.Error(), "did not answer") {
			t.Errorf("the prompt: %+v", o)
		}
		open()
		if o := h.prompt(s, "afterwards"); o.Outcome != session.OutcomeCompleted {
			t.Errorf("afterwards %+v", o)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestACancelEndsATurnWhoseConversationIsStillBeingRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		a := newHouse(t, backing.Open("a"), answering())
		id := a.draft().ID
		a.prompt(a.open(id), "before")
		a.close()

		h, store := slowHouse(t, answering(), backing.Open("b"))
		s := h.open(id)
		synctest.Wait()
		open := store.shut()
		_, ch := ask(s, session.PromptRequest{Input: "x"})
		synctest.Wait()
		s.Cancel(session.CancelRequest{}, func(err error) {
			if err != nil {
				t.Errorf("cancel: %v", err)
			}
		})
		began := time.Now()
		if o := <-ch; o.err != nil || o.Outcome.Outcome != session.OutcomeCancelled || time.Since(began) > time.Second {
			t.Errorf("the turn ended after %v: %+v", time.Since(began), o)
		}
		open()
		if o := h.prompt(s, "afterwards"); o.Answer != "ok" {
			t.Errorf("afterwards %+v", o)
		}
		if n := len(h.wire(s)); n != 6 {
			t.Errorf("%d messages", n)
		}
		checkLog(t, h)
		h.close()
	})
}

// Who asks for a turn is let in in the order of asking, also when the first has to be looked up; what is asked behind it is not done before it.
func TestPromptsBehindOneThatIsLookedUpComeBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, store := slowHouse(t, answering(), memory.New())
		s := h.draft()
		h.prompt(s, "a turn before")
		open := store.shut()
		var order []string
		ends := make(chan ended, 3)
		for _, r := range []session.PromptRequest{{Input: "one", Surface: "rind", Key: "k", Digest: "d"}, {Input: "two"}, {Input: "three", Surface: "acp", Key: "k", Digest: "e"}} {
			r.Started = func(session.TurnID) { order = append(order, r.Input) }
			s.Prompt(r, func(o session.Outcome, err error) { ends <- ended{o, err} })
		}
		synctest.Wait()
		open()
		for range 3 {
			if o := <-ends; o.err != nil || o.Outcome.Outcome != session.OutcomeCompleted {
				t.Errorf("outcome %+v", o)
			}
		}
		if got := strings.Join(order, " "); got != "one two three" {
			t.Errorf("started %s", got)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestACancelBehindAPromptThatIsLookedUpCancelsThatPrompt(t *testing.T) {
	for _, way := range []string{"cancel", "withdraw"} {
		synctest.Test(t, func(t *testing.T) {
			h, store := slowHouse(t, answering(), memory.New())
			s := h.draft()
			h.prompt(s, "a turn before")
			h.model.play = hanging().play
			open := store.shut()
			p, ch := ask(s, session.PromptRequest{Input: "x", Surface: "rind", Key: "k", Digest: "d"})
			answered := make(chan error, 1)
			if way == "cancel" {
				s.Cancel(session.CancelRequest{}, func(err error) { answered <- err })
				synctest.Wait()
				open()
			} else {
				synctest.Wait()
				p.Withdraw(protocol.ReasonUser, func(err error) { answered <- err })
			}
			if err := <-answered; err != nil {
				t.Errorf("%s: %v", way, err)
			}
			if o := <-ch; o.err != nil || o.Outcome.Outcome != session.OutcomeCancelled {
				t.Errorf("%s: outcome %+v", way, o)
			}
			if way == "withdraw" {
				open()
				synctest.Wait()
				if len(h.model.requests) != 1 {
					t.Error("a withdrawn prompt was worked off")
				}
			}
			checkLog(t, h)
			h.close()
		})
	}
}

func TestDoorbellsDuringASlowReadAreAnsweredWithOneMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		a := newHouse(t, backing.Open("a"), answering())
		sa := a.draft()
		a.prompt(sa, "before")
		h, store := slowHouse(t, answering(), backing.Open("b"))
		s := h.open(sa.ID)
		synctest.Wait()
		open := store.shut()
		for range 20 {
			a.prompt(sa, "again")
			time.Sleep(time.Second)
		}
		before := store.reads.Load()
		open()
		synctest.Wait()
		if n := store.reads.Load() - before; n > 3 {
			t.Errorf("%d reads follow", n)
		}
		h.view(s, func(v *session.View) {
			if v.Messages != 42 {
				t.Errorf("%d messages are told", v.Messages)
			}
		})
		checkLog(t, h)
		h.close()
		a.close()
	})
}
