package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// secondWithin is how soon a second Ctrl-C has to follow to end the program.
const secondWithin = 2 * time.Second

// talk is a conversation: what the person types goes out as requests, what the runtime tells is shown. All of it belongs to the goroutine
// that runs hold.
type talk struct {
	std      *streams
	screen   *screen
	wire     *wire
	sigs     <-chan os.Signal
	attended bool // a person sits at a terminal; else standard input is a list of prompts

	session  string
	model    string // what the session is set to, as far as the person was told
	mode     string
	turn     string // the turn that runs, by its events; "" for none
	prompts  int    // of ours without an answer
	requests int    // others without an answer
	steered  map[string]bool
	open     []*question // oldest first
	asked    *question   // the one that is shown
	askedAt  time.Time
	stopped  time.Time // of the last Ctrl-C that cancelled
	ended    bool      // nothing more will be typed
	leaving  bool
	code     error // what the program ends with
	last     error // how the last turn ended, as an exit
	used     bool  // the session has turns
}

func newTalk(std *streams, attended bool, sigs <-chan os.Signal) *talk {
	return &talk{std: std, screen: newScreen(std), sigs: sigs, attended: attended, steered: map[string]bool{}}
}

// hold serves one connection and talks over it until the person ends it. It returns when the connection's goroutines have ended; the one that
// reads standard input may be left in a read.
func (t *talk) hold(ctx context.Context, f *chosen, prompt string, serve func(io.Reader, io.Writer) error) error {
	ignorePipe() // an answer that nobody takes ends the conversation, not the process in the middle of it
	serverIn, toServer := io.Pipe()
	fromServer, serverOut := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := serve(serverIn, serverOut)
		_ = serverIn.Close()
		_ = serverOut.Close()
		served <- err
	}()
	lines := make(chan told, 64)
	go receive(fromServer, lines)
	t.wire = &wire{to: toServer}
	err := t.run(ctx, f, prompt, lines)
	_ = toServer.Close() // the end of the input is an end too, where shutdown was not sent
	for range lines {    //nolint:revive // what is told behind the end
	}
	<-served
	if err != nil {
		return err
	}
	return t.code
}

func (t *talk) run(ctx context.Context, f *chosen, prompt string, lines <-chan told) error {
	if err := t.start(f, prompt, lines); err != nil {
		return err
	}
	typing, typedOut := make(chan typed, 16), make(chan error, 1)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		err := readTyped(t.std.in, t.attended, func(in typed) bool {
			select {
			case typing <- in:
				return true
			case <-stop:
				return false
			}
		})
		close(typing)
		typedOut <- err
	}()
	done := ctx.Done()
	for {
		t.rest()
		if t.screen.err != nil {
			return fmt.Errorf("write the answer: %w", t.screen.err)
		}
		take := (<-chan typed)(typing)
		if t.ended || t.leaving || !t.attended && t.busy() { // without a person, one prompt after the other
			take = nil
		}
		select {
		case line, ok := <-lines:
			if !ok {
				if !t.leaving {
					return errors.New("the runtime ended the connection")
				}
				return nil
			}
			if err := t.hear(&line); err != nil {
				return err
			}
		case in, ok := <-take:
			if ok {
				if err := t.enter(in); err != nil {
					return err
				}
				continue
			}
			t.ended = true
			if err := <-typedOut; err != nil {
				t.screen.fault(err.Error())
				t.last = &exit{code: exitFailed}
			}
			if t.attended && t.busy() && len(t.open) == 0 {
				t.screen.line(t.screen.colour.dim("(the input has ended; the turn goes on to its end)"))
			}
		case s := <-t.sigs:
			if err := t.interrupt(s); err != nil {
				return err
			}
		case <-done:
			done = nil
			if err := t.leave(nil); err != nil {
				return err
			}
		}
	}
}

// entered is what is told of a session that a conversation is in from now on.
type entered struct {
	SessionID string             `json:"session_id"`
	Model     string             `json:"model"`
	Provider  string             `json:"provider"`
	Mode      string             `json:"approval_mode"`
	Workspace string             `json:"workspace_root"`
	Preview   string             `json:"resume_preview"`
	State     *session.TurnState `json:"turn_state"`
	Live      *session.LiveTurn  `json:"live_turn"`
}

