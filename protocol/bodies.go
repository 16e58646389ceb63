package protocol

import (
	"encoding/json"
	"slices"
)

// Values shared by several bodies.
const (
	OpPrompt  = "prompt" // TurnStarted.Operation
	OpCompact = "compact"

	OriginUser   = "user" // TurnStarted.Origin, UserMessage.Origin
	OriginResume = "resume"
	OriginTask   = "task"
	OriginGoal   = "goal"

	// OriginBackground is a turn nobody asked for: what a hosted agent said after its answer.
	OriginBackground = "background"

	ModeSteering = "steering" // inputs
	ModeFollowUp = "follow_up"
	MovedAway    = "retrieved" // InputMoved.To

	ReturnedCancelled = "cancelled" // QueuedInputReturned.Reason
	ReturnedFailed    = "failed"
	ReturnedTurnEnded = "turn_ended"

	ByClient  = "client" // ApprovalResolved.By
	ByCancel  = "cancel"
	ByRuntime = "runtime"

	OutcomeAllowed   = "allowed" // ApprovalResolved.Outcome
	OutcomeRejected  = "rejected"
	OutcomeCancelled = "cancelled"

	ToolCompleted   = "completed" // ToolResult.Status
	ToolCancelled   = "cancelled"
	ToolRejected    = "rejected"
	ToolFailed      = "failed"
	ToolTimedOut    = "timed_out"
	ToolUnavailable = "unavailable"
	ToolUnknown     = "unknown"

	ReasonUser          = "User interrupted" // TurnCancelled.Reason
	ReasonGoalPaused    = "Goal paused"
	ReasonGoalCleared   = "Goal cleared"
	ReasonTaskCancelled = "Cancelled" // Task.Reason
	ReasonShutdown      = "Worker shutting down"

	TaskStarting   = "starting" // Task.Status
	TaskRunning    = "running"
	TaskCancelling = "cancelling"
	TaskCompleted  = "completed"
	TaskFailed     = "failed"
	TaskCancelled  = "cancelled"
	TaskTimedOut   = "timed_out"
	TaskLost       = "lost" // its runtime died

	NotifyOnExit = "on_exit" // Task.Notify
	NotifyManual = "manual"

	SurfaceEditor   = "editor" // who a turn was accepted from
	SurfacePortable = "portable"
)

// Values of ToolResult.ErrorType, and of TurnFailed.ErrorType (docs/protocol/rind-v2.md section 9).
const (
	ErrNotFound            = "NotFound"
	ErrNotUnique           = "NotUnique"
	ErrInvalidArguments    = "InvalidArguments"
	ErrToolArgsJSON        = "ToolArgsJSONError"
	ErrToolNotFound        = "ToolNotFound"
	ErrLineTooLong         = "LineTooLong"
	ErrTooLarge            = "TooLarge"
	ErrPermissionDenied    = "PermissionDenied"
	ErrDangerousCommand    = "DangerousCommandBlocked"
	ErrApprovalRejected    = "ApprovalRejected"
	ErrApprovalUnavailable = "ApprovalUnavailable"
	ErrCancelled           = "Cancelled"
	ErrTimedOut            = "TimedOut"
	ErrToolNotRun          = "ToolNotRun"
	ErrToolOutcomeUnknown  = "ToolOutcomeUnknown"
	ErrQuestionEmpty       = "UserQuestionEmptyAnswer"
	ErrQuestionUnsupported = "UserQuestionUnsupported"
	ErrTaskLimit           = "TaskLimitExceeded"
	ErrTaskPersistence     = "TaskPersistenceError"
	ErrPersistence         = "PersistenceError"
	ErrInternal            = "InternalError"

	FailConfiguration = "ConfigurationError"
	FailRejected      = "ProviderRejected"
	FailUnavailable   = "ProviderUnavailable"
	FailTimeout       = "ProviderTimeout"
	FailInterrupted   = "StreamInterrupted"
	FailTruncated     = "StreamTruncated"
	FailFiltered      = "ContentFiltered"
	FailContext       = "ContextTooLong"
	FailLimit         = "LimitExceeded"
	FailTurn          = "TurnInterrupted"
	FailPersistence   = "PersistenceError"
	FailInternal      = "InternalError"
	FailCrashed       = "ProviderCrashed" // of a hosted agent
	FailStalled       = "ProviderStalled"
)

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

