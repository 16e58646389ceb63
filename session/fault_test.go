package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
	"github.com/rind-dev/rind/session/store/storetest"
)

// scripted is a turn with text, a call and more text.
func scripted() *model {
	return say(
		append([]session.Chunk{text("Let me look.")}, append(callChunks("c1", "look", `{"path":"a"}`), finish(session.FinishCalls))...),
		[]session.Chunk{text("done"), finish(session.FinishStop)},
	)
}

func faultHouse(t *testing.T, m *model) (*house, *storetest.Fault) {
	t.Helper()
	mem := memory.New()
	f := storetest.NewFault(mem)
	tools := []session.Tool{readTool("look", func() string { return "seen" })}
	loop, err := session.NewLoop(session.Loop{Models: m, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, store: mem, model: m}
	h.all = session.NewSessions(session.Config{Store: f, Agent: loop, Models: m, Now: time.Now})
	return h, f
}

func TestAFailingAppendAtAnyEntryIsTypedAndTheSessionStaysUsable(t *testing.T) {
	entries := 0
	synctest.Test(t, func(t *testing.T) {
		h, f := faultHouse(t, scripted())
		f.FailAt(1<<30, nil)
		h.prompt(h.draft(), "count")
		entries = f.Count()
		h.close()
	})
	if entries < 15 {
		t.Fatalf("the scripted turn has %d entries", entries)
	}
	for _, fault := range []error{session.ErrFull, session.ErrReadOnly, errors.New("input/output error")} {
		for n := 1; n < entries; n++ { // the first turn has one more: session_created
			t.Run(fmt.Sprintf("%s at %d", strings.ReplaceAll(fault.Error(), " ", "_"), n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h, f := faultHouse(t, scripted())
					s := h.draft()
					h.prompt(s, "a turn before")
					before := len(h.entries(s.ID))
					h.model.requests = nil
					f.FailAt(n, fault)
					_, ch := ask(s, session.PromptRequest{Input: "go"})
					o := <-ch
					switch {
					case o.err != nil:
						if k := protocol.KindOf(o.err); k != protocol.PersistenceError {
							t.Errorf("prompt was refused with %v", o.err)
						}
						if got := len(h.entries(s.ID)); n <= 3 && got != before {
							t.Errorf("a turn that never started left %d entries", got-before)
						}
					case o.Outcome.Outcome != session.OutcomeFailed || o.Stop != "persistence_error":
						t.Errorf("outcome %+v", o.Outcome)
					}
					told := 0
					h.view(s, func(v *session.View) { told = int(v.Head) })
					if kept := len(h.entries(s.ID)); told != kept {
						t.Errorf("told up to %d, the store has %d", told, kept)
					}
					f.Mend()
					if after := h.prompt(s, "afterwards"); after.Outcome != session.OutcomeCompleted {
						t.Errorf("the session is not usable: %+v", after)
					}
					if err := testkit.SoundLog(h.entries(s.ID)); err != nil {
						t.Errorf("%v\n%s", err, kinds(h.entries(s.ID)))
					}
					h.close()
				})
			})
		}
	}
}

func TestATerminalThatCouldNotBeStoredIsRetriedEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f := faultHouse(t, scripted())
		s := h.draft()
		h.prompt(s, "a turn before")
		h.model.requests = nil
		f.FailAt(8, session.ErrFull)
		_, ch := ask(s, session.PromptRequest{Input: "go"})
		if o := <-ch; o.Stop != "persistence_error" {
			t.Errorf("outcome %+v", o)
		}
		f.Mend()
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		es := h.entries(s.ID)
		last := &es[len(es)-1]
		b, err := protocol.Decode(last)
		if err != nil {
			t.Fatal(err)
		}
		if end, ok := b.(*protocol.TurnFailed); !ok || end.ErrorType != protocol.FailPersistence {
			t.Errorf("the log ends with %s %+v", last.Kind, b)
		}
		h.close()
	})
}

func TestNothingIsToldWhileAppendsStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f := faultHouse(t, scripted())
		s := h.draft()
		h.prompt(s, "a turn before")
		h.model.requests = nil
		var at session.Seq
		h.view(s, func(v *session.View) {
			at = v.Head
			v.Follow(func() { f.Mark("ring") }, nil, nil)
		})
		release := f.Stall()
		_, ch := ask(s, session.PromptRequest{Input: "go"})
		synctest.Wait()
		if es, head, err := s.Read(t.Context(), at, 10); err != nil || len(es) > 0 || head != at {
			t.Errorf("%d entries were told before they were acknowledged (%v)", len(es), err)
		}
		release()
		if o := <-ch; o.Outcome.Outcome != session.OutcomeCompleted {
			t.Errorf("outcome %+v", o)
		}
		wrote := false
		for _, what := range f.Order() {
			if strings.HasPrefix(what, "write") {
				wrote = true
			} else if !wrote {
				t.Error("rang before anything was written")
			}
		}
		h.close()
	})
}

// agentFunc answers turns with a function.
type agentFunc func(ctx context.Context, t *session.Turn) (string, error)

