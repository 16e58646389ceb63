package rindv2

import (
	"encoding/json"

	"github.com/rind-dev/rind/protocol"
)

// The results of the portable protocol's methods (docs/protocol/portable-2026-09-02.md sections 4 and 13), described here for clients; their
// bytes are that protocol's own codec's.

// ProviderManifest describes a provider of executions.
type ProviderManifest struct {
	ID              string            `json:"id"`
	Name            string            `json:"name"`
	Version         string            `json:"version"`
	ProtocolVersion string            `json:"protocolVersion"`
	Topologies      []string          `json:"topologies"`
	Capabilities    map[string]string `json:"capabilities"` // native, emulated, degraded, unsupported
	Metadata        json.RawMessage   `json:"metadata,omitempty" wire:"Object"`
}

// RuntimeDescription is the result of rind/runtime/describe.
type RuntimeDescription struct {
	Name            string             `json:"name"`
	Version         string             `json:"version"`
	ProtocolVersion string             `json:"protocolVersion"`
	Providers       []ProviderManifest `json:"providers"`
}

// Conversation is a session, as the portable protocol shows it.
type Conversation struct {
	ID        string          `json:"id"`
	CreatedAt string          `json:"createdAt"`
	Metadata  json.RawMessage `json:"metadata" wire:"Object"`
}

// ConversationResult is the result of rind/conversation/create and read.
type ConversationResult struct {
	Conversation any                `json:"conversation" wire:"Conversation"`
	SessionID    protocol.SessionID `json:"session_id"`
}

// ExecutionError is why an execution failed.
type ExecutionError struct {
	Code    string `json:"code" enum:"PROVIDER_ERROR"`
	Message string `json:"message"`
}

// Execution is a turn, as the portable protocol shows it.
type Execution struct {
	ID              string          `json:"id"`
	ConversationID  string          `json:"conversationId"`
	ProviderID      string          `json:"providerId"`
	State           string          `json:"state" enum:"queued,starting,running,awaiting_approval,awaiting_input,cancelling,succeeded,failed,cancelled"`
	Input           string          `json:"input"`
	Capabilities    []string        `json:"requiredCapabilities"`
	EffectiveConfig json.RawMessage `json:"effectiveConfig" wire:"Object"`
	CreatedAt       string          `json:"createdAt"`
	UpdatedAt       string          `json:"updatedAt"`
	StartedAt       string          `json:"startedAt,omitempty"`
	EndedAt         string          `json:"endedAt,omitempty"`
	FinalOutput     *string         `json:"finalOutput,omitempty"`
	Error           *ExecutionError `json:"error,omitempty"`
}

// ExecutionEvent is one event of an execution.
type ExecutionEvent struct {
	ID          string          `json:"id"`
	ExecutionID string          `json:"executionId"`
	Sequence    int64           `json:"sequence"` // the cursor of rind/execution/events
	Type        string          `json:"type" enum:"run.queued,run.started,output.text.delta,output.text.done,action.required,action.responded,artifact.created,provider.event,run.completed,run.failed,run.cancelled"`
	Time        string          `json:"time"`
	Data        json.RawMessage `json:"data" wire:"Object"`
}

// ExecutionPage is the result of rind/execution/events.
type ExecutionPage struct {
	Events     any   `json:"events" wire:"ExecutionEvent[]"`
	NextCursor int64 `json:"nextCursor"`
	Following  bool  `json:"following"`
}

// ExecutionArtifact describes something an execution made.
type ExecutionArtifact struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	MediaType   string          `json:"mediaType"`
	URI         string          `json:"uri,omitempty"`
	Metadata    json.RawMessage `json:"metadata" wire:"Object"`
	ExecutionID string          `json:"executionId"`
	CreatedAt   string          `json:"createdAt"`
}

// ExecutionArtifacts is the result of rind/execution/artifacts.
type ExecutionArtifacts struct {
	Artifacts any `json:"artifacts" wire:"ExecutionArtifact[]"`
}

// ExecutionLine is an event line of an execution that is followed.
type ExecutionLine struct {
	Kind        string         `json:"kind" enum:"event"`
	Method      string         `json:"method" enum:"execution/event"`
	Sequence    int64          `json:"sequence"` // of the connection, like that of EventLine; no cursor
	ExecutionID string         `json:"execution_id"`
	Event       ExecutionEvent `json:"event"`
}

// LoginProgress says where a login is.
type LoginProgress struct {
	Type       string `json:"type" enum:"login_progress"`
	TS         string `json:"ts"`
	EventID    string `json:"event_id"`
	ProviderID string `json:"provider_id"`
	Message    string `json:"message"`
}

// AuthUpdateLine is an event line of a login (docs/protocol/rind-v2.md section 4.10): of no session, to the connection that asked.
type AuthUpdateLine struct {
	Kind     string        `json:"kind" enum:"event"`
	Method   string        `json:"method" enum:"rind/auth/update"`
	Sequence int64         `json:"sequence"`
	Event    LoginProgress `json:"event"`
}
