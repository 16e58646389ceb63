package dispatcher

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// prompt asks for a turn (docs/protocol/rind-v2.md section 4.3).
func prompt(k *call) {
	req, err := k.promptRequest()
	if err != nil {
		k.fail(err)
		return
	}
	k.with(func(s *session.Session) {
		k.c.follow(s)
		id := s.ID
		req.Queued = func(position int) {
			k.c.out.event(protocol.Envelope{Session: id, Event: k.c.d.loose("prompt_queued", id, struct {
				RequestID json.RawMessage `json:"request_id"`
				Position  int             `json:"position"`
			}{k.req.ID, position})})
		}
		p := s.Prompt(req, func(o session.Outcome, err error) {
			if err != nil {
				k.fail(err)
				return
			}
			res, err := promptResult(id, o, req.Scope)
			k.at(id, o.Seq, res, err)
		})
		k.c.mu.Lock()
		k.prompt = p
		k.c.mu.Unlock()
	})
}

func promptResult(id session.SessionID, o session.Outcome, scope bool) (rindv2.Prompt, error) {
	res := rindv2.Prompt{OK: true, SessionID: id, TurnID: o.Turn, Outcome: o.Outcome, StopReason: o.Stop}
	if o.Fault != nil {
		res.Error = o.Fault
	}
	if !scope {
		return res, nil
	}
	res.RequestID = o.Scope
	answer := o.Answer
	res.Answer = &answer
	if o.Outcome == session.OutcomeCompleted || o.Outcome == session.OutcomeWaiting {
		return res, nil
	}
	text := o.Reason
	if o.Fault != nil {
		text = o.Fault.Message
	}
	if text == "" {
		text = protocol.ReasonUser
	}
	return res, &protocol.Error{Kind: protocol.RequestFailed, Message: text, Details: map[string]any{
		"details": map[string]any{"turn_id": o.Turn, "outcome": o.Outcome, "stop_reason": o.Stop},
	}}
}

func (k *call) promptRequest() (session.PromptRequest, error) {
	p := k.params
	var req session.PromptRequest
	name := "input"
	if !p.Has(name) {
		name = "query"
	}
	input, ok := p.Text(name)
	blank := !ok || strings.TrimSpace(input) == ""
	resume, goal := p.Bool("resume"), p.Bool("goal_continuation")
	switch {
	case resume && goal:
		return req, rindv2.Bad("resume cannot include input or goal continuation.")
	case resume && !blank:
		return req, rindv2.Bad("resume cannot include input.")
	case goal:
		return req, rindv2.Bad("No active goal to continue.")
	case blank && !resume:
		return req, rindv2.Bad("session/prompt requires input.")
	}
	scope, ok := p.Text("completion_scope")
	switch {
	case !ok || scope != "" && scope != "turn" && scope != "request":
		return req, rindv2.Bad("completion_scope must be turn or request.")
	case scope == "request":
		req.Scope = true
	}
	if p.Has("idempotency_key") {
		key, ok := p.Text("idempotency_key")
		if n := protocol.CharLen(key); !ok || n < 1 || n > 200 {
			return req, rindv2.Bad("idempotency_key must be a string of 1 to 200 characters.")
		}
		req.Key, req.Surface = key, "rind"
		digest, err := fingerprint(p)
		if err != nil {
			return req, err
		}
		req.Digest = digest
	}
	var transient []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
		Kind    string `json:"_context_kind"`
	}
	if raw := p.Raw("transient_system_messages"); raw != nil {
		if json.Unmarshal(raw, &transient) != nil {
			return req, rindv2.Bad("transient_system_messages must be a list of {role, content}.")
		}
		for _, t := range transient {
			if t.Role == "system" {
				req.Transient = append(req.Transient, protocol.SystemMessage{Content: t.Content, Kind: t.Kind})
			}
		}
	}
	req.Resume = resume
	if !resume {
		req.Input = input
	}
	return req, nil
}

// fingerprint digests the params an idempotency key is bound to: without session_id and key, nulls removed, query renamed input.
func fingerprint(p rindv2.Params) (string, error) {
	bound := map[string]json.RawMessage{}
	for name, v := range p {
		switch name {
		case "session_id", "idempotency_key":
		case "query":
			if !p.Has("input") {
				bound["input"] = v
			}
		default:
			bound[name] = v
		}
	}
	canon, err := canonical(bound)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canon)
	return hex.EncodeToString(sum[:]), nil
}

