package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

func TestLinesTypedWhileTheAgentWorksSteerIt(t *testing.T) {
	play := `{"turns":[{"steps":[{"text":"Working. "},{"call":{"name":"ask","arguments":{}}}]},{"steps":[{"text":"You said: "},{"echo":true}]}]}`
	atTerminal(t, play, func(p *person) {
		p.expect(t, "> ")
		p.types("begin")
		p.expect(t, "number or text: ")
		id, err := p.r.all.Latest(t.Context(), "/w")
		if err != nil {
			t.Fatal(err)
		}
		defer id.Close()
		steered := make(chan error, 1)
		id.Enqueue(protocol.ModeSteering, "from elsewhere", "", func(_ session.InputResult, err error) { steered <- err })
		if err := <-steered; err != nil {
			t.Fatal(err)
		}
		p.types("2")
		p.expect(t, "(told the agent) from elsewhere")
		p.expect(t, "You said: from elsewhere")
		p.types("/exit")
		p.ends(exitOK)
	})
}

func TestSteeringIsShownAsQueuedAndWhenItIsTold(t *testing.T) {
	play := `{"turns":[{"steps":[{"text":"Working. "},{"call":{"name":"stay","arguments":{}}}]},{"steps":[{"text":"x"}]}]}`
	atTerminal(t, play, func(p *person) {
		p.expect(t, "> ")
		p.types("begin")
		p.expect(t, "• stay")
		p.types("use tabs")
		p.expect(t, "(queued: the agent is told at its next step)")
		p.types(strings.Repeat("long ", 2000))
		p.expect(t, "rind: steering input exceeds 8000 characters.")
		p.expect(t, "not told: long long")
		p.sigs <- os.Interrupt
		p.expect(t, "not told (the turn was cancelled): use tabs")
		p.expect(t, "Cancelled: User interrupted")
		p.expect(t, "> ")
		_ = p.keys.Close()
		p.ends(exitOK)
	})
}

func TestCtrlCCancelsThenEnds(t *testing.T) {
	play := `{"turns":[{"steps":[{"text":"Working. "},{"call":{"name":"stay","arguments":{}}}]},{"steps":[{"text":"x"}]}]}`
	t.Run("at rest it ends", func(t *testing.T) {
		atTerminal(t, play, func(p *person) {
			p.expect(t, "> ")
			p.sigs <- os.Interrupt
			p.ends(exitInterrupted)
		})
	})
	t.Run("a second one ends", func(t *testing.T) {
		atTerminal(t, play, func(p *person) {
			p.expect(t, "> ")
			p.types("begin")
			p.expect(t, "• stay")
			p.sigs <- os.Interrupt
			p.expect(t, "(cancelling)")
			p.sigs <- os.Interrupt
			p.ends(exitInterrupted)
		})
	})
}

func TestPipedPromptsAreAskedOneAfterTheOther(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	play := `{"turns":[{"match":"one","steps":[{"text":"First answer."}]},{"match":"two","steps":[{"text":"Second answer."}]},{"match":"bad","steps":[{"fail":{"fault":"rejected","message":"It refuses."}}]}]}`
	for name, c := range map[string]struct {
		input string
		code  int
		shown []string
	}{
		"answers":      {"one\ntwo", exitOK, []string{"First answer.\n", "Second answer.\n"}},
		"continued":    {"one \\\nmore\n", exitOK, []string{"First answer.\n"}},
		"the last one": {"one\nbad\n", exitFailed, []string{"First answer.", "rind: It refuses."}},
		"and goes on":  {"bad\n\none\n", exitOK, []string{"rind: It refuses.", "First answer."}},
		"commands":     {"/model\n/nope\n", exitOK, []string{"Model: m-1\n", "Unknown command: /nope\n"}},
		"nothing":      {"", exitOK, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := converse(t, launchChat(t, memory.NewBacking(), "i", play, true, ""), false, "")
			go func() {
				_, _ = io.WriteString(p.keys, c.input)
				_ = p.keys.Close()
			}()
			p.ends(c.code)
			for _, s := range c.shown {
				p.expect(t, s)
			}
			if strings.Contains(p.all(), "> ") {
				t.Errorf("nobody was there to be invited: %q", p.all())
			}
		})
	}
}

func TestPlansAreShownAsSteps(t *testing.T) {
	play := `{"turns":[{"steps":[{"call":{"name":"update_plan","arguments":{"plan":[{"step":"look","status":"completed"},{"step":"write","status":"in_progress"},{"step":"test","status":"pending"}]}}}]},{"steps":[{"text":"Planned."}]}]}`
	atTerminal(t, play, func(p *person) {
		p.expect(t, "> ")
		p.types("plan")
		p.expect(t, "[x] look\n  [>] write\n  [ ] test\n")
		p.expect(t, "Planned.")
		p.types("/exit")
		p.ends(exitOK)
	})
}