// AssistantDelta is a piece of the answer's text.
type AssistantDelta struct {
	Text string         `json:"text"`
	More AssistantPiece `json:"-"`
}

// AssistantPiece says where a piece of text belongs.
type AssistantPiece struct {
	MessageID string `json:"m,omitempty"`
	Offset    int    `json:"o,omitempty"` // characters of the message before this piece
	Separator bool   `json:"s,omitempty"` // the portable protocol is told "\n\n" first, as an event of its own
}

func (b *AssistantDelta) appendFast(dst []byte) []byte {
	return AppendString(append(dst, `,"text":`...), b.Text)
}

func (m *AssistantPiece) appendFast(dst []byte) []byte {
	if m.MessageID != "" {
		dst = AppendString(append(dst, `,"m":`...), m.MessageID)
	}
	if m.Offset != 0 {
		dst = appendInt(append(dst, `,"o":`...), m.Offset)
	}
	if m.Separator {
		dst = append(dst, `,"s":true`...)
	}
	return dst
}

// ReasoningDelta is a piece of the model's visible reasoning.
type ReasoningDelta struct {
	Text string         `json:"text"`
	More AssistantPiece `json:"-"`
}

func (b *ReasoningDelta) appendFast(dst []byte) []byte {
	return AppendString(append(dst, `,"text":`...), b.Text)
}

// ReasoningCompleted is the reasoning of one step in full. Hidden reasoning has no event: only More.
type ReasoningCompleted struct {
	Content      string `json:"content"`
	ContentChars int    `json:"content_chars"`
	More         struct {
		MessageID string          `json:"m,omitempty"`
		Hidden    bool            `json:"hidden,omitempty"`
		Text      string          `json:"text,omitempty"`   // of hidden reasoning
		Opaque    json.RawMessage `json:"opaque,omitempty"` // signatures, encrypted content: the provider's own JSON
		Provider  string          `json:"provider,omitempty"`
		Model     string          `json:"model,omitempty"`
	} `json:"-"`
}

// TurnStepRetry says that the text of the current step is to be discarded.
type TurnStepRetry struct {
	Attempt int    `json:"attempt"`
	Reason  string `json:"reason"`
	More    struct {
		MessageID   string `json:"m,omitempty"`            // the message it abandons
		DiscardFrom int64  `json:"discard_from,omitempty"` // first portable number of the dropped text
		DelayMS     int64  `json:"delay_ms,omitempty"`
		Message     string `json:"message,omitempty"`
	} `json:"-"`
}

// ToolInputStarted, ToolInputDelta and ToolInputEnded tell a tool call's arguments while the model writes them.
type ToolInputStarted struct {
	ToolCallID string `json:"tool_call_id"`
	ToolName   string `json:"tool_name"`
}

// ToolInputDelta is a piece of the raw arguments.
type ToolInputDelta struct {
	ToolCallID string `json:"tool_call_id"`
	ToolName   string `json:"tool_name"`
	Delta      string `json:"delta"`
}

// ToolInputEnded says that the arguments are complete.
type ToolInputEnded struct {
	ToolCallID string `json:"tool_call_id"`
	ToolName   string `json:"tool_name"`
}

// Stats counts one sampling (docs/protocol/rind-v2.md section 5, token_stats_updated).
type Stats struct {
	SamplingKind          string  `json:"sampling_kind"` // assistant, compact
	InputTokens           int     `json:"input_tokens"`  // cached ones included
	CachedInputTokens     int     `json:"cached_input_tokens"`
	CacheHitRate          float64 `json:"cache_hit_rate"` // fraction
	OutputTokens          int     `json:"output_tokens"`
	ReasoningOutputTokens int     `json:"reasoning_output_tokens"`
	TotalTokens           int     `json:"total_tokens"`
	ContextWindowTokens   int     `json:"context_window_tokens"`
	ContextUsagePercent   float64 `json:"context_usage_percent"` // fraction
	Anchor                string  `json:"anchor"`                // "provider", or "estimate" where the provider told none
}

