package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// policy is a Policy whose verdicts a test picks. remember may block.
type policy struct {
	judge    func(mode string, c session.ToolCall) session.Verdict
	remember func(workspace, rule string, allow bool)
}

func (p policy) Judge(_ context.Context, mode string, _ session.ToolSpec, c session.ToolCall) (session.Verdict, error) {
	return p.judge(mode, c), nil
}

func (p policy) Remember(_ context.Context, workspace string, rule json.RawMessage, allow bool) error {
	p.remember(workspace, string(rule), allow)
	return nil
}

func (policy) Rules(context.Context, string) ([]session.Rule, error) { return nil, nil }
func (policy) Revoke(context.Context, string, int64) (bool, error)   { return false, nil }
func asks(string, session.ToolCall) session.Verdict {
	return session.Verdict{Effect: "ask", Title: "Do it", Rule: json.RawMessage(`{"tool":"do"}`)}
}

func policyHouse(t *testing.T, store *memory.Store, m *model, p session.Policy, sandbox string, tools ...session.Tool) *house {
	t.Helper()
	loop, err := session.NewLoop(session.Loop{Models: m, Tools: tools, Policy: p, Sandbox: sandbox})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, store: store, model: m}
	h.all = session.NewSessions(session.Config{Store: store, Agent: loop, Models: m, Policy: p})
	return h
}

// open approvals of a session, oldest first.
func (h *house) approvals(s *session.Session) []*protocol.ApprovalRequested {
	h.t.Helper()
	var out []*protocol.ApprovalRequested
	for _, e := range h.entries(s.ID) {
		if e.Kind == protocol.KindApprovalRequested {
			b, err := protocol.Decode(&e)
			if err != nil {
				h.t.Fatal(err)
			}
			out = append(out, b.(*protocol.ApprovalRequested))
		}
	}
	return out
}

func calls(n int) []session.Chunk {
	var c []session.Chunk
	for i := range n {
		c = append(c, callChunks("c"+string(rune('1'+i)), "do", `{}`)...)
	}
	return append(c, finish(session.FinishCalls))
}

func done() []session.Chunk { return []session.Chunk{text("done"), finish(session.FinishStop)} }

func TestAnAlwaysRuleIsDownBeforeItsAnswerAndASecondAnswerMeanwhileComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		var mu sync.Mutex
		var told []string
		p := policy{judge: asks, remember: func(workspace, rule string, allow bool) {
			<-held
			mu.Lock()
			defer mu.Unlock()
			told = append(told, workspace+" "+rule)
			if !allow {
				t.Error("remembered as a deny")
			}
		}}
		ran := 0
		h := policyHouse(t, memory.New(), say(calls(1), done()), p, "", writeTool("do", func() string { ran++; return "" }))
		s := h.draft()
		_, ch := ask(s, session.PromptRequest{Input: "x"})
		synctest.Wait()
		id := h.approvals(s)[0].ActionID
		first, second := make(chan error, 1), make(chan error, 1)
		s.ResolveApproval(id, "allow_always", func(err error) { first <- err })
		s.ResolveApproval(id, "reject_once", func(err error) { second <- err })
		synctest.Wait()
		if err := <-second; protocol.KindOf(err) != protocol.ActionAlreadyResolved {
			t.Errorf("second answer: %v", err)
		}
		if got := kinds(h.entries(s.ID)); strings.Contains(got, "approval_resolved") {
			t.Errorf("the answer is in the log before its rule: %s", got)
		}
		close(held)
		if err := <-first; err != nil {
			t.Errorf("first answer: %v", err)
		}
		if o := <-ch; o.Outcome.Outcome != session.OutcomeCompleted || ran != 1 {
			t.Errorf("outcome %+v, ran %d times", o, ran)
		}
		if len(told) != 1 || told[0] != `/w {"tool":"do"}` {
			t.Errorf("remembered %q", told)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestACancelWhileARuleIsBeingStoredWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		p := policy{judge: asks, remember: func(string, string, bool) { <-held }}
		h := policyHouse(t, memory.New(), say(calls(1)), p, "", writeTool("do", func() string { t.Error("it ran"); return "" }))
		s := h.draft()
		_, ch := ask(s, session.PromptRequest{Input: "x"})
		synctest.Wait()
		answered := make(chan error, 1)
		s.ResolveApproval(h.approvals(s)[0].ActionID, "allow_always", func(err error) { answered <- err })
		synctest.Wait()
		s.Cancel(session.CancelRequest{}, func(err error) {
			if err != nil {
				t.Errorf("cancel: %v", err)
			}
		})
		if o := <-ch; o.Outcome.Outcome != session.OutcomeCancelled {
			t.Errorf("outcome %+v", o)
		}
		close(held)
		if err := <-answered; protocol.KindOf(err) != protocol.ActionAlreadyResolved {
			t.Errorf("answer: %v", err)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestConsentIsForThePathThatWasAskedForAlsoAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		leads := "/outside/a"
		var remembered []string // told on a goroutine that has ended when the answer is on disk
		p := policy{judge: func(string, session.ToolCall) session.Verdict {
			return session.Verdict{Effect: "ask", Title: "Read " + leads, Outside: []string{leads}, Rule: json.RawMessage(`{"read":"` + leads + `"}`)}
		}, remember: func(_, rule string, allow bool) { remembered = append(remembered, fmt.Sprint(rule, allow)) }}
		var got [][]string
		act := writeTool("do", nil)
		act.run = func(_ context.Context, c session.ToolCall, _ session.Progress) (session.ToolResult, error) {
			got = append(got, c.Outside)
			return session.ToolResult{Data: "x"}, nil
		}
		m := say(calls(2), done())
		a := policyHouse(t, backing.Open("a"), m, p, "", act)
		s := a.draft()
		ask(s, session.PromptRequest{Input: "x"})
		synctest.Wait()
		allow(t, s, a.approvals(s)[0].ActionID)
		synctest.Wait() // c1 ran, c2 asks
		a.close()
		leads = "/outside/b" // somebody turned the link round
		b := policyHouse(t, backing.Open("b"), m, p, "", act)
		s2 := b.open(s.ID)
		asked := b.approvals(s2)
		answerWith(t, s2, asked[len(asked)-1].ActionID, "allow_always")
		synctest.Wait()
		if len(remembered) != 1 || remembered[0] != `{"read":"/outside/a"}true` {
			t.Errorf("what was asked for before is remembered as %q", remembered)
		}
		if len(got) != 2 || strings.Join(got[0], " ") != "/outside/a" || strings.Join(got[1], " ") != "/outside/a" {
			t.Errorf("the calls were let out to %q", got)
		}
		checkLog(t, b)
		b.close()
	})
}

