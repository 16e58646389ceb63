package dispatcher

import (
	"bytes"
	"encoding/json"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// prompt asks for a turn (docs/protocol/rind-v2.md section 4.3).
func prompt(k *call, p *rindv2.PromptParams) {
	req, err := k.promptRequest(p)
	if err != nil {
		k.Fail(err)
		return
	}
	k.with(func(s *session.Session) {
		k.c.follow(s)
		id := s.ID
		req.Queued = func(position int) {
			k.c.out.event(protocol.Envelope{Session: id, Event: k.c.d.loose("prompt_queued", id, struct {
				RequestID json.RawMessage `json:"request_id"`
				Position  int             `json:"position"`
			}{k.ID, position})})
		}
		waits := s.Prompt(req, func(o session.Outcome, err error) {
			if err != nil {
				k.Fail(err)
				return
			}
			res, err := promptResult(id, o, req.Scope)
			k.at(id, o.Seq, res, err)
		})
		k.c.mu.Lock()
		k.prompt = waits
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

func (k *call) promptRequest(p *rindv2.PromptParams) (session.PromptRequest, error) {
	req := session.PromptRequest{Input: p.Input, Resume: p.Resume, Scope: p.CompletionScope == "request", Goal: p.GoalContinuation}
	if p.IdempotencyKey != "" {
		digest, err := fingerprint(k.params)
		if err != nil {
			return req, err
		}
		req.Key, req.Surface, req.Digest = p.IdempotencyKey, "rind", digest
	}
	for _, m := range p.Transient {
		req.Transient = append(req.Transient, protocol.SystemMessage{Content: m.Content, Kind: m.Kind})
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
	return protocol.Digest(canon), nil
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

func cancel(k *call, p *rindv2.CancelParams) {
	done := func(err error) { k.Settle(okResult, err) }
	if p.RequestID != nil {
		target, flying := k.c.requests.Find(string(p.RequestID))
		if !flying || target.prompt == nil {
			k.Fail(protocol.Errorf(protocol.TurnNotActive, "No active turn to interrupt."))
			return
		}
		target.prompt.Withdraw("", done)
		return
	}
	k.with(func(s *session.Session) { s.Cancel(session.CancelRequest{Turn: p.TurnID, Surface: "rind"}, done) })
}

func enqueue(mode string) func(k *call, p *rindv2.InputParams) {
	return func(k *call, p *rindv2.InputParams) {
		k.with(func(s *session.Session) {
			s.Enqueue(mode, p.Input, p.TurnID, func(r session.InputResult, err error) { k.Settle(accepted(r), err) })
		})
	}
}

func promote(k *call) {
	p := &rindv2.PromoteParams{}
	k.queued(p, &p.InputID, func(s *session.Session, done func(session.InputResult, error)) { s.Promote(p.InputID, done) }, accepted)
}

func retrieve(mode string) func(k *call) {
	return func(k *call) {
		p := &rindv2.RetrieveParams{}
		k.queued(p, &p.InputID, func(s *session.Session, done func(session.InputResult, error)) { s.Retrieve(mode, p.InputID, done) }, retrieved)
	}
}

func accepted(r session.InputResult) rindv2.Input {
	return rindv2.Input{Accepted: true, InputID: r.ID, Mode: r.Mode, Pending: r.Pending}
}

func retrieved(r session.InputResult) rindv2.Input {
	return rindv2.Input{Retrieved: true, InputID: r.ID, Input: r.Input, Mode: r.Mode, Pending: r.Pending}
}

// noInput is the id of no input.
const noInput = "-"

// queued does something with a waiting input. Whether there is a turn is checked before the id is (docs/protocol/rind-v2.md section 4.7):
// the session is asked for no input then, and says whether there is.
func (k *call) queued(
	p rindv2.Reader, id *string, do func(s *session.Session, done func(session.InputResult, error)), answer func(session.InputResult) rindv2.Input,
) {
	bad := p.Read(k.params)
	if bad != nil {
		*id = noInput
	}
	k.with(func(s *session.Session) {
		do(s, func(r session.InputResult, err error) {
			if bad != nil && protocol.KindOf(err) != protocol.TurnNotActive {
				err = bad
			}
			k.Settle(answer(r), err)
		})
	})
}

func answerQuestion(k *call, p *rindv2.AnswerParams) {
	k.with(func(s *session.Session) {
		s.AnswerQuestion(p.ToolCallID, p.Answer, func(err error) { k.Settle(okResult, err) })
	})
}

func answerApproval(k *call, p *rindv2.ApprovalParams) {
	k.with(func(s *session.Session) {
		s.ResolveApproval(p.ActionID, p.OptionID, func(err error) { k.Settle(okResult, err) })
	})
}