func TestANewSessionBeginsAndTheOldOneGoesOn(t *testing.T) {
	play := `{"turns":[{"steps":[{"text":"First."}]},{"steps":[{"text":"Second."}]}]}`
	atTerminal(t, play, func(p *person) {
		p.expect(t, "> ")
		p.types("one")
		p.expect(t, "First.")
		p.expect(t, "> ")
		p.types("/new")
		p.expect(t, "Go on with the old one with: ")
		back := strings.TrimSpace(p.expect(t, "New session."))
		p.types("two")
		p.expect(t, "First.") // another session, another conversation
		p.expect(t, "> ")
		p.types("/switch nowhere")
		p.expect(t, "rind: Session not found: nowhere")
		p.types(back)
		p.expect(t, "- user: one\n- assistant: First.")
		p.types("three")
		p.expect(t, "Second.")
		p.types("/mode read")
		p.expect(t, "Mode: read")
		p.types("/mode never")
		p.expect(t, "rind: ")
		p.types("/exit")
		p.ends(exitOK)
	})
}

func TestARetriedAnswerIsSaid(t *testing.T) {
	play := `{"turns":[{"steps":[{"text":"Half of "},{"cut":true},{"text":"The whole answer."}]}]}`
	atTerminal(t, play, func(p *person) {
		p.expect(t, "> ")
		p.types("go")
		p.expect(t, "Half of \nthe answer broke off; trying again (attempt 1): its text above is void\n")
		p.expect(t, "The whole answer.")
		p.types("/exit")
		p.ends(exitOK)
	})
}

func TestWhatIsRefusedIsShownAgain(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	play := `{"turns":[{"steps":[{"text":"Working. "},{"call":{"name":"stay","arguments":{}}}]},{"steps":[{"text":"x"}]}]}`
	back := memory.NewBacking()
	busy := converse(t, launchChat(t, back, "one", play, false, ""), true, "begin")
	busy.expect(t, "• stay")
	s, err := busy.r.all.Latest(t.Context(), "/w")
	if err != nil {
		t.Fatal(err)
	}
	id := s.ID
	s.Close()

	other := converse(t, launchChat(t, back, "two", play, true, id), false, "do not lose this")
	other.expect(t, "rind: Session is in use by another process.\nnot asked: do not lose this\n")
	_ = other.keys.Close()
	other.ends(exitFailed)

	busy.sigs <- os.Interrupt
	busy.expect(t, "Cancelled")
	_ = busy.keys.Close()
	busy.ends(exitOK)
}

func TestTheNextPromptOfACommandIsAsked(t *testing.T) {
	play := `{"turns":[{"match":"RIND.md","steps":[{"expect":{"system":"RIND.md"}},{"text":"I wrote it."}]}]}`
	atTerminal(t, play, func(p *person) {
		p.expect(t, "> ")
		p.types("/init")
		p.expect(t, "Initializing project RIND.md")
		p.expect(t, "I wrote it.")
		p.types("/exit")
		p.ends(exitOK)
	})
}

func TestWhatTheModelSaysCannotSteerTheTerminal(t *testing.T) {
	play := `{"turns":[{"steps":[{"text":"a\u001b[31mb\u009bc\u0007d\re"},{"call":{"name":"touch","arguments":{"path":"\u202etxt\u001b[2J"}}}]},{"steps":[{"text":"Done."}]}]}`
	atTerminal(t, play, func(p *person) {
		p.expect(t, "> ")
		p.types("go")
		p.expect(t, "a[31mbcde")
		p.expect(t, "[N]ever: ")
		p.types("y")
		p.expect(t, "• touch: \uFFFDtxt[2J")
		p.expect(t, "Done.")
		p.types("/exit")
		p.ends(exitOK)
		if strings.ContainsAny(p.all(), "\x1b\u009b\a\r\u202e") {
			t.Errorf("control characters were shown: %q", p.all())
		}
	})
}

// TestAnInputThatNobodyGotIsShownWithTheReason: also one that came too late while the program ends, and so is no prompt any more.
func TestAnInputThatNobodyGotIsShownWithTheReason(t *testing.T) {
	for reason, want := range map[string]string{
		protocol.ReturnedCancelled: "not told (the turn was cancelled): use tabs", protocol.ReturnedFailed: "not told (the turn failed): use tabs",
		protocol.ReturnedTurnEnded: "not told (the turn ended before it could be): use tabs",
	} {
		var note bytes.Buffer
		chat := newTalk(&streams{nil, io.Discard, &note}, false, nil)
		chat.steered["i1"], chat.leaving = true, true
		if err := chat.returned(&protocol.QueuedInputReturned{InputID: "i1", Input: "use tabs", Reason: reason}); err != nil || strings.TrimSpace(note.String()) != want {
			t.Errorf("%s: %v, %q", reason, err, note.String())
		}
	}
}
