package protocol

import "encoding/json"

// Bodies that belong to a session as a whole: what it is set to, its goal, its tasks.

// SessionCreated is the first entry of a session that was not forked.
type SessionCreated struct {
	More struct {
		WorkspaceRoot  string          `json:"workspace_root"`
		ConversationID string          `json:"conversation_id"`
		Provider       string          `json:"provider,omitempty"`
		Model          string          `json:"model,omitempty"`
		Effort         string          `json:"reasoning_effort,omitempty"`
		Mode           string          `json:"approval_mode,omitempty"`
		Title          string          `json:"title,omitempty"`
		Metadata       json.RawMessage `json:"metadata,omitempty"` // of the portable conversation, an object
		Roots          []string        `json:"roots,omitempty"`    // further folders of its tools, absolute
		Surface        string          `json:"surface,omitempty"`  // "acp": it was opened by an editor and goes when it is never prompted
	} `json:"-"`
}

// SessionForked is the first entry of a fork: everything copied from the parent, as its history entries.
type SessionForked struct {
	More struct {
		WorkspaceRoot  string            `json:"workspace_root"`
		ConversationID string            `json:"conversation_id"`
		Provider       string            `json:"provider,omitempty"`
		Model          string            `json:"model,omitempty"`
		Effort         string            `json:"reasoning_effort,omitempty"`
		Mode           string            `json:"approval_mode,omitempty"`
		Title          string            `json:"title,omitempty"`
		Parent         SessionID         `json:"parent"`
		ParentSeq      Seq               `json:"parent_seq"` // last entry of the parent that was looked at
		Roots          []string          `json:"roots,omitempty"`
		Entries        []json.RawMessage `json:"entries"` // ForkedEntry objects
	} `json:"-"`
}

// ForkedEntry is one history entry as a fork carries it.
type ForkedEntry struct {
	Kind  Kind            `json:"kind"`
	Turn  TurnID          `json:"turn"`
	TS    string          `json:"ts"` // TimeForm
	Event json.RawMessage `json:"event,omitempty"`
	More  json.RawMessage `json:"more,omitempty"`
}

// Notice is a line that is shown beside the conversation: how a tool server fares, that a model which did not
// answer is asked again, or what a hosted agent wants shown.
type Notice struct {
	Severity string `json:"severity"` // info, warning, error
	Title    string `json:"title"`    // one line
	More     struct {
		Data json.RawMessage `json:"data,omitempty"` // of a hosted agent: its update as it sent it
	} `json:"-"`
}

// CommandsChanged is the command list of a hosted agent.
type CommandsChanged struct {
	More struct {
		Data json.RawMessage `json:"data"`
	} `json:"-"`
}

// BackgroundWait says what a session still waits for.
type BackgroundWait struct {
	Count     int     `json:"count"`
	StartedAt float64 `json:"started_at"` // Unix seconds
}

// TaskUpdated is the state of a background process (docs/protocol/rind-v2.md section 4.8).
type TaskUpdated struct {
	Task         json.RawMessage `json:"task"`
	OriginTurnID TurnID          `json:"origin_turn_id"`
	More         struct {
		InTurn TurnID `json:"in_turn,omitempty"` // its turn, while that is open
	} `json:"-"`
}

// TaskOutput is the newest output of a background process.
type TaskOutput struct {
	Task         json.RawMessage `json:"task"`
	OriginTurnID TurnID          `json:"origin_turn_id"`
}

// BackgroundWaitChanged tells a changed wait.
type BackgroundWaitChanged struct {
	BackgroundWait *BackgroundWait `json:"background_wait"`
}

// TaskContinuationFailed says that a continuation could not start.
type TaskContinuationFailed struct {
	Error string `json:"error"`
}

// Goal is what a session works towards (docs/protocol/rind-v2.md section 4.9).
type Goal struct {
	Objective string `json:"objective"`
	Status    string `json:"status"` // active, paused, blocked, complete, budget_exhausted
	TurnsUsed int    `json:"turns_used"`
	MaxTurns  int    `json:"max_turns"`
}

// GoalUpdated is the whole goal; null when it was cleared.
type GoalUpdated struct {
	Goal *Goal `json:"goal"`
	More struct {
		Legacy bool `json:"legacy,omitempty"` // set by a legacy connection, which starts goal turns itself
	} `json:"-"`
}

// SessionSettingsChanged tells the settings of a session.
type SessionSettingsChanged struct {
	Provider        string `json:"provider"`
	Model           string `json:"model"`
	ReasoningEffort string `json:"reasoning_effort"`
	ApprovalMode    string `json:"approval_mode"`
	Applies         string `json:"applies"` // now, next_turn
	SelectionSource string `json:"selection_source"`
	ConnectionReady bool   `json:"connection_ready"`
}

// SessionRenamed tells a new title.
type SessionRenamed struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// ProviderSession ties a session to the child session of a hosted agent.
type ProviderSession struct {
	More struct {
		ID           string          `json:"id"`
		Provider     string          `json:"provider,omitempty"` // whose session it is
		AgentInfo    json.RawMessage `json:"agent_info,omitempty"`
		Capabilities json.RawMessage `json:"capabilities,omitempty"`
	} `json:"-"`
}

// ProviderContinuity says how a hosted agent was brought back.
type ProviderContinuity struct {
	More struct {
		Way string `json:"way"` // resume, load, summary
	} `json:"-"`
}