func allow(t *testing.T, s *session.Session, action string) {
	t.Helper()
	answerWith(t, s, action, "allow_once")
}

func answerWith(t *testing.T, s *session.Session, action, option string) {
	t.Helper()
	ch := make(chan error, 1)
	s.ResolveApproval(action, option, func(err error) { ch <- err })
	if err := <-ch; err != nil {
		t.Fatal(err)
	}
}

func TestTheModeIsLookedAtBeforeEachCallAndTheFirstApprovalNamesTheSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy{judge: func(mode string, c session.ToolCall) session.Verdict {
			if mode == "full" {
				return session.Verdict{Effect: "allow"}
			}
			return asks(mode, c)
		}}
		ran := 0
		h := policyHouse(t, memory.New(), say(calls(3), done()), p, "no sandbox", writeTool("do", func() string { ran++; return "" }))
		s := h.draft()
		_, ch := ask(s, session.PromptRequest{Input: "x"})
		synctest.Wait()
		allow(t, s, h.approvals(s)[0].ActionID)
		synctest.Wait()
		full, applies := "full", make(chan string, 1)
		s.Change(session.Change{Mode: &full}, func(_ session.Selection, when string, err error) {
			if err != nil {
				t.Error(err)
			}
			applies <- when
		})
		if when := <-applies; when != "now" {
			t.Errorf("the mode applies %q", when)
		}
		asked := h.approvals(s)
		allow(t, s, asked[1].ActionID) // asked before the change: it stays asked
		if o := <-ch; o.Outcome.Outcome != session.OutcomeCompleted || ran != 3 {
			t.Errorf("outcome %+v, ran %d times", o, ran)
		}
		if asked = h.approvals(s); len(asked) != 2 || asked[0].Title != "Do it (no sandbox)" || asked[1].Title != "Do it" {
			t.Errorf("asked %d times, first %q", len(asked), asked[0].Title)
		}
		checkLog(t, h)
		h.close()
	})
}

// skills is a Guide with skills.
type skills map[string]string

func (skills) Parts(string) []session.GuidePart { return nil }
func (skills) Skills(string) []session.Skill    { return nil }
func (s skills) Skill(_, name string) (session.Skill, bool) {
	text, ok := s[name]
	return session.Skill{Name: name, Text: text}, ok
}

func TestSkillsNamedInAPromptAreGivenToTheModelAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := say(done(), done())
		loop, err := session.NewLoop(session.Loop{Models: m})
		if err != nil {
			t.Fatal(err)
		}
		store := memory.New()
		h := &house{t: t, store: store, model: m}
		h.all = session.NewSessions(session.Config{Store: store, Agent: loop, Models: m, Guide: skills{"deploy": "how to deploy", "review": "how to review"}})
		s := h.draft()
		_, ch := ask(s, session.PromptRequest{Input: "/skill:nope now"})
		if o := <-ch; protocol.KindOf(o.err) != protocol.InvalidRequest || !strings.HasSuffix(o.err.Error(), ": Unknown Skill: nope") {
			t.Errorf("unknown skill: %v", o.err)
		}
		h.prompt(s, "/skill:deploy with $HOME, $review, $deploy and $5")
		h.prompt(s, "again")
		var given []string
		for _, msg := range m.requests[1].Messages {
			if msg.Role == session.RoleSystem {
				given = append(given, msg.Text)
			}
		}
		if len(given) != 2 || !strings.HasSuffix(given[0], "how to deploy") || !strings.HasSuffix(given[1], "how to review") {
			t.Errorf("the model was given %q", given)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestAnAnswerRightBehindAResumptionFindsTheLeaseItWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		ran := 0
		act := writeTool("do", func() string { ran++; return "" })
		m := say(calls(1), done())
		a := newHouse(t, backing.Open("a"), m, act)
		s := a.draft()
		ask(s, session.PromptRequest{Input: "x"})
		synctest.Wait()
		action := a.approvals(s)[0].ActionID
		a.close()
		b := newHouse(t, backing.Open("b"), m, act)
		s2 := b.open(s.ID)
		_, resumed := ask(s2, session.PromptRequest{Resume: true}) // only waits, and has no use for the lease
		allow(t, s2, action)
		if o := <-resumed; o.err != nil || o.Outcome.Outcome != session.OutcomeCompleted || ran != 1 {
			t.Errorf("outcome %+v, ran %d times", o, ran)
		}
		checkLog(t, b)
		b.close()
	})
}
