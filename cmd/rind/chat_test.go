package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/store/memory"
)

// patience is how long a test waits for what must be shown.
const patience = 20 * time.Second

// display gathers what a person would see.
type display struct {
	mu      sync.Mutex
	text    bytes.Buffer
	read    int // up to here it was expected
	changed chan struct{}
}

func newDisplay() *display { return &display{changed: make(chan struct{}, 1)} }

func (d *display) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case d.changed <- struct{}{}:
	default:
	}
	return d.text.Write(p)
}

// expect waits for want behind what was expected before, and returns what stands before it.
func (d *display) expect(t *testing.T, want string) string {
	t.Helper()
	limit := time.After(patience)
	for {
		d.mu.Lock()
		rest := d.text.String()[d.read:]
		i := strings.Index(rest, want)
		if i >= 0 {
			d.read += i + len(want)
		}
		d.mu.Unlock()
		if i >= 0 {
			return rest[:i]
		}
		select {
		case <-d.changed:
		case <-limit:
			t.Fatalf("%q was not shown; since the last: %q", want, tail(rest))
		}
	}
}

func (d *display) all() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

func tail(s string) string {
	if len(s) > 2000 {
		return "…" + s[len(s)-2000:]
	}
	return s
}

// chatRuntime is a process of the runtime with tools of the tests' own: touch needs consent, ask asks a person, stay runs until cancelled.
type chatRuntime struct {
	store   *memory.Store
	all     *session.Sessions
	d       *dispatcher.RuntimeDispatcher
	touched int
	mu      sync.Mutex
}

type chatModels struct{ *script.Script }

func (chatModels) Default() session.Selection {
	return session.Selection{Provider: "play", Model: "m-1", Mode: "ask"}
}

func (m chatModels) Select(_ context.Context, sel session.Selection) (session.Selected, error) {
	return session.Selected{Model: m.Script, Info: session.ModelInfo{Provider: "play", ID: sel.Model, Window: 1000}}, nil
}

func (chatModels) List(context.Context, bool) ([]session.ModelInfo, string, error) {
	return []session.ModelInfo{{Provider: "play", ID: "m-1", Name: "First", API: "script"}}, "", nil
}

type chatTool struct {
	name, kind string
	run        func(ctx context.Context, p session.Progress) (session.ToolResult, error)
}

func (c *chatTool) Spec() session.ToolSpec {
	return session.ToolSpec{Name: c.name, Description: "d", Kind: c.kind, Schema: json.RawMessage(`{"type":"object"}`)}
}

func (c *chatTool) Run(ctx context.Context, _ session.ToolCall, p session.Progress) (session.ToolResult, error) {
	return c.run(ctx, p)
}

func (r *chatRuntime) tools() []session.Tool {
	return []session.Tool{
		&chatTool{"touch", "edit", func(context.Context, session.Progress) (session.ToolResult, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.touched++
			return session.ToolResult{Data: fmt.Sprintf("touched %d", r.touched), Changes: []protocol.FileChange{
				{FilePath: "a.txt", Lines: []protocol.DiffLine{{Kind: "added", Text: "x"}, {Kind: "added", Text: "y"}, {Kind: "removed", Text: "z"}}},
			}}, nil
		}},
		&chatTool{"ask", "think", func(ctx context.Context, p session.Progress) (session.ToolResult, error) {
			a, err := p.Ask(ctx, "Which colour?", []protocol.Choice{{Label: "red (Recommended)", Description: "warm"}, {Label: "blue", Description: "cold"}})
			return session.ToolResult{Data: map[string]string{"answer": a}}, err
		}},
		&chatTool{"update_plan", "think", func(context.Context, session.Progress) (session.ToolResult, error) {
			return session.ToolResult{Data: "Plan updated"}, nil
		}},
		&chatTool{"stay", "think", func(ctx context.Context, _ session.Progress) (session.ToolResult, error) {
			<-ctx.Done()
			return session.ToolResult{}, context.Cause(ctx)
		}},
	}
}

func launchChat(t *testing.T, back *memory.Backing, instance, text string, unattended bool, id session.SessionID) *chatRuntime {
	t.Helper()
	r := &chatRuntime{store: back.Open(instance)}
	models := chatModels{script.Must(text)}
	loop, err := session.NewLoop(session.Loop{
		Models: models, Tools: r.tools(), Unattended: unattended,
		Pause: func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.all = session.NewSessions(session.Config{Store: r.store, Agent: loop, Models: models})
	r.d = dispatcher.New(dispatcher.Config{Sessions: r.all, Workspace: "/w", Version: "0", Session: id})
	return r
}

func (r *chatRuntime) close(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := r.all.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	_ = r.store.Close()
}

// person sits before a conversation.
type person struct {
	t *testing.T
	*display
	r     *chatRuntime
	keys  *io.PipeWriter
	sigs  chan os.Signal
	ended chan error
}

// converse starts a conversation of a person at a terminal, or of piped prompts.
func converse(t *testing.T, r *chatRuntime, attended bool, prompt string) *person {
	t.Helper()
	in, keys := io.Pipe()
	p := &person{t: t, display: newDisplay(), r: r, keys: keys, sigs: make(chan os.Signal, 1), ended: make(chan error, 1)}
	talk := newTalk(&streams{in, p.display, p.display}, attended, p.sigs)
	go func() {
		p.ended <- talk.hold(t.Context(), &chosen{}, prompt, func(in io.Reader, out io.Writer) error {
			return r.d.Serve(context.Background(), in, out, dispatcher.Options{Envelope: envelope("rind")})
		})
		_ = in.Close()
	}()
	return p
}

func (p *person) types(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.keys, line+"\n"); err != nil {
		p.t.Fatalf("type %q: %v", line, err)
	}
}

// ends waits for the end and its exit code.
func (p *person) ends(code int) {
	p.t.Helper()
	select {
	case err := <-p.ended:
		got := exitOK
		if e, ok := errors.AsType[*exit](err); ok {
			got = e.code
		} else if err != nil {
			p.t.Fatalf("ended with %v", err)
		}
		if got != code {
			p.t.Errorf("ended with %d (%v), want %d; shown: %q", got, err, code, tail(p.all()))
		}
	case <-time.After(patience):
		p.t.Fatalf("did not end; shown: %q", tail(p.all()))
	}
	p.r.close(p.t)
}

// atTerminal runs f with a person at a terminal before a runtime that plays text.
func atTerminal(t *testing.T, text string, f func(p *person)) {
	t.Helper()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	f(converse(t, launchChat(t, memory.NewBacking(), "i", text, false, ""), true, ""))
}

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
