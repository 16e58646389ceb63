package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/protocol"
)

// own are the commands that chat answers itself.
var own = []struct{ usage, text string }{
	{"/cancel", "Cancel the turn, as Ctrl-C does"},
	{"/exit, /quit", "End; a running turn is cancelled"},
	{"/mode [ask|edit|read|full]", "Show or set what runs unasked"},
	{"/new", "Begin a new session"},
	{"/resume", "Go on with a turn that was cut off"},
	{"/switch <id>", "Go on with another session"},
}

// enter takes one thing the person typed.
func (t *talk) enter(in typed) error {
	t.screen.answered()
	if in.cut {
		t.screen.line("A line of this was longer than the terminal takes: its end may be missing. Put long text into a file, or pipe it to rind prompt.")
	}
	text := strings.TrimSpace(in.text)
	if t.asked != nil && in.at.After(t.askedAt) && !t.isCommand(in.text) {
		return t.answer(in.text)
	}
	switch {
	case text == "":
		return nil
	case t.isCommand(in.text):
		return t.command(text)
	case t.turn != "" || t.prompts > 0:
		return t.steer(text)
	}
	return t.prompt(in.text, nil)
}

// isCommand reports whether a line is a command. While a question is open an answer may begin with a slash too: only chat's own words count.
func (t *talk) isCommand(line string) bool {
	if !strings.HasPrefix(line, "/") || strings.Contains(strings.TrimSpace(line), "\n") && !strings.HasPrefix(line, "/skill:") {
		return false
	}
	if t.asked == nil || t.asked.consent {
		return true
	}
	switch strings.TrimSpace(line) {
	case "/cancel", "/exit", "/quit":
		return true
	}
	return false
}

// answer gives the line to the question that is shown.
func (t *talk) answer(line string) error {
	q := t.asked
	answer, ok := q.answer(line)
	if !ok {
		t.screen.line(q.again())
		return nil
	}
	q.sent = true
	method, params := "rind/user-question/respond", map[string]any{"tool_call_id": q.call, "answer": answer}
	if q.consent {
		method, params = "rind/approval/respond", map[string]any{"action_id": q.id, "option_id": answer}
	}
	return t.ask(method, params, nil, func(err error) {
		switch {
		case err == nil:
		case protocol.KindOf(err) == protocol.ActionAlreadyResolved || protocol.KindOf(err) == protocol.ActionNotFound || protocol.KindOf(err) == protocol.QuestionNotFound:
			t.screen.line("(it was answered elsewhere before)")
			q.sent = true
			t.resolved(q.id, "")
		default:
			t.screen.fault(messageOf(err))
			q.sent = false // it is asked again
		}
	})
}

// steer tells the running turn something.
func (t *talk) steer(text string) error {
	var res struct {
		InputID string `json:"input_id"`
	}
	return t.ask("rind/session/steer", map[string]any{"input": text}, &res, func(err error) {
		switch {
		case err == nil:
			t.steered[res.InputID] = true
			t.screen.line(t.screen.colour.dim("(queued: the agent is told at its next step)"))
		case protocol.KindOf(err) == protocol.TurnNotActive: // it ended meanwhile, or has not begun
			if err := t.prompt(text, nil); err != nil {
				t.screen.fault(messageOf(err))
			}
		default:
			t.screen.fault(messageOf(err))
			t.back("not told", text)
		}
	})
}

// command runs a line that begins with a slash.
func (t *talk) command(line string) error {
	name, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch name {
	case "/exit", "/quit":
		return t.leave(nil)
	case "/cancel":
		return t.cancel()
	case "/new":
		return t.change("session/new", "")
	case "/switch":
		return t.change("session/switch", rest)
	case "/resume":
		if t.turn != "" || t.prompts > 0 {
			t.screen.line("A turn is running.")
			return nil
		}
		return t.resume()
	case "/mode":
		if rest == "" {
			t.screen.line("Mode: " + plainLine(t.mode))
			return nil
		}
		var res struct{ Mode string }
		return t.ask("rind/session/set_mode", map[string]any{"mode": rest}, &res, func(err error) {
			if err != nil {
				t.screen.fault(messageOf(err))
				return
			}
			t.mode = res.Mode
			t.screen.line("Mode: " + plainLine(res.Mode))
		})
	}
	var res struct {
		Text    string `json:"text"`
		Prefill string `json:"prompt_prefill"`
		Next    *struct {
			Input     string          `json:"input"`
			Transient json.RawMessage `json:"transient_system_messages"`
		} `json:"next_prompt"`
	}
	return t.ask("rind/command/execute", map[string]any{"input": line}, &res, func(err error) {
		if err != nil {
			t.screen.fault(messageOf(err))
			return
		}
		if res.Text != "" {
			t.screen.settle()
			t.screen.say(res.Text + "\n")
		}
		switch {
		case name == "/help" && rest == "":
			for _, c := range own {
				t.screen.say(fmt.Sprintf("  %-*s %s\n", dispatcher.UsageColumns, c.usage, c.text))
			}
		case name == "/model" && strings.HasPrefix(res.Text, "Session model updated."):
			if words := strings.Fields(rest); len(words) == 2 {
				t.model = words[1]
			}
		}
		t.back("try", res.Prefill)
		if res.Next != nil {
			if err := t.prompt(res.Next.Input, res.Next.Transient); err != nil {
				t.screen.fault(messageOf(err))
			}
		}
	})
}

// change goes over to another session, a new one or one that is there.
func (t *talk) change(method, id string) error {
	if t.turn != "" || t.prompts > 0 {
		t.screen.line("A turn is running: /cancel it first.")
		return nil
	}
	if method == "session/switch" && id == "" {
		t.screen.line("Name the session: /switch ID; /sessions lists them.")
		return nil
	}
	old := t.session
	params := map[string]any{}
	if id != "" {
		params["session_id"] = id
	}
	t.requests++
	return t.wire.call(method, params, func(r reply) {
		t.requests--
		var res entered
		if err := r.into(&res); err != nil {
			t.screen.fault(messageOf(err))
			return
		}
		if res.SessionID == old {
			t.screen.line("This is that session.")
			return
		}
		if t.used {
			t.screen.line(t.screen.colour.dim("Go on with the old one with: /switch " + old))
		}
		t.session, t.used, t.open, t.asked = res.SessionID, res.Preview != "", nil, nil
		_ = t.wire.call("session/unsubscribe", map[string]any{"session_id": old}, func(reply) {}) // its end is told by the reader
		if res.Preview == "" {
			t.screen.line("New session.")
		} else {
			t.screen.line(t.screen.colour.dim(unturned(res.Preview)))
		}
		t.screen.root = res.Workspace
		t.settings(res.Model, res.Mode)
		t.found(res.State, res.Live)
	})
}