// start opens the session as the flags say, and asks the prompt of the command line.
func (t *talk) start(f *chosen, prompt string, lines <-chan told) error {
	var hello entered
	if err := t.wait(lines, "initialize", map[string]any{"client_capabilities": []string{"rind/approvals", "rind/notices"}}, &hello); err != nil {
		return asExit(err)
	}
	t.session = hello.SessionID
	if f.model != "" {
		params := map[string]any{"model": f.model}
		if f.provider != "" {
			params["provider_id"] = f.provider
			hello.Provider = f.provider
		}
		if err := t.wait(lines, "model/set", params, nil); err != nil {
			return asExit(err)
		}
		hello.Model = f.model
	}
	if f.mode != "" {
		if err := t.wait(lines, "rind/session/set_mode", map[string]any{"mode": f.mode}, nil); err != nil {
			return asExit(err)
		}
		hello.Mode = f.mode
	}
	if t.attended {
		if hello.Preview != "" {
			t.screen.line(t.screen.colour.dim(unturned(hello.Preview)))
			t.used = true
		}
		t.screen.line(t.screen.colour.dim(fmt.Sprintf("%s (%s), mode %s. /help lists commands, Ctrl-D ends.", plainLine(hello.Model), plainLine(hello.Provider), hello.Mode)))
	}
	t.model, t.mode, t.screen.root = hello.Model, hello.Mode, hello.Workspace
	t.found(hello.State, hello.Live)
	if strings.TrimSpace(prompt) == "" {
		return nil
	}
	return t.prompt(prompt, nil)
}

// found takes up the turn that was open before we came.
func (t *talk) found(state *session.TurnState, live *session.LiveTurn) {
	if state == nil || state.Status != "running" {
		return
	}
	if live == nil {
		t.screen.line("The last turn was cut off. /resume goes on with it; anything else you ask closes it.")
		return
	}
	if !t.attended {
		return // the next prompt closes it, or is told that it is somebody else's
	}
	t.turn = string(state.TurnID)
	if !state.Waiting {
		t.screen.line("A turn is running in this session.")
	}
	t.open = questionsOf(live)
}

// wait calls and hears until the answer is there. Before the conversation only.
func (t *talk) wait(lines <-chan told, method string, params, result any) error {
	var got *reply
	if err := t.wire.call(method, params, func(r reply) { got = &r }); err != nil {
		return err
	}
	for got == nil {
		line, ok := <-lines
		if !ok {
			return errors.New("the runtime ended the connection")
		}
		if line.Kind == "response" {
			t.wire.settle(&line)
		}
	}
	return got.into(result)
}

func (t *talk) busy() bool { return t.prompts > 0 || t.turn != "" || t.requests > 0 }

// rest does what is due when nothing goes on: ask what is open, end, or invite to type.
func (t *talk) rest() {
	if t.leaving {
		return
	}
	nobody := t.ended || !t.attended
	if len(t.open) > 0 && !nobody && (t.asked == nil || !t.asked.sent && !t.screen.asking) {
		t.pose()
	}
	switch {
	case nobody && len(t.open) > 0:
		t.screen.linef("The turn waits for an answer; it goes on with: rind chat --session %s", t.session)
		_ = t.leave(&exit{code: exitConsent})
	case t.busy():
	case t.ended:
		code := t.last
		if t.attended {
			code = nil // the person saw each turn's end
		}
		_ = t.leave(code)
	case t.attended && !t.screen.asking:
		t.screen.ask("> ")
	}
}

// pose shows the oldest question.
func (t *talk) pose() {
	if t.asked != t.open[0] {
		t.asked, t.askedAt = t.open[0], time.Now()
	}
	t.screen.ask(t.asked.show(t.screen.colour))
}

// leave ends the conversation gracefully.
func (t *talk) leave(code error) error {
	if t.leaving {
		return nil
	}
	t.leaving, t.code = true, code
	if t.attended {
		t.screen.settle()
		if t.used {
			t.screen.line(t.screen.colour.dim("Go on later with: rind chat --session " + t.session))
		}
	}
	return t.wire.call("shutdown", struct{}{}, func(reply) {})
}

