package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// Section 7 of the portable protocol: a cancel takes the open action away, from the moment it is asked for, for whoever answers and from wherever: an
// agent that takes its time to end is not told of an answer, and neither is the log.
func TestAnActionIsDeadFromTheCancelOnHoweverLongTheTurnTakesToEnd(t *testing.T) {
	for _, question := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			let := make(chan struct{})
			m := answering()
			h := &house{t: t, store: memory.New(), model: m}
			h.all = session.NewSessions(session.Config{Store: h.store, Models: m, Now: time.Now, Agent: agentFunc(func(ctx context.Context, t *session.Turn) (string, error) {
				var err error
				if question {
					_, err = t.AskUser("c1", "Which?", nil)
				} else {
					_, err = t.RequestApproval(&protocol.ApprovalRequested{ToolCallID: "c1", ToolName: "act", Title: "Act"})
				}
				<-let
				return "", err
			})})
			s := h.draft()
			_, ch := ask(s, session.PromptRequest{Input: "x"})
			synctest.Wait()
			action := ""
			h.view(s, func(v *session.View) { action = v.Serial.Actions[0].ID })
			s.Cancel(session.CancelRequest{}, func(error) {})
			synctest.Wait()
			answered := make(chan error, 1)
			want := protocol.ActionNotFound
			if question {
				want = protocol.QuestionNotFound
				s.AnswerQuestion("c1", "this one", func(err error) { answered <- err })
			} else {
				s.ResolveApproval(action, "allow_once", func(err error) { answered <- err })
			}
			if err := <-answered; protocol.KindOf(err) != want {
				t.Errorf("answered behind the cancel: %v", err)
			}
			close(let)
			if o := <-ch; o.Outcome.Outcome != session.OutcomeCancelled {
				t.Errorf("it ended %+v %v", o.Outcome, o.err)
			}
			for _, e := range h.entries(s.ID) {
				switch b, _ := protocol.Decode(&e); b := b.(type) {
				case *protocol.ApprovalResolved:
					if b.By == protocol.ByClient {
						t.Error("the log has an answer")
					}
				case *protocol.UserQuestionAnswered:
					if b.More.By == protocol.ByClient {
						t.Error("the log has an answer")
					}
				}
			}
			checkLog(t, h)
			h.close()
		})
	}
}

// A process that has not heard of the end of an approval says of it what the log says: that it was answered, or that it is gone with its turn.
func TestAProcessThatHasNotHeardOfTheEndOfAnApprovalSaysWhatBecameOfIt(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			backing := memory.NewBacking()
			act := writeTool("do", func() string { return "" })
			m := say(calls(1), done())
			a := newHouse(t, backing.Open("a"), m, act)
			s := a.draft()
			ask(s, session.PromptRequest{Input: "x"})
			synctest.Wait()
			action := a.approvals(s)[0].ActionID
			a.close() // its turn waits
			own := backing.Open("b")
			deaf := lateEars{own, make(chan struct{})}
			b, c := &house{t: t, store: own, model: m}, newHouse(t, backing.Open("c"), m, act)
			b.all = session.NewSessions(session.Config{Store: deaf, Models: m, Now: time.Now, Agent: agentFunc(nil)}) // it runs no turn
			late, other := b.open(s.ID), c.open(s.ID)
			synctest.Wait()
			want := protocol.ActionAlreadyResolved
			if cancelled {
				want = protocol.ActionNotFound
				other.Cancel(session.CancelRequest{}, func(error) {})
			} else {
				allow(t, other, action)
			}
			synctest.Wait()
			answered := make(chan error, 1)
			late.ResolveApproval(action, "reject_once", func(err error) { answered <- err })
			if err := <-answered; protocol.KindOf(err) != want {
				t.Errorf("cancelled %v: %v, want %v", cancelled, err, want)
			}
			close(deaf.gate)
			checkLog(t, c)
			b.close()
			c.close()
		})
	}
}
