package rindv2

import "encoding/json"

// The params of the portable protocol's methods (docs/protocol/portable-2026-09-02.md section 13). Their checks and texts are that
// protocol's, so they are described here and taken raw.

// ConversationCreateParams are those of rind/conversation/create.
type ConversationCreateParams struct {
	Metadata json.RawMessage `json:"metadata,omitempty" wire:"Object"`
}

// ConversationReadParams are those of rind/conversation/read: one of its two.
type ConversationReadParams struct {
	ConversationID string `json:"conversation_id,omitempty"`
	SessionID      string `json:"session_id,omitempty"`
}

// ExecutionStartParams are those of rind/execution/start: a StartExecution.
type ExecutionStartParams struct {
	ConversationID       string          `json:"conversationId"`
	ProviderID           string          `json:"providerId"`
	Input                string          `json:"input"`
	RequiredCapabilities []string        `json:"requiredCapabilities,omitempty"`
	Config               json.RawMessage `json:"config,omitempty" wire:"Object"`
	IdempotencyKey       string          `json:"idempotencyKey,omitempty"`
}

// ExecutionParams are those of rind/execution/read and artifacts.
type ExecutionParams struct {
	ExecutionID string `json:"execution_id"`
}

// ExecutionCancelParams are those of rind/execution/cancel.
type ExecutionCancelParams struct {
	ExecutionParams
	Reason string `json:"reason,omitempty"`
}

// ExecutionEventsParams are those of rind/execution/events.
type ExecutionEventsParams struct {
	ExecutionParams
	After  int64 `json:"after,omitempty"`
	Limit  int   `json:"limit,omitempty"` // 1..10000, default 1000
	Follow bool  `json:"follow,omitempty"`
}

// ActionRespondParams are those of rind/action/respond.
type ActionRespondParams struct {
	ExecutionParams
	ActionID string          `json:"action_id"`
	Response json.RawMessage `json:"response" wire:"Object"`
}