// interrupt takes a signal: Ctrl-C cancels what runs, and ends the program at rest or when it comes again soon; others end it.
func (t *talk) interrupt(s os.Signal) error {
	now := time.Now()
	switch {
	case s != os.Interrupt:
		return t.leave(t.whenCutOff(exitCancelled))
	case t.turn == "" && t.prompts == 0, !t.stopped.IsZero() && now.Sub(t.stopped) < secondWithin:
		return t.leave(&exit{code: exitInterrupted})
	}
	t.stopped = now
	return t.cancel()
}

// whenCutOff is code while a turn runs.
func (t *talk) whenCutOff(code int) error {
	if t.turn == "" && t.prompts == 0 {
		return nil
	}
	return &exit{code: code}
}

func (t *talk) cancel() error {
	if t.turn == "" && t.prompts == 0 {
		t.screen.line("Nothing runs.")
		return nil
	}
	t.screen.line(t.screen.colour.dim("(cancelling)"))
	return t.ask("session/cancel", map[string]any{}, nil, func(err error) {
		if err != nil && protocol.KindOf(err) != protocol.TurnNotActive {
			t.screen.fault(messageOf(err))
		}
	})
}

// ask calls a method of the current session; then gets the error of the answer.
func (t *talk) ask(method string, params map[string]any, result any, then func(error)) error {
	t.requests++
	params["session_id"] = t.session
	return t.wire.call(method, params, func(r reply) {
		t.requests--
		then(r.into(result))
	})
}

// prompt asks for a turn. What is refused is shown again, so that it can be typed anew.
func (t *talk) prompt(text string, transient json.RawMessage) error {
	params := map[string]any{"session_id": t.session, "input": text}
	if transient != nil {
		params["transient_system_messages"] = transient
	}
	t.prompts++
	return t.wire.call("session/prompt", params, t.answered(text, ""))
}

// answered takes the answer to a prompt of text. idle is what is said where no turn can go on; "" for the runtime's own words.
func (t *talk) answered(text, idle string) func(reply) {
	return func(r reply) {
		t.prompts--
		var res struct {
			Turn    string             `json:"turn_id"`
			Outcome string             `json:"outcome"`
			Fault   *session.TurnFault `json:"error"`
		}
		if err := r.into(&res); err != nil {
			if idle != "" && protocol.KindOf(err) == protocol.TurnNotActive {
				t.screen.line(idle)
				return
			}
			t.screen.fault(messageOf(err))
			t.back("not asked", text)
			t.last = asExit(err)
			if e, ok := errors.AsType[*exit](t.last); ok {
				t.last = &exit{code: e.code} // it was shown
			}
			return
		}
		if t.turn == res.Turn { // an end that could not be stored has no event
			t.turn = ""
		}
		t.last = t.exitOf(session.Outcome{Outcome: res.Outcome, Fault: res.Fault})
		if res.Fault != nil && res.Outcome == session.OutcomeFailed {
			t.screen.fault(res.Fault.Message)
		}
	}
}

// resume goes on with a turn that was cut off.
func (t *talk) resume() error {
	t.prompts++
	return t.wire.call("session/prompt", map[string]any{"session_id": t.session, "resume": true}, t.answered("", "Nothing was cut off here."))
}

// back shows a text that went nowhere.
func (t *talk) back(why, text string) {
	if text = strings.TrimSpace(printable(text)); text != "" {
		t.screen.line(why + ": " + text)
	}
}

// exitOf is the exit code of a turn, for a conversation that was piped in.
func (t *talk) exitOf(o session.Outcome) error {
	switch o.Outcome {
	case session.OutcomeCompleted:
		if missing := t.screen.consentMissing(); missing != "" {
			return &exit{code: exitConsent, text: missing}
		}
		return nil
	case session.OutcomeCancelled:
		return &exit{code: exitCancelled}
	case session.OutcomeWaiting:
		return &exit{code: exitConsent}
	}
	if o.Fault != nil && o.Fault.Type == protocol.FailConfiguration {
		return &exit{code: exitConfig}
	}
	return &exit{code: exitFailed}
}
