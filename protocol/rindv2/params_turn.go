package rindv2

import (
	"encoding/json"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// SystemMessage is a transient system message of a prompt; messages of other roles are ignored.
type SystemMessage struct {
	Role    string `json:"role" enum:"system"`
	Content string `json:"content"`
	Kind    string `json:"_context_kind,omitempty"`
}

// PromptParams are those of session/prompt (section 4.3).
type PromptParams struct {
	Target
	Input            string          `json:"input,omitempty"` // or query, its older name
	Query            string          `json:"query,omitempty"`
	Resume           bool            `json:"resume,omitempty"`
	GoalContinuation bool            `json:"goal_continuation,omitempty"`
	Transient        []SystemMessage `json:"transient_system_messages,omitempty"`
	CompletionScope  string          `json:"completion_scope,omitempty" enum:"turn,request"`
	IdempotencyKey   string          `json:"idempotency_key,omitempty"` // 1..200 characters
}

// Read takes a prompt. Input is what was given as input or query; CompletionScope is never "".
func (r *PromptParams) Read(p Params) error {
	if err := r.Target.Read(p); err != nil {
		return err
	}
	name := "input"
	if !p.Has(name) {
		name = "query"
	}
	input, _ := protocol.Text(p[name])
	blank := strings.TrimSpace(input) == ""
	r.Resume, r.GoalContinuation = p.Bool("resume"), p.Bool("goal_continuation")
	switch {
	case r.Resume && r.GoalContinuation:
		return Bad("resume cannot include input or goal continuation.")
	case r.Resume && !blank:
		return Bad("resume cannot include input.")
	case blank && !r.Resume && !r.GoalContinuation:
		return Bad("session/prompt requires input.")
	}
	if !r.Resume {
		r.Input = input
	}
	r.CompletionScope = "turn"
	if p.Has("completion_scope") {
		bad := "completion_scope must be turn or request."
		scope, err := p.word("completion_scope", bad, bad, "turn", "request")
		if err != nil {
			return err
		}
		r.CompletionScope = scope
	}
	if p.Has("idempotency_key") {
		key, ok := protocol.Text(p["idempotency_key"])
		if n := protocol.CharLen(key); !ok || n < 1 || n > 200 {
			return Bad("idempotency_key must be a string of 1 to 200 characters.")
		}
		r.IdempotencyKey = key
	}
	return r.transient(p)
}

func (r *PromptParams) transient(p Params) error {
	bad := Bad("transient_system_messages must be a list of {role,content}.")
	if !p.Has("transient_system_messages") {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(p["transient_system_messages"], &list) != nil {
		return bad
	}
	for _, raw := range list {
		if raw[0] != '{' {
			return bad
		}
		m := ReadParams(raw)
		if role, ok := protocol.Text(m["role"]); !ok || role != "system" {
			continue
		}
		content, ok := protocol.Text(m["content"])
		if !ok {
			return bad
		}
		kind, _ := protocol.Text(m["_context_kind"])
		r.Transient = append(r.Transient, SystemMessage{"system", content, kind})
	}
	return nil
}

// CancelParams are those of session/cancel (section 4.5).
type CancelParams struct {
	Target
	TurnID    protocol.TurnID `json:"turn_id,omitempty"`
	RequestID json.RawMessage `json:"request_id,omitempty" wire:"RequestID"` // of a prompt of this connection, as sent
}

// Read takes what is to be cancelled.
func (c *CancelParams) Read(p Params) error {
	if err := c.Target.Read(p); err != nil {
		return err
	}
	if raw := p["request_id"]; raw != nil {
		if !protocol.IsID(raw) {
			return Bad("request_id must be a string or number.")
		}
		c.RequestID = raw
	}
	return p.fill(field{"turn_id", (*string)(&c.TurnID)})
}

// InputParams are those of rind/session/steer and follow_up (section 4.7). Whether there is a turn is checked before the input is, so an
// input that is missing or no text is "" here.
type InputParams struct {
	Target
	Input  string          `json:"input"`
	TurnID protocol.TurnID `json:"turn_id,omitempty"`
}

// Read takes an input.
func (i *InputParams) Read(p Params) error {
	if err := i.Target.Read(p); err != nil {
		return err
	}
	i.Input, _ = protocol.Text(p["input"])
	return p.fill(field{"turn_id", (*string)(&i.TurnID)})
}

// PromoteParams are those of rind/session/promote_follow_up.
type PromoteParams struct {
	Target
	InputID string `json:"input_id"`
}

// Read takes the id of an input.
func (r *PromoteParams) Read(p Params) error {
	if err := r.Target.Read(p); err != nil {
		return err
	}
	if !p.Has("input_id") {
		return Bad("input_id must be a string.")
	}
	return p.inputID(&r.InputID)
}

// RetrieveParams are those of rind/session/unsteer and dequeue_follow_up; "" is the newest input.
type RetrieveParams struct {
	Target
	InputID string `json:"input_id,omitempty"`
}

// Read takes the id of an input.
func (r *RetrieveParams) Read(p Params) error {
	if err := r.Target.Read(p); err != nil {
		return err
	}
	return p.inputID(&r.InputID)
}

func (p Params) inputID(to *string) error {
	if !p.Has("input_id") {
		return nil
	}
	id, ok := protocol.Text(p["input_id"])
	switch {
	case !ok:
		return Bad("input_id must be a string.")
	case strings.TrimSpace(id) == "":
		return Bad("input_id must not be empty.")
	}
	*to = id
	return nil
}

// CommandParams are those of rind/command/execute (section 8): mistakes in it are answered as text, so anything is taken.
type CommandParams struct {
	Target
	Input string `json:"input"`
}

// Read takes a command line.
func (c *CommandParams) Read(p Params) error {
	c.Input, _ = protocol.Text(p["input"])
	return c.Target.Read(p)
}

// AnswerParams are those of rind/user-question/respond.
type AnswerParams struct {
	Target
	ToolCallID string `json:"tool_call_id"`
	Answer     string `json:"answer"`
}

// Read takes an answer, which may be "".
func (a *AnswerParams) Read(p Params) error {
	if err := a.Target.Read(p); err != nil {
		return err
	}
	var ok bool
	a.ToolCallID, ok = protocol.Text(p["tool_call_id"])
	answer, okAnswer := protocol.Text(p["answer"])
	if !ok || strings.TrimSpace(a.ToolCallID) == "" || !okAnswer {
		return Bad("rind/user-question/respond requires tool_call_id and answer.")
	}
	a.Answer = answer
	return nil
}

// ApprovalParams are those of rind/approval/respond.
type ApprovalParams struct {
	Target
	ActionID string `json:"action_id"`
	OptionID string `json:"option_id"`
}

// Read takes a decision.
func (a *ApprovalParams) Read(p Params) error {
	if err := a.Target.Read(p); err != nil {
		return err
	}
	action, ok1 := p.Name("action_id")
	option, ok2 := p.Name("option_id")
	if !ok1 || !ok2 {
		return Bad("rind/approval/respond requires action_id and option_id.")
	}
	a.ActionID, a.OptionID = action, option
	return nil
}
