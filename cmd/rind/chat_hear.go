package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// hear takes one line of the runtime.
func (t *talk) hear(line *told) error {
	if line.Kind == "response" {
		t.wire.settle(line)
		return nil
	}
	if line.Method != "session/update" || line.Session != t.session && line.Session != "" {
		return nil
	}
	name, b, err := line.body()
	if err != nil {
		return fmt.Errorf("read event %s: %w", name, err)
	}
	switch b := b.(type) {
	case nil:
		return t.hearLoose(name, line.Event)
	case *protocol.TurnStarted:
		t.started(line.Turn, b)
	case *protocol.ApprovalRequested:
		t.open = append(t.open, approvalOf(b))
	case *protocol.UserQuestionRequested:
		t.open = append(t.open, questionOf(b))
	case *protocol.ApprovalResolved:
		t.resolved(b.ActionID, b.Outcome)
	case *protocol.UserQuestionAnswered:
		t.resolved(b.ToolCallID, b.Answer)
	case *protocol.QueuedInputDelivered:
		delete(t.steered, b.InputID)
		t.screen.line(t.screen.colour.dim("(told the agent) ") + t.screen.cut(b.Input, 18))
	case *protocol.QueuedInputReturned:
		return t.returned(b)
	case *protocol.TurnCompleted:
		t.over(line.Turn, time.Duration(b.DurationMS)*time.Millisecond)
	case *protocol.TurnFailed:
		t.over(line.Turn, 0)
		if t.prompts == 0 { // nobody else will say so
			t.screen.fault(b.Error)
		}
	case *protocol.TurnCancelled:
		t.over(line.Turn, 0)
		t.screen.line("Cancelled: " + plainLine(b.Reason))
	case *protocol.SessionSettingsChanged:
		t.settings(b.Model, b.ApprovalMode)
	case *protocol.TaskContinuationFailed:
		t.screen.fault(b.Error)
	default:
		t.screen.entry(b)
	}
	return nil
}

// settings tells the person what the session is set to, where that is news: what they changed themselves was answered.
func (t *talk) settings(model, mode string) {
	if t.requests == 0 && (model != t.model || mode != t.mode) {
		t.screen.line(t.screen.colour.dim(fmt.Sprintf("(now %s, mode %s)", plainLine(model), plainLine(mode))))
	}
	t.model, t.mode = model, mode
}

// hearLoose takes events that are no entries of the log.
func (t *talk) hearLoose(name string, event json.RawMessage) error {
	switch name {
	case "prompt_queued":
		var q struct{ Position int }
		if json.Unmarshal(event, &q) == nil {
			t.screen.line(t.screen.colour.dim(fmt.Sprintf("(waits in place %d)", q.Position)))
		}
	case "session_discarded":
		t.screen.line("This session was deleted.")
		return t.leave(&exit{code: exitFailed})
	}
	return nil
}

func (t *talk) started(turn string, b *protocol.TurnStarted) {
	t.used = true
	if t.turn != turn {
		t.screen.begin()
	}
	t.turn = turn
	if t.prompts == 0 && b.Origin == protocol.OriginUser && b.Input != "" { // somebody else asked, in another window
		t.screen.line(t.screen.colour.dim("(asked elsewhere) ") + t.screen.cut(b.Input, 19))
	}
}

// over is the end of a turn.
func (t *talk) over(turn string, took time.Duration) {
	if t.turn == turn {
		t.turn = ""
	}
	t.screen.endLine()
	if text := t.screen.usage(took, ""); text != "" {
		t.screen.line(text)
	}
	if t.attended {
		t.screen.refused = nil
	}
}

// resolved closes a question; when it was answered elsewhere the person is told.
func (t *talk) resolved(id, how string) {
	for i, q := range t.open {
		if q.id != id {
			continue
		}
		t.open = append(t.open[:i:i], t.open[i+1:]...)
		if t.asked != q {
			return
		}
		t.asked = nil
		if q.sent {
			return
		}
		if how == "" || how == protocol.OutcomeCancelled {
			t.screen.line("(withdrawn)")
		} else {
			t.screen.line("(answered elsewhere: " + t.screen.cut(how, 22) + ")")
		}
		return
	}
}

// returned is an input that never reached the model. One that came too late becomes the next prompt.
func (t *talk) returned(b *protocol.QueuedInputReturned) error {
	mine := t.steered[b.InputID]
	delete(t.steered, b.InputID)
	if mine && b.Reason == protocol.ReturnedTurnEnded && !t.leaving {
		return t.prompt(b.Input, nil)
	}
	why := map[string]string{protocol.ReturnedCancelled: "the turn was cancelled", protocol.ReturnedFailed: "the turn failed"}[b.Reason]
	if why == "" {
		why = "the turn ended before it could be"
	}
	t.back("not told ("+why+")", b.Input)
	return nil
}