func (f agentFunc) Turn(ctx context.Context, t *session.Turn) (string, error) { return f(ctx, t) }

// An entry that cannot be made while others are on their way must not leave what is appended behind it without an answer.
func TestAnEntryThatCannotBeMadeEndsTheTurnAndTheSessionStaysUsable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := say([]session.Chunk{text("hello"), finish(session.FinishStop)})
		h, f := faultHouse(t, m)
		var release func()
		h.all = session.NewSessions(session.Config{Store: f, Models: m, Now: time.Now, Agent: agentFunc(func(_ context.Context, turn *session.Turn) (string, error) {
			if release != nil {
				return "end_turn", nil // the prompt afterwards
			}
			release = f.Stall()
			turn.Say("m1", "on its way")
			bad := turn.Record(&protocol.ApprovalRequested{ToolCallID: "c1", Arguments: []byte("{")})
			turn.Note(&protocol.AssistantDelta{Text: "behind"})
			return "end_turn", bad
		})})
		s := h.draft()
		_, ch := ask(s, session.PromptRequest{Input: "go"})
		synctest.Wait()
		release()
		if o := <-ch; o.Outcome.Outcome != session.OutcomeFailed {
			t.Errorf("outcome %+v %v", o.Outcome, o.err)
		}
		if o := h.prompt(s, "afterwards"); o.Outcome != session.OutcomeCompleted {
			t.Errorf("the session is not usable: %+v", o)
		}
		h.close()
	})
}

// lateLease is a store whose lease cannot be taken at first.
type lateLease struct {
	session.Store
	refusals int
}

func (l *lateLease) Acquire(ctx context.Context, id session.SessionID) (session.Lease, error) {
	if l.refusals > 0 {
		l.refusals--
		return session.Lease{}, session.ErrLocked
	}
	return l.Store.Acquire(ctx, id)
}

func TestADraftWhoseLeaseCouldNotBeTakenIsStillUsable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := say([]session.Chunk{text("hello"), finish(session.FinishStop)})
		h := newHouse(t, memory.New(), m)
		loop, err := session.NewLoop(session.Loop{Models: m})
		if err != nil {
			t.Fatal(err)
		}
		h.all = session.NewSessions(session.Config{Store: &lateLease{h.store, 1}, Agent: loop, Models: m, Now: time.Now})
		s := h.draft()
		_, ch := ask(s, session.PromptRequest{Input: "go"})
		if o := <-ch; protocol.KindOf(o.err) != protocol.PersistenceError {
			t.Errorf("outcome %+v %v", o.Outcome, o.err)
		}
		if o := h.prompt(s, "afterwards"); o.Outcome != session.OutcomeCompleted {
			t.Errorf("the session is not usable: %+v", o)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestATerminalIsRetriedAlsoWhenAPromptFailedToCloseItMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memory.New()
		store := &refusing{Store: mem}
		var end chan error
		h := &house{t: t, store: mem}
		h.all = session.NewSessions(session.Config{Store: store, Models: answering(), Now: time.Now, Agent: agentFunc(func(context.Context, *session.Turn) (string, error) {
			end = store.hold()
			return "end_turn", nil
		})})
		s := h.draft()
		_, ch := ask(s, session.PromptRequest{Input: "go"})
		synctest.Wait()
		end <- session.ErrFull
		if o := <-ch; o.Stop != "persistence_error" {
			t.Errorf("outcome %+v", o)
		}
		time.Sleep(900 * time.Millisecond)
		again := store.hold()
		_, ch = ask(s, session.PromptRequest{Input: "another"})
		time.Sleep(500 * time.Millisecond) // the end is tried again in between
		again <- session.ErrFull
		if o := <-ch; protocol.KindOf(o.err) != protocol.PersistenceError {
			t.Errorf("outcome of the other %+v %v", o.Outcome, o.err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := kinds(h.entries(s.ID)); !strings.HasSuffix(got, "turn_completed") {
			t.Errorf("log %s", got)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestASecondCancelIsAcknowledgedWhenTheFirstIsOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		h, f := faultHouse(t, answering())
		h.all = session.NewSessions(session.Config{Store: f, Models: h.model, Now: time.Now, Agent: agentFunc(func(ctx context.Context, _ *session.Turn) (string, error) {
			<-let
			return "", context.Cause(ctx)
		})})
		s := h.draft()
		_, ch := ask(s, session.PromptRequest{Input: "go"})
		synctest.Wait()
		release := f.Stall()
		acks := make(chan error, 2)
		for range 2 {
			s.Cancel(session.CancelRequest{}, func(err error) { acks <- err })
		}
		synctest.Wait()
		if n := len(acks); n > 0 {
			t.Errorf("%d cancels were acknowledged before one was on disk", n)
		}
		release()
		for range 2 {
			if err := <-acks; err != nil {
				t.Error(err)
			}
		}
		close(let)
		if o := <-ch; o.Outcome.Outcome != session.OutcomeCancelled {
			t.Errorf("outcome %+v", o)
		}
		checkLog(t, h)
		h.close()
	})
}