// TokenStatsUpdated tells what a sampling used.
type TokenStatsUpdated struct {
	Stats Stats `json:"stats"`
	More  struct {
		Model    string   `json:"model,omitempty"`
		Provider string   `json:"provider,omitempty"`
		Cost     *float64 `json:"cost,omitempty"`     // US dollars, where a price is known
		Estimate int      `json:"estimate,omitempty"` // tokens of the request as we counted them
		Level    bool     `json:"level,omitempty"`    // a hosted agent says how full its context is: nothing is counted as used
	} `json:"-"`
}

// AssistantMessageCompleted is one message of the assistant in full.
type AssistantMessageCompleted struct {
	Content      string `json:"content"`
	ContentChars int    `json:"content_chars"`
	MessageID    string `json:"message_id"`
	Interrupted  bool   `json:"interrupted,omitempty"`
	More         struct {
		Parallel bool `json:"parallel,omitempty"` // of mock, script, fixture: no portable event
	} `json:"-"`
}

func (b *AssistantMessageCompleted) appendFast(dst []byte) []byte {
	dst = slices.Grow(dst, len(b.Content)+len(b.Content)/16+128)
	dst = AppendString(append(dst, `,"content":`...), b.Content)
	dst = appendInt(append(dst, `,"content_chars":`...), b.ContentChars)
	dst = AppendString(append(dst, `,"message_id":`...), b.MessageID)
	if b.Interrupted {
		dst = append(dst, `,"interrupted":true`...)
	}
	return dst
}

// ToolRequested is one call of the model.
type ToolRequested struct {
	ToolCallID  string          `json:"tool_call_id"`
	ToolName    string          `json:"tool_name"`
	ArgsPreview string          `json:"args_preview"`
	Arguments   json.RawMessage `json:"arguments"` // an object; {} where the model's text is none
	More        struct {
		MessageID  string `json:"m,omitempty"`   // the assistant message the call belongs to
		Raw        string `json:"raw,omitempty"` // the arguments as the model wrote them, where they differ from Arguments
		Bad        bool   `json:"bad,omitempty"` // Raw is not a JSON object
		ProviderID string `json:"pid,omitempty"` // the id the provider gave, where it was renamed
		Title      string `json:"title,omitempty"`
		ToolKind   string `json:"tool_kind,omitempty"`
		AutoAnswer string `json:"auto,omitempty"` // option a mode picked for a hosted agent
	} `json:"-"`
}

// PlanStep is one step of a plan.
type PlanStep struct {
	Step   string `json:"step"`
	Status string `json:"status"` // pending, in_progress, completed, cancelled
}

// PlanUpdated is the whole plan.
type PlanUpdated struct {
	ToolCallID string     `json:"tool_call_id"`
	Plan       []PlanStep `json:"plan"`
}

// Option is one answer to an approval.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Kind  string `json:"kind"` // allow_once, allow_always, reject_once, reject_always
}

// ApprovalRequested asks for consent to one tool call.
type ApprovalRequested struct {
	ActionID   string          `json:"action_id"`
	ToolCallID string          `json:"tool_call_id"`
	ToolName   string          `json:"tool_name"`
	Title      string          `json:"title"`
	Arguments  json.RawMessage `json:"arguments"`
	Options    []Option        `json:"options"`
	More       struct {
		QuestionEventID string          `json:"qid,omitempty"` // event_id of the question older clients get in its place
		Description     string          `json:"description,omitempty"`
		Rule            json.RawMessage `json:"rule,omitempty"`    // what allow_always and reject_always would remember
		Outside         []string        `json:"outside,omitempty"` // absolute paths outside the roots that consent is asked for
		Sandbox         bool            `json:"sandbox,omitempty"` // the title says what commands run in
	} `json:"-"`
}

// ApprovalResolved closes an approval.
type ApprovalResolved struct {
	ActionID   string `json:"action_id"`
	ToolCallID string `json:"tool_call_id"`
	OptionID   string `json:"option_id"`
	Outcome    string `json:"outcome"`
	By         string `json:"by"`
}

// ToolCallStarted is on disk before the tool runs.
type ToolCallStarted struct {
	ToolCallID string `json:"tool_call_id"`
	ToolName   string `json:"tool_name"`
	More       struct {
		ReadOnly bool     `json:"ro,omitempty"`      // may run again after a crash
		Outside  []string `json:"outside,omitempty"` // absolute paths outside the roots that it may touch
	} `json:"-"`
}

