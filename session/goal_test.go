package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

func setGoal(t *testing.T, s *session.Session, objective string, turns int, legacy bool) {
	t.Helper()
	ch := make(chan error, 1)
	s.SetGoal(objective, turns, legacy, func(_ *protocol.Goal, err error) { ch <- err })
	if err := <-ch; err != nil {
		t.Fatal(err)
	}
}

func (h *house) goal(s *session.Session) (g *protocol.Goal) {
	h.t.Helper()
	h.view(s, func(v *session.View) {
		if v.Goal != nil {
			c := *v.Goal
			g = &c
		}
	})
	return g
}

// starts lists the origins of the turns of a log.
func (h *house) starts(s *session.Session) string {
	h.t.Helper()
	var out []string
	for _, e := range h.entries(s.ID) {
		if e.Kind == protocol.KindTurnStarted {
			b, err := protocol.Decode(&e)
			if err != nil {
				h.t.Fatal(err)
			}
			out = append(out, b.(*protocol.TurnStarted).Origin)
		}
	}
	return strings.Join(out, " ")
}

func TestGoalTurnsRunByThemselvesUntilTheirBudgetIsSpent(t *testing.T) {
	m := say(done())
	bubble(t, m, nil, func(h *house) {
		s := h.draft()
		setGoal(t, s, "reach it", 3, false)
		synctest.Wait()
		if g := h.goal(s); g.Status != session.GoalSpent || g.TurnsUsed != 3 {
			t.Errorf("goal %+v", g)
		}
		if got := h.starts(s); got != "goal goal goal" {
			t.Errorf("turns %s", got)
		}
		if got := texts(m.requests[2]); !strings.Contains(got, "reach it") || !strings.Contains(got, "Step 3 of at most 3") {
			t.Errorf("the model was given\n%s", got)
		}
		for _, w := range h.wire(s) {
			if w.Role == session.RoleUser {
				t.Errorf("message mode shows a checkpoint: %s", *w.Content)
			}
		}
	})
}

func TestTheModelEndsAGoalWithUpdateGoalAndIsOfferedItOnlyThen(t *testing.T) {
	m := say(done(), done(), append(callChunks("c1", "update_goal", `{"status":"complete"}`), finish(session.FinishCalls)), done())
	bubble(t, m, nil, func(h *house) {
		s := h.draft()
		h.prompt(s, "hi")
		setGoal(t, s, "reach it", 9, false)
		synctest.Wait()
		if g := h.goal(s); g.Status != session.GoalComplete || g.TurnsUsed != 2 {
			t.Errorf("goal %+v", g)
		}
		var offered []string
		for _, r := range m.requests {
			names := ""
			for _, tool := range r.Tools {
				names += tool.Name
			}
			offered = append(offered, names)
		}
		if got := strings.Join(offered, ","); got != ",update_goal,update_goal," {
			t.Errorf("offered %q", got)
		}
	})
}

func TestAGoalOfALegacyClientIsWorkedOnInTheTurnItStarts(t *testing.T) {
	for _, input := range []string{"reach it", ""} {
		t.Run(fmt.Sprintf("input %q", input), func(t *testing.T) {
			m := say(done())
			bubble(t, m, nil, func(h *house) {
				s := h.draft()
				if _, ch := ask(s, session.PromptRequest{Goal: true}); protocol.KindOf((<-ch).err) != protocol.InvalidRequest {
					t.Error("a continuation without a goal was taken")
				}
				setGoal(t, s, "reach it", 3, true)
				synctest.Wait()
				if got := h.starts(s); got != "" {
					t.Fatalf("the runtime started %s", got)
				}
				_, ch := ask(s, session.PromptRequest{Input: input, Goal: input == ""})
				if o := <-ch; o.err != nil || o.Outcome.Outcome != session.OutcomeCompleted {
					t.Fatalf("outcome %+v", o)
				}
				if g := h.goal(s); g.Status != session.GoalSpent || g.TurnsUsed != 3 || len(m.requests) != 3 {
					t.Errorf("goal %+v after %d requests", g, len(m.requests))
				}
				if got := h.starts(s); got != map[bool]string{true: "user", false: "goal"}[input != ""] {
					t.Errorf("turns %s", got)
				}
			})
		})
	}
}

