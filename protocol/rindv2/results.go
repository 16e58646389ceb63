package rindv2

import (
	"encoding/json"

	"github.com/rind-dev/rind/protocol"
)

// The results of docs/protocol/rind-v2.md section 4, member by member. Members that come from the session room are raw there.

// OK is the result of methods that only do something.
type OK struct {
	OK bool `json:"ok"`
}

// Command describes a slash command.
type Command struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Usage       string   `json:"usage"`
	Aliases     []string `json:"aliases"`
}

// Initialize is the result of initialize (section 4.1).
type Initialize struct {
	SessionID       protocol.SessionID `json:"session_id"`
	Draft           bool               `json:"draft"`
	Model           string             `json:"model"`
	Provider        string             `json:"provider"`
	ReasoningEffort string             `json:"reasoning_effort"`
	BaseURL         string             `json:"base_url"`
	WorkspaceRoot   string             `json:"workspace_root"`
	TeamMain        *string            `json:"team_main"`
	ApprovalMode    string             `json:"approval_mode"`
	Version         string             `json:"version"`
	ProtocolVersion string             `json:"protocol_version"`
	Capabilities    []string           `json:"capabilities"`
	Methods         []string           `json:"methods"`
	ResumePreview   string             `json:"resume_preview"`
	HasRindDoc      bool               `json:"has_rind_doc"`
	Title           string             `json:"title"`
	UpdatedAt       string             `json:"updated_at"`
	MessageCount    int                `json:"message_count"`
	TurnState       any                `json:"turn_state" wire:"TurnState|null"`
	LiveTurn        any                `json:"live_turn" wire:"LiveTurn|null"`
	Goal            *protocol.Goal     `json:"goal"`
	Commands        []Command          `json:"commands"`
	Providers       any                `json:"providers" wire:"Provider[]"`
}

// SessionInfo is session info of section 4.2.
type SessionInfo struct {
	SessionID       protocol.SessionID `json:"session_id"`
	Draft           bool               `json:"draft"`
	Model           string             `json:"model"`
	Provider        string             `json:"provider"`
	ReasoningEffort string             `json:"reasoning_effort"`
	ApprovalMode    string             `json:"approval_mode"`
	WorkspaceRoot   string             `json:"workspace_root"`
	TeamMain        *string            `json:"team_main"`
	ProjectID       *string            `json:"project_id"`
	OwnerAgentID    *string            `json:"owner_agent_id"`
	SessionType     string             `json:"session_type"` // standalone_project
	ParentSessionID *string            `json:"parent_session_id"`
	TurnState       any                `json:"turn_state" wire:"TurnState|null"`
	Goal            *protocol.Goal     `json:"goal"`
	Usage           *protocol.Stats    `json:"usage"`
	MessageCount    int                `json:"message_count"`
	Title           string             `json:"title"`
	UpdatedAt       string             `json:"updated_at"`
	LiveTurn        any                `json:"live_turn" wire:"LiveTurn|null"`
	ResumePreview   string             `json:"resume_preview"`
}

// ListSize counts what a listed session holds.
type ListSize struct {
	Messages  int `json:"messages"`
	ToolCalls int `json:"tool_calls"`
}

// ListItem is one session of session/list.
type ListItem struct {
	ID              protocol.SessionID `json:"id"`
	Title           string             `json:"title"`
	UpdatedAt       string             `json:"updated_at"`
	Size            ListSize           `json:"size"`
	Preview         string             `json:"preview"`
	WorkspaceRoot   string             `json:"workspace_root"`
	ProjectID       *string            `json:"project_id"`
	OwnerAgentID    *string            `json:"owner_agent_id"`
	SessionType     string             `json:"session_type"`
	ParentSessionID *string            `json:"parent_session_id"`
	HasUserMessage  bool               `json:"has_user_message"`
	ConnectionReady bool               `json:"connection_ready"`
}

