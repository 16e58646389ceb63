package session_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// onTheLane is an execution of the agent.
func onTheLane(input string) session.ExecutionRequest {
	return session.ExecutionRequest{Provider: "agent", Input: input, Config: json.RawMessage(`{}`)}
}

func TestAnExecutionThatCannotStartIsStartedWhenTheDiskIsWellAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := answering()
		h, f := faultHouse(t, m)
		s := h.draft()
		quick, let := m.play, make(chan struct{})
		m.play = func(ctx context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
			<-let
			quick(ctx, r, yield)
		}
		_, before := ask(s, session.PromptRequest{Input: "x"})
		synctest.Wait()
		turn := h.execute(s, onTheLane("one"))
		next := h.execute(s, onTheLane("two"))
		f.FailAt(1, session.ErrFull)
		close(let)
		if o := <-before; o.Stop != "persistence_error" {
			t.Errorf("the turn before: %+v", o)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got := h.of(s, turn); got != "turn_accepted" {
			t.Errorf("on a full disk it went %s", got)
		}
		f.Mend()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for _, turn := range []session.TurnID{turn, next} {
			if got := h.of(s, turn); !strings.HasSuffix(got, "turn_completed") {
				t.Errorf("it went %s", got)
			}
		}
		checkLog(t, h)
		h.close()
	})
}

func TestACancelOfAnExecutionOnTheLaneThatCannotBeStoredLeavesItInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := hanging()
		h, f := faultHouse(t, m)
		s := h.draft()
		_, running := ask(s, session.PromptRequest{Input: "x"})
		synctest.Wait()
		turn := h.execute(s, onTheLane("one"))
		f.FailAt(1, session.ErrFull)
		if err := s.SubmitCancel(turn, nil)(t.Context()); protocol.KindOf(err) != protocol.PersistenceError {
			t.Errorf("cancel on a full disk: %v", err)
		}
		f.Mend()
		m.play = func(_ context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
			yield(text("ok"), nil)
			yield(finish(session.FinishStop), nil)
		}
		s.Cancel(session.CancelRequest{}, func(error) {})
		<-running
		synctest.Wait()
		if got := h.of(s, turn); !strings.HasSuffix(got, "turn_completed") {
			t.Errorf("it went %s", got)
		}
		checkLog(t, h)
		h.close()
	})
}

// A turn that cannot be gone on with gives back the place it took.
func TestAResumptionThatCannotBeStoredKeepsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		dead := newHouse(t, backing.Open("dead"), hanging())
		s0 := dead.draft()
		turn := dead.execute(s0, onTheLane("one"))
		synctest.Wait()
		dead.store.Kill()

		m := answering()
		h, f := faultHouse(t, m)
		h.store = backing.Open("b")
		f.Store = h.store
		h.all.SetExecutions(session.ExecutionOptions{Running: 1})
		s := h.open(s0.ID)
		f.FailAt(1, session.ErrFull)
		_, ch := ask(s, session.PromptRequest{Resume: true})
		if o := <-ch; protocol.KindOf(o.err) != protocol.PersistenceError {
			t.Errorf("resume on a full disk: %+v %v", o.Outcome, o.err)
		}
		f.Mend()
		g := &gated{let: make(chan struct{})}
		close(g.let)
		next := h.execute(s, beside(g))
		synctest.Wait()
		if got := h.of(s, next); !strings.HasSuffix(got, "turn_completed") {
			t.Errorf("the next execution went %s", got)
		}
		_, ch = ask(s, session.PromptRequest{Resume: true})
		if o := <-ch; o.err != nil || o.Turn != turn || o.Outcome.Outcome != session.OutcomeCompleted {
			t.Errorf("resume: %+v %v", o.Outcome, o.err)
		}
		checkLog(t, h)
		h.close()
		dead.all.Shutdown(canceled())
		_ = dead.store.Close()
		synctest.Wait()
	})
}