// Choice is one offered answer to a question.
type Choice struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// UserQuestionRequested asks the user something.
type UserQuestionRequested struct {
	ToolCallID string   `json:"tool_call_id"`
	Question   string   `json:"question"`
	Options    []Choice `json:"options"` // null for free text
	More       struct {
		ActionID string `json:"action_id,omitempty"`
	} `json:"-"`
}

// UserQuestionAnswered closes a question.
type UserQuestionAnswered struct {
	ToolCallID string `json:"tool_call_id"`
	Answer     string `json:"answer"`
	More       struct {
		ActionID string `json:"action_id,omitempty"`
		By       string `json:"by,omitempty"`
	} `json:"-"`
}

// Progress is the payload of ToolProgress.
type Progress struct {
	Message string `json:"message"`
}

// ToolProgress says that a tool still runs.
type ToolProgress struct {
	ToolCallID string   `json:"tool_call_id"`
	ToolName   string   `json:"tool_name"`
	Payload    Progress `json:"payload"`
	More       struct {
		Content string `json:"content,omitempty"` // a hosted agent's content, at most 8 KiB
	} `json:"-"`
}

// DiffLine is one added or removed line.
type DiffLine struct {
	Kind string `json:"kind"` // added, removed
	Text string `json:"text"`
}

// FileChange tells what a tool changed in one file.
type FileChange struct {
	ToolCallID string     `json:"tool_call_id"`
	FilePath   string     `json:"file_path"`
	Lines      []DiffLine `json:"lines"`
	More       struct {
		First   bool    `json:"first,omitempty"` // of this path in the turn: also an artifact
		Added   int     `json:"added,omitempty"`
		Removed int     `json:"removed,omitempty"`
		MIME    string  `json:"mime,omitempty"`
		Before  string  `json:"before,omitempty"` // digest of the kept before-image; "" with Created: there was none
		After   string  `json:"after,omitempty"`  // digest of what was written
		Created bool    `json:"created,omitempty"`
		OldText *string `json:"old_text,omitempty"`
		NewText *string `json:"new_text,omitempty"`
	} `json:"-"`
}

// Touch is one file that a command changed.
type Touch struct {
	Path   string `json:"path"`             // absolute
	Kind   string `json:"kind"`             // created, modified, removed
	Before string `json:"before,omitempty"` // digest of the kept content from before; "" where it was not kept or there was none
	After  string `json:"after,omitempty"`  // digest of the content after; "" where it is gone or too large
}

// Touched is what a command changed in the workspace, as far as it can be told.
type Touched struct {
	Files []Touch `json:"files,omitempty"`
	More  int     `json:"more,omitempty"` // further files that are not listed
	// Unknown: the workspace is too large to be looked through, or the look was cut short.
	Unknown bool `json:"unknown,omitempty"`
}

// ToolResult closes a tool call.
type ToolResult struct {
	ToolCallID  string `json:"tool_call_id"`
	ToolName    string `json:"tool_name"`
	Status      string `json:"status"`
	Result      string `json:"result"` // JSON text, at most 8 KiB
	ErrorType   string `json:"error_type"`
	ErrorSource string `json:"error_source"`
	DurationMS  int64  `json:"duration_ms"`
	More        struct {
		ModelText   string   `json:"model,omitempty"` // what the model is given, where it differs from Result
		Attachments []Part   `json:"attachments,omitempty"`
		Truncated   bool     `json:"truncated,omitempty"`
		Touched     *Touched `json:"touched,omitempty"` // files a command changed beside its work
	} `json:"-"`
}

// ArtifactCreated is an artifact emitted by a provider (portable section 4).
type ArtifactCreated struct {
	More struct {
		Artifact json.RawMessage `json:"artifact"`
	} `json:"-"`
}

// ProviderEvent is an event a provider emitted, as emitted.
type ProviderEvent struct {
	More struct {
		Data json.RawMessage `json:"data"`
	} `json:"-"`
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

// BackgroundWait says what a session still waits for.
type BackgroundWait struct {
	Count     int     `json:"count"`
	StartedAt float64 `json:"started_at"` // Unix seconds
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