// List is the result of session/list.
type List struct {
	Sessions         []ListItem          `json:"sessions"`
	CurrentSessionID *protocol.SessionID `json:"current_session_id"`
	NextPageToken    *string             `json:"next_page_token"`
}

// Prompt is the result of session/prompt (section 4.3).
type Prompt struct {
	OK         bool               `json:"ok"`
	SessionID  protocol.SessionID `json:"session_id"`
	TurnID     protocol.TurnID    `json:"turn_id"`
	Outcome    string             `json:"outcome"`
	StopReason string             `json:"stop_reason"`
	Error      any                `json:"error,omitempty" wire:"Fault"`
	RequestID  string             `json:"request_id,omitempty"` // scope id
	Answer     *string            `json:"answer,omitempty"`
}

// ReplayState is what both modes of session/replay end with (section 4.4).
type ReplayState struct {
	SessionID      protocol.SessionID `json:"session_id"`
	Model          string             `json:"model"`
	TurnState      any                `json:"turn_state" wire:"TurnState|null"`
	LiveTurn       any                `json:"live_turn" wire:"LiveTurn|null"`
	Hosted         bool               `json:"hosted"`
	Tasks          []json.RawMessage  `json:"tasks" wire:"Task[]"`
	BackgroundWait any                `json:"background_wait" wire:"BackgroundWait|null"`
	HeadCursor     protocol.Seq       `json:"head_cursor"`
	TaskCursor     protocol.Seq       `json:"task_cursor"`
	AsOfSequence   int64              `json:"as_of_sequence"`
}

// ReplayMessages is the result of session/replay in message mode.
type ReplayMessages struct {
	Messages any `json:"messages" wire:"Message[]"`
	ReplayState
}

// ReplayEvents is the result of session/replay in event mode.
type ReplayEvents struct {
	Events     []json.RawMessage `json:"events" wire:"EventLine[]"`
	Cursor     protocol.Seq      `json:"cursor"`
	NextCursor *protocol.Seq     `json:"next_cursor,omitempty"`
	HasMore    bool              `json:"has_more"`
	TaskEvents []json.RawMessage `json:"task_events,omitzero" wire:"EventLine[]"` // nil: not asked for
	TasksMore  *bool             `json:"task_has_more,omitempty"`
	ReplayState
}

// Input is the result of the queue methods.
type Input struct {
	Accepted  bool   `json:"accepted,omitempty"`
	Retrieved bool   `json:"retrieved,omitempty"`
	InputID   string `json:"input_id"`
	Input     string `json:"input,omitempty"`
	Mode      string `json:"mode"`
	Pending   int    `json:"pending"`
}

// Model is one model of model/list.
type Model struct {
	ProviderID       string   `json:"provider_id"`
	ID               string   `json:"id"`
	Name             string   `json:"name"`
	API              string   `json:"api"`
	ReasoningEfforts []string `json:"reasoning_efforts"`
	ContextWindow    *int     `json:"context_window"`
	ImageInput       *bool    `json:"image_input"`
}

// ModelRef names a model.
type ModelRef struct {
	ProviderID string `json:"provider_id"`
	ModelID    string `json:"model_id"`
}

// Models is the result of model/list; for legacy connections Models is a list of ids.
type Models struct {
	Models       any      `json:"models" wire:"Model[]|string[]"`
	Warning      *string  `json:"warning"`
	Current      ModelRef `json:"current"`
	CurrentModel string   `json:"current_model"`
	DefaultModel string   `json:"default_model"`
}

// ModelSet is the result of model/set.
type ModelSet struct {
	ModelRef
	Model           string `json:"model"`
	Session         bool   `json:"session"`
	Runtime         bool   `json:"runtime"`
	Applies         string `json:"applies"`
	SessionModel    string `json:"session_model"`
	DefaultModel    string `json:"default_model"`
	PreviousDefault string `json:"previous_default"`
	NewDefault      string `json:"new_default"`
	DefaultUpdated  bool   `json:"default_updated"`
	ActiveUpdated   bool   `json:"active_updated"`
}
