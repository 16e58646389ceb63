package protocol

import "encoding/json"

// Bodies of a turn: how it begins, what is put into it, how it ends.

// TurnAccepted records a turn that is an execution: what it was asked, by whom, under which key.
type TurnAccepted struct {
	More struct {
		Provider     string          `json:"provider"`
		Surface      string          `json:"surface"` // SurfaceEditor, SurfacePortable
		Parallel     bool            `json:"parallel,omitempty"`
		Input        string          `json:"input,omitempty"`
		Config       json.RawMessage `json:"config,omitempty"`
		Capabilities []string        `json:"capabilities,omitempty"`
		Key          string          `json:"key,omitempty"`
		Scope        string          `json:"scope,omitempty"` // request scope id
	} `json:"-"`
}

// Part is one non-text part of a user message.
type Part struct {
	Kind string `json:"kind"` // image, resource, resource_link
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
	URI  string `json:"uri,omitempty"`
	Text string `json:"text,omitempty"`
	Data []byte `json:"data,omitempty"`
	Size int64  `json:"size,omitempty"` // bytes of what a resource_link names; 0 for unknown
}

// SystemMessage is a transient system message of one turn (docs/protocol/rind-v2.md section 4.3).
type SystemMessage struct {
	Content string `json:"content"`
	Kind    string `json:"kind,omitempty"`
}

// UserMessage is what the user (or, by origin, the runtime in the user's place) said at the start of a turn.
type UserMessage struct {
	More struct {
		ID        string          `json:"id"`
		Text      string          `json:"text,omitempty"`
		Origin    string          `json:"origin"`
		Parts     []Part          `json:"parts,omitempty"`
		Transient []SystemMessage `json:"transient,omitempty"`
		Skills    []SystemMessage `json:"skills,omitempty"`
		Tasks     []string        `json:"tasks,omitempty"` // that it tells the end of, with origin task
	} `json:"-"`
}

// TurnStarted opens a turn, or (origin resume) an attempt to go on with it.
type TurnStarted struct {
	UserMessageChars int    `json:"user_message_chars"`
	Operation        string `json:"operation"`
	Origin           string `json:"origin"`
	UserMessageID    string `json:"user_message_id"`
	Input            string `json:"input"`
	InputTruncated   bool   `json:"input_truncated"`
	More             struct {
		Attempt  int       `json:"attempt,omitempty"` // of origin resume, from 1
		Model    string    `json:"model,omitempty"`
		Provider string    `json:"provider,omitempty"`
		Roots    *[]string `json:"roots,omitempty"`  // further folders of the session's tools, where they changed
		Hosted   bool      `json:"hosted,omitempty"` // answered by an agent with a loop of its own: it cannot outlive its process
	} `json:"-"`
}

// Section is one part of the model's context (docs/protocol/rind-v2.md section 4.10, context/inspect).
type Section struct {
	Key      string `json:"key"`
	Label    string `json:"label"`
	Tokens   int    `json:"tokens"`
	Messages int    `json:"messages"`
}

// ContextBuilt tells what the next model request is made of.
type ContextBuilt struct {
	MessageCount int              `json:"message_count"`
	Stats        map[string]int   `json:"stats"`
	Decisions    ContextDecisions `json:"decisions"`
	More         struct {
		Sections       []Section `json:"sections,omitempty"`
		EstimatedTotal int       `json:"estimated_total,omitempty"`
		Window         int       `json:"window,omitempty"`
	} `json:"-"`
}

// ContextDecisions says what was decided while a context was built.
type ContextDecisions struct {
	AutoCompactTokenLimitReached bool     `json:"auto_compact_token_limit_reached"`
	CompactRequired              bool     `json:"compact_required"`
	RindDocsTruncated            bool     `json:"rind_docs_truncated"`
	RindDocsTruncatedScopes      []string `json:"rind_docs_truncated_scopes"`
}

// InputAccepted records a steering or follow-up input.
type InputAccepted struct {
	More struct {
		InputID string `json:"input_id"`
		Mode    string `json:"mode"`
		Input   string `json:"input"`
		Parts   []Part `json:"parts,omitempty"`
	} `json:"-"`
}

// InputMoved records that an input was promoted to steering, or taken back.
type InputMoved struct {
	More struct {
		InputID string `json:"input_id"`
		To      string `json:"to"` // ModeSteering, MovedAway
	} `json:"-"`
}

// QueuedInputDelivered is an input given to the model: a user message of the history.
type QueuedInputDelivered struct {
	InputID string `json:"input_id"`
	Input   string `json:"input"`
	Mode    string `json:"mode"`
	More    struct {
		Parts []Part `json:"parts,omitempty"`
	} `json:"-"`
}

// QueuedInputReturned is an input that never reached the model.
type QueuedInputReturned struct {
	InputID string `json:"input_id"`
	Input   string `json:"input"`
	Mode    string `json:"mode"`
	Reason  string `json:"reason"`
}

// CancelRequested is on disk before a cancel is acknowledged.
type CancelRequested struct {
	More struct {
		Reason  string `json:"reason"`
		Given   bool   `json:"given,omitempty"` // the portable caller gave Reason
		Surface string `json:"surface,omitempty"`
		Hold    bool   `json:"hold,omitempty"` // automatic continuations are held until the next user prompt
	} `json:"-"`
}

// ContextCompacted stores a compaction; Record is the object of docs/protocol/rind-v2.md section 7.8.
type ContextCompacted struct {
	Record json.RawMessage `json:"record"`
	More   struct {
		Through Seq             `json:"through,omitempty"` // entries up to this one are replaced in the model's view
		Keep    json.RawMessage `json:"keep,omitempty"`
		// Provider is the hosted agent whose own context it was that became smaller; the view of our models stays whole then.
		Provider string `json:"provider,omitempty"`
	} `json:"-"`
}

// HistoryRepaired stores a repair of the model's history, once per fault.
type HistoryRepaired struct {
	More struct {
		Fault      string `json:"fault"`
		ToolCallID string `json:"tool_call_id,omitempty"`
		MessageID  string `json:"message_id,omitempty"`
		Text       string `json:"text,omitempty"`
	} `json:"-"`
}

// End is what every terminal stores beside its event.
type End struct {
	StopReason   string   `json:"stop_reason,omitempty"`
	FinalOutput  *string  `json:"final_output,omitempty"` // nil: the turn's messages joined by "\n\n", as the agent's always is
	Reason       string   `json:"reason,omitempty"`       // the portable caller's reason
	CleanupError string   `json:"cleanup_error,omitempty"`
	Dropped      []string `json:"dropped,omitempty"` // ids of inputs returned
}

// TurnCompleted is the good end of a turn.
type TurnCompleted struct {
	DurationMS     int64           `json:"duration_ms"`
	BackgroundWait *BackgroundWait `json:"background_wait"`
	More           End             `json:"-"`
}

// TurnFailed is the bad end of a turn.
type TurnFailed struct {
	Error       string `json:"error"`
	ErrorType   string `json:"error_type"`
	Status      string `json:"status"`       // rejected, failed, timed_out, unavailable
	ErrorSource string `json:"error_source"` // provider, tool, persistence, runtime
	More        End    `json:"-"`
}

// TurnCancelled is the end of a cancelled turn.
type TurnCancelled struct {
	Reason string `json:"reason"`
	More   End    `json:"-"`
}
