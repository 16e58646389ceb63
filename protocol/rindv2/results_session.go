package rindv2

import (
	"encoding/json"

	"github.com/rind-dev/rind/protocol"
)

// TurnState is where a session's latest turn stands (section 4.1).
type TurnState struct {
	TurnID          protocol.TurnID `json:"turn_id"`
	Status          string          `json:"status" enum:"running,completed,failed,cancelled"`
	TS              string          `json:"ts"`
	Waiting         bool            `json:"waiting,omitempty"`
	RecoveryAttempt int             `json:"recovery_attempt,omitempty"`
	Reason          string          `json:"reason,omitempty"`
	Error           *Fault          `json:"error,omitempty"`
}

// Fault is why a turn failed.
type Fault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// LiveTurn is a running turn as far as it was told (section 4.4).
type LiveTurn struct {
	TurnID              protocol.TurnID     `json:"turn_id"`
	Status              string              `json:"status" enum:"running"`
	Operation           string              `json:"operation" enum:"prompt,compact"`
	AssistantText       string              `json:"assistant_text"`
	Tools               []LiveTool          `json:"tools"`
	Question            *LiveQuestion       `json:"question"`
	PendingInputs       []PendingInput      `json:"pending_inputs"`
	Plan                []protocol.PlanStep `json:"plan"`
	Files               []string            `json:"files"`
	ContextUsagePercent float64             `json:"context_usage_percent"` // fraction
	Approvals           []LiveApproval      `json:"approvals"`
	StartedAt           string              `json:"started_at"`
}

// LiveTool is one call of a running turn.
type LiveTool struct {
	ToolCallID  string          `json:"tool_call_id"`
	ToolName    string          `json:"tool_name"`
	ArgsPreview string          `json:"args_preview"`
	Arguments   json.RawMessage `json:"arguments" wire:"Object"`
	Status      string          `json:"status" enum:"pending,running,completed,error"`
	Output      string          `json:"output"`
	ErrorType   string          `json:"error_type,omitempty"`
	DurationMS  *int64          `json:"duration_ms,omitempty"`
}

// LiveQuestion is the oldest open question.
type LiveQuestion struct {
	ToolCallID string            `json:"tool_call_id"`
	Question   string            `json:"question"`
	Options    []protocol.Choice `json:"options" wire:"Choice[]|null"`
}

// LiveApproval is an open approval.
type LiveApproval struct {
	ActionID   string            `json:"action_id"`
	ToolCallID string            `json:"tool_call_id"`
	ToolName   string            `json:"tool_name"`
	Title      string            `json:"title"`
	Arguments  json.RawMessage   `json:"arguments" wire:"Object"`
	Options    []protocol.Option `json:"options"`
}

// PendingInput is an input that waits.
type PendingInput struct {
	InputID string `json:"input_id"`
	Input   string `json:"input"`
	Mode    string `json:"mode" enum:"steering,follow_up"`
}

// Message is a message of message mode (section 4.4).
type Message struct {
	ID          string       `json:"id"`
	TS          string       `json:"ts"`
	Role        string       `json:"role" enum:"system,user,assistant,tool"`
	Content     *string      `json:"content,omitempty"`
	Attachments []Attachment `json:"attachments,omitempty"`
	ToolCalls   []ToolCall   `json:"tool_calls,omitempty"`
	ToolCallID  string       `json:"tool_call_id,omitempty"`
	Interrupted bool         `json:"interrupted,omitempty"`
}

// Attachment is a part of a user message that is no text.
type Attachment struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
	URI  string `json:"uri,omitempty"`
}

// ToolCall is a call of an assistant message.
type ToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type" enum:"function"`
	Function FunctionCall `json:"function"`
}

// FunctionCall is what is called; Arguments is JSON text.
type FunctionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// EventLine is an event line of a session, also as an item of a replay page.
type EventLine struct {
	Kind       string             `json:"kind" enum:"event"`
	Method     string             `json:"method" enum:"session/update"`
	Sequence   int64              `json:"sequence"`
	Durability string             `json:"durability" enum:"durable,incremental"`
	SessionID  protocol.SessionID `json:"session_id"`
	TurnID     protocol.TurnID    `json:"turn_id"`
	Cursor     protocol.Seq       `json:"cursor,omitempty"`
	TaskCursor protocol.Seq       `json:"task_cursor,omitempty"`
	Event      json.RawMessage    `json:"event" wire:"Event"`
}

// ReplayResult is one of its two.
type ReplayResult struct {
	_ struct{} `wire:"ReplayMessages|ReplayEvents"`
}

// Forgotten is the result of rind/session/forget_draft.
type Forgotten struct {
	Forgotten bool `json:"forgotten"`
}

// Forked is the result of session/fork.
type Forked struct {
	SessionID  protocol.SessionID `json:"session_id"`
	ForkedFrom protocol.SessionID `json:"forked_from"`
}

// Deleted is the result of session/delete.
type Deleted struct {
	OK      bool               `json:"ok"`
	Deleted protocol.SessionID `json:"deleted"`
}

// Subscribed is the result of session/subscribe and unsubscribe; the ids are sorted.
type Subscribed struct {
	OK         bool                 `json:"ok"`
	Subscribed []protocol.SessionID `json:"subscribed"`
}

// Mode is the result of rind/session/set_mode.
type Mode struct {
	Mode string `json:"mode" enum:"ask,edit,read,full"`
}

// Compaction is the record of section 7.8.
type (
	Compaction        = protocol.Compaction
	CompactionSource  = protocol.CompactionSource
	CompactionMessage = protocol.CompactionMessage
)

// CommandResult is the result of rind/command/execute (section 8).
type CommandResult struct {
	Text          string          `json:"text"`
	Display       json.RawMessage `json:"display,omitempty" wire:"Object"`
	PromptPrefill string          `json:"prompt_prefill,omitempty"`
	NextPrompt    *NextPrompt     `json:"next_prompt,omitempty"`
}

// NextPrompt is the prompt a command asks the client to send.
type NextPrompt struct {
	Input     string          `json:"input"`
	Transient []SystemMessage `json:"transient_system_messages,omitempty"`
}