func TestFailedGoalTurnsWaitLongerEachTimeAndTheThirdBlocksTheGoal(t *testing.T) {
	var at []time.Duration
	m := say(done())
	bubble(t, m, nil, func(h *house) {
		began := time.Now()
		m.play = func(_ context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
			at = append(at, time.Since(began))
			yield(session.Chunk{}, &session.ModelError{Fault: session.FaultAuth, Message: "no"})
		}
		s := h.draft()
		setGoal(t, s, "reach it", 9, false)
		time.Sleep(time.Hour)
		if g := h.goal(s); g.Status != session.GoalBlocked || g.TurnsUsed != 3 {
			t.Errorf("goal %+v", g)
		}
		if got := fmt.Sprint(at); got != "[0s 5s 15s]" {
			t.Errorf("attempts at %s", got)
		}
	})
}

func TestACancelPausesAGoalAlsoBetweenItsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := false
		m := say(done())
		m.play = func(ctx context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
			if hang {
				<-ctx.Done()
				yield(session.Chunk{}, context.Cause(ctx))
				return
			}
			yield(session.Chunk{}, &session.ModelError{Fault: session.FaultAuth, Message: "no"})
		}
		h := newHouse(t, memory.New(), m)
		s := h.draft()
		setGoal(t, s, "reach it", 9, false)
		synctest.Wait() // the first turn failed, the next is due in 5 s
		cancelled := make(chan error, 1)
		s.Cancel(session.CancelRequest{}, func(err error) { cancelled <- err })
		if err := <-cancelled; err != nil {
			t.Errorf("cancel of what is due: %v", err)
		}
		time.Sleep(time.Minute)
		if g := h.goal(s); g.Status != session.GoalPaused || h.starts(s) != "goal" {
			t.Errorf("goal %+v, turns %s", g, h.starts(s))
		}
		s.Cancel(session.CancelRequest{}, func(err error) { cancelled <- err })
		if err := <-cancelled; protocol.KindOf(err) != protocol.TurnNotActive {
			t.Errorf("nothing is due: %v", err)
		}
		hang = true
		status := make(chan error, 1)
		s.SetGoalStatus(session.GoalActive, false, func(g *protocol.Goal, err error) {
			if err == nil && g.TurnsUsed != 0 {
				t.Errorf("activated with %d turns used", g.TurnsUsed)
			}
			status <- err
		})
		if err := <-status; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		replaced := make(chan error, 1)
		s.SetGoal("other", 5, false, func(_ *protocol.Goal, err error) { replaced <- err })
		if err := <-replaced; protocol.KindOf(err) != protocol.TurnActive {
			t.Errorf("replaced during a turn: %v", err)
		}
		s.SetGoalStatus(session.GoalPaused, false, func(_ *protocol.Goal, err error) { status <- err })
		if err := <-status; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h.view(s, func(v *session.View) {
			if ts := v.TurnState(); ts.Status != "cancelled" || ts.Reason != "Goal paused" || v.Goal.Status != session.GoalPaused {
				t.Errorf("turn state %+v, goal %+v", ts, v.Goal)
			}
		})
		s.ClearGoal(func(g *protocol.Goal, err error) {
			if g != nil {
				err = fmt.Errorf("goal %+v", g)
			}
			status <- err
		})
		if err := <-status; err != nil {
			t.Error(err)
		}
		s.SetGoalStatus(session.GoalActive, false, func(_ *protocol.Goal, err error) { status <- err })
		if err := <-status; protocol.KindOf(err) != protocol.InvalidRequest {
			t.Errorf("activated without a goal: %v", err)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestOpeningASessionWithAnActiveGoalStartsNothingUntilSomebodyActs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		m := say(done())
		m.play = func(ctx context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
			<-ctx.Done()
			yield(session.Chunk{}, context.Cause(ctx))
		}
		a := newHouse(t, backing.Open("a"), m)
		s := a.draft()
		setGoal(t, s, "reach it", 2, false)
		synctest.Wait()
		a.store.Kill()
		b := newHouse(t, backing.Open("b"), say(done()))
		before := len(b.entries(s.ID))
		s2 := b.open(s.ID)
		time.Sleep(time.Minute)
		if n := len(b.entries(s.ID)); n != before {
			t.Errorf("opening wrote %d entries", n-before)
		}
		b.prompt(s2, "are you there?")
		time.Sleep(time.Minute) // the turn that was cut off counts as one that failed
		if got := b.starts(s2); got != "goal user goal" || b.goal(s2).Status != session.GoalSpent {
			t.Errorf("turns %s, goal %+v", got, b.goal(s2))
		}
		checkLog(t, b)
		b.close()
		a.all.Shutdown(canceled())
		_ = a.store.Close()
		time.Sleep(10 * time.Second)
		synctest.Wait()
	})
}