// canonical writes a JSON value so that equal values have equal text: members sorted, numbers by value
// (docs/protocol/portable-2026-09-02.md section 6).
func canonical(v any) ([]byte, error) {
	raw, err := protocol.Marshal(v)
	if err != nil {
		return nil, err
	}
	return protocol.Canonical(bytes.NewReader(raw))
}

func cancel(k *call) {
	turn, ok := k.params.Text("turn_id")
	if !ok {
		k.fail(rindv2.Bad("turn_id must be a string."))
		return
	}
	if raw := k.params.Raw("request_id"); raw != nil {
		k.c.mu.Lock()
		target := k.c.inFlight[string(raw)]
		var p *session.Prompt
		if target != nil {
			p = target.prompt
		}
		k.c.mu.Unlock()
		if p == nil {
			k.fail(protocol.Errorf(protocol.TurnNotActive, "No active turn to interrupt."))
			return
		}
		p.Withdraw("", func(err error) { k.settle(okResult, err) })
		return
	}
	k.with(func(s *session.Session) {
		s.Cancel(session.CancelRequest{Turn: session.TurnID(turn), Surface: "rind"}, func(err error) { k.settle(okResult, err) })
	})
}

// turnAndInput reads the params of the queue methods.
func enqueue(mode string) func(k *call) {
	return func(k *call) {
		turn, _ := k.params.Text("turn_id")
		input, _ := k.params.Text("input")
		k.with(func(s *session.Session) {
			s.Enqueue(mode, input, session.TurnID(turn), func(r session.InputResult, err error) {
				k.settle(rindv2.Input{Accepted: true, InputID: r.ID, Mode: r.Mode, Pending: r.Pending}, err)
			})
		})
	}
}

// inputID reads input_id; absent is "" where it may be.
func (k *call) inputID(must bool) (string, error) {
	if !k.params.Has("input_id") && !must {
		return "", nil
	}
	id, ok := k.params.Text("input_id")
	switch {
	case !ok:
		return "", rindv2.Bad("input_id must be a string.")
	case strings.TrimSpace(id) == "":
		return "", rindv2.Bad("input_id must not be empty.")
	}
	return id, nil
}

func promote(k *call) {
	k.queued(true, func(s *session.Session, id string) {
		s.Promote(id, func(r session.InputResult, err error) {
			k.settle(rindv2.Input{Accepted: true, InputID: r.ID, Mode: r.Mode, Pending: r.Pending}, err)
		})
	})
}

func retrieve(mode string) func(k *call) {
	return func(k *call) {
		k.queued(false, func(s *session.Session, id string) {
			s.Retrieve(mode, id, func(r session.InputResult, err error) {
				k.settle(rindv2.Input{Retrieved: true, InputID: r.ID, Input: r.Input, Mode: r.Mode, Pending: r.Pending}, err)
			})
		})
	}
}

// queued checks for an active turn before the id, as the contract orders it.
func (k *call) queued(must bool, f func(s *session.Session, id string)) {
	k.with(func(s *session.Session) {
		id, bad := k.inputID(must)
		if bad == nil {
			f(s, id)
			return
		}
		if !s.Inspect(func(v *session.View) {
			if !v.Hosted {
				k.fail(protocol.Errorf(protocol.TurnNotActive, "Session execution is not active."))
				return
			}
			k.fail(bad)
		}) {
			k.fail(bad)
		}
	})
}

func answerQuestion(k *call) {
	callID, ok1 := k.params.Name("tool_call_id")
	answer, ok2 := k.params.Text("answer")
	if !ok1 || !ok2 {
		k.fail(rindv2.Bad("rind/user-question/respond requires tool_call_id and answer."))
		return
	}
	k.with(func(s *session.Session) {
		s.AnswerQuestion(callID, answer, func(err error) { k.settle(okResult, err) })
	})
}

func answerApproval(k *call) {
	action, ok1 := k.params.Name("action_id")
	option, ok2 := k.params.Name("option_id")
	if !ok1 || !ok2 {
		k.fail(rindv2.Bad("rind/approval/respond requires action_id and option_id."))
		return
	}
	k.with(func(s *session.Session) {
		s.ResolveApproval(action, option, func(err error) { k.settle(okResult, err) })
	})
}
