package main

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

const touchTwice = `{"turns":[{"steps":[{"text":"Now I touch it. "},{"call":{"name":"touch","arguments":{"path":"a.txt"}}}]},{"steps":[{"text":"Done."}]}]}`

func TestConsentIsGivenByTheExactWordsOnly(t *testing.T) {
	for _, c := range []struct {
		answer  string
		touched int
		shown   string
	}{
		{"y", 1, "  ok"},
		{"Yes", 1, "  ok"},
		{"a", 1, "  ok"},
		{"n", 0, "  rejected: The user rejected this call."},
		{"N", 0, "  rejected: The user rejected this call."},
		{"never", 0, "  rejected: The user rejected this call."},
	} {
		t.Run(c.answer, func(t *testing.T) {
			atTerminal(t, touchTwice, func(p *person) {
				p.expect(t, "> ")
				p.types("touch it")
				p.expect(t, "[y]es once, [a]lways, [n]o, [N]ever: ")
				for _, no := range []string{"maybe", "", "1", "yes please"} {
					p.types(no)
					p.expect(t, "[y]es once, [a]lways, [n]o, [N]ever: ")
				}
				p.types(c.answer)
				p.expect(t, c.shown)
				p.expect(t, "Done.")
				p.expect(t, "> ")
				_ = p.keys.Close()
				p.ends(exitOK)
				if p.r.touched != c.touched {
					t.Errorf("the tool ran %d times, want %d", p.r.touched, c.touched)
				}
				if c.touched == 1 && !strings.Contains(p.all(), "• touch: a.txt\n  a.txt: +2 -1\n  ok\n") {
					t.Errorf("call, change and outcome are not shown: %q", p.all())
				}
			})
		})
	}
}

func TestAQuestionIsAnsweredByNumberOrText(t *testing.T) {
	for answer, told := range map[string]string{"1": "red (Recommended)", "2": "blue", "3": "3", "/usr/bin green": "/usr/bin green"} {
		t.Run(told, func(t *testing.T) {
			play := `{"turns":[{"steps":[{"call":{"name":"ask","arguments":{}}}]},{"steps":[{"expect":{"toolResult":` + string(protocol.MustMarshal(told)) + `}},{"text":"I see."}]}]}`
			atTerminal(t, play, func(p *person) {
				p.expect(t, "> ")
				p.types("ask me")
				p.expect(t, "Which colour?\n  1. red (Recommended) - warm\n  2. blue - cold\nnumber or text: ")
				p.types("")
				p.expect(t, "number or text: ")
				p.types(answer)
				p.expect(t, "I see.")
				p.expect(t, "> ")
				p.types("/exit")
				p.ends(exitOK)
			})
		})
	}
}

func TestPendingQuestionsComeOneAfterTheOther(t *testing.T) {
	play := `{"turns":[{"steps":[{"call":{"name":"touch","arguments":{"path":"one"}}},{"call":{"name":"touch","arguments":{"path":"two"}}},{"call":{"name":"ask","arguments":{}}}]},{"steps":[{"text":"Done."}]}]}`
	atTerminal(t, play, func(p *person) {
		p.expect(t, "> ")
		p.types("go")
		p.expect(t, "[N]ever: ")
		p.types("y")
		p.expect(t, "• touch: one")
		p.expect(t, "[N]ever: ")
		p.types("n")
		p.expect(t, "• touch: two\n  rejected")
		p.expect(t, "number or text: ")
		p.types("2")
		p.expect(t, "Done.")
		p.types("/quit")
		p.ends(exitOK)
	})
}

func TestWhatIsAnsweredElsewhereIsWithdrawn(t *testing.T) {
	atTerminal(t, touchTwice, func(p *person) {
		p.expect(t, "> ")
		p.types("touch it")
		p.expect(t, "[N]ever: ")
		id, action := p.pending()
		s, err := p.r.all.Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		done := make(chan error, 1)
		s.ResolveApproval(action, "allow_once", func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		p.expect(t, "(answered elsewhere: allowed)")
		p.expect(t, "Done.")
		p.types("/exit")
		p.ends(exitOK)
	})
}

// pending is the session and the approval that is open in it.
func (p *person) pending() (session.SessionID, string) {
	p.t.Helper()
	metas, _, err := p.r.all.List(p.t.Context(), session.Query{Workspace: "/w", Limit: 1})
	if err != nil || len(metas) != 1 {
		p.t.Fatalf("sessions: %v, %v", metas, err)
	}
	s, err := p.r.all.Open(p.t.Context(), metas[0].ID)
	if err != nil {
		p.t.Fatal(err)
	}
	defer s.Close()
	action := ""
	if err := s.InspectNow(p.t.Context(), func(v *session.View) {
		if live := v.Live(true); live != nil && len(live.Approvals) > 0 {
			action = live.Approvals[0].ActionID
		}
	}); err != nil || action == "" {
		p.t.Fatalf("no approval is open (%v)", err)
	}
	return metas[0].ID, action
}

func TestAnOpenQuestionOutlivesTheTerminalAndIsAskedAgain(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	back := memory.NewBacking()
	p := converse(t, launchChat(t, back, "one", touchTwice, false, ""), true, "touch it")
	p.expect(t, "[N]ever: ")
	id, _ := p.pending()
	_ = p.keys.Close()
	p.expect(t, "The turn waits for an answer; it goes on with: rind chat --session "+string(id))
	p.ends(exitConsent)

	p = converse(t, launchChat(t, back, "two", touchTwice, false, id), true, "")
	p.expect(t, "[N]ever: ")
	p.types("y")
	p.expect(t, "Done.")
	p.expect(t, "> ")
	_ = p.keys.Close()
	p.ends(exitOK)
	if p.r.touched != 1 {
		t.Errorf("the tool ran %d times", p.r.touched)
	}
}

func TestPipedInputIsNeverConsent(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	p := converse(t, launchChat(t, memory.NewBacking(), "i", touchTwice, true, ""), false, "touch it")
	_ = p.keys.Close()
	err := <-p.ended
	e, ok := errors.AsType[*exit](err)
	if !ok || e.code != exitConsent || !strings.Contains(e.text, "touch: a.txt") || !strings.Contains(e.text, "--mode edit") {
		t.Errorf("ended with %#v", err)
	}
	p.r.close(t)
	if p.r.touched != 0 {
		t.Error("the tool ran")
	}
}
