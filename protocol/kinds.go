package protocol

// Kind says what an entry is. The numbers are stored: never reuse or change one, add at the end.
type Kind uint8

// The catalogue of docs/protocol/catalogue.md, in its order. A kind's number is for good.
const (
	KindSessionCreated Kind = iota + 1
	KindSessionForked
	KindTurnAccepted
	KindUserMessage
	KindTurnStarted
	KindContextBuilt
	KindAssistantDelta
	KindReasoningDelta
	KindReasoningCompleted
	KindTurnStepRetry
	KindToolInputStarted
	KindToolInputDelta
	KindToolInputEnded
	KindTokenStatsUpdated
	KindAssistantMessageCompleted
	KindToolRequested
	KindPlanUpdated
	KindApprovalRequested
	KindApprovalResolved
	KindToolCallStarted
	KindUserQuestionRequested
	KindUserQuestionAnswered
	KindToolProgress
	KindFileChange
	KindToolResult
	KindArtifactCreated
	KindProviderEvent
	KindNotice
	KindCommandsChanged
	KindInputAccepted
	KindInputMoved
	KindQueuedInputDelivered
	KindQueuedInputReturned
	KindCancelRequested
	KindContextCompacted
	KindHistoryRepaired
	KindTurnCompleted
	KindTurnFailed
	KindTurnCancelled
	KindTaskUpdated
	KindTaskOutput
	KindBackgroundWaitChanged
	KindTaskContinuationFailed
	KindGoalUpdated
	KindSessionSettingsChanged
	KindSessionRenamed
	KindProviderSession
	KindProviderContinuity

	kindEnd // one past the last; keep it last
)

// Class says what an entry promises (DESIGN 2).
type Class uint8

// The three classes of entries.
const (
	Fact      Class = iota // flushed to disk before anyone sees it
	Increment              // written before it is shown, not flushed; a later fact repeats it
	Note                   // written like an increment; nothing repeats it
)

// Prune says when an entry may go.
type Prune uint8

// Retention of an entry.
const (
	Keep        Prune = iota // lives as long as its session
	PruneEditor              // may go 24 h after the end of an editor's turn; kept with a turn accepted over the portable protocol
	PruneAll                 // may go 24 h after the end of any turn
	PruneOlder               // as PruneAll, but the newest of its kind in a session stays
)

// Durability says which cursor rind v2 shows on an event.
type Durability uint8

// Durabilities of rind v2 events.
const (
	NotTold     Durability = iota // the entry has no rind v2 event
	Incremental                   // told without a cursor
	Durable                       // told with cursor
	DurableTask                   // told with task_cursor
)

// Info is one row of the catalogue.
type Info struct {
	Name     string // name of the kind and of its rind v2 event
	Class    Class
	Prune    Prune
	Told     Durability // NotTold: the entry's event is NULL
	Portable string     // what the portable protocol tells, for codecs' table tests; "" for nothing
	ACP      string     // what ACP tells, likewise
	Terminal bool       // ends a turn
	New      func() Body
}

func row[B any, P interface {
	*B
	Body
}](i Info) Info {
	i.New = func() Body { return P(new(B)) }
	return i
}

// Catalogue lists every kind of entry; the index is the Kind. docs/protocol/catalogue.md explains each row.
var Catalogue = [kindEnd]Info{
	KindSessionCreated:            row[SessionCreated](Info{Name: "session_created"}),
	KindSessionForked:             row[SessionForked](Info{Name: "session_forked", ACP: "load"}),
	KindTurnAccepted:              row[TurnAccepted](Info{Name: "turn_accepted", Portable: "run.queued"}),
	KindUserMessage:               row[UserMessage](Info{Name: "user_message", Portable: "rind.prompt_parts", ACP: "user_message_chunk"}),
	KindTurnStarted:               row[TurnStarted](Info{Name: "turn_started", Told: Durable, Portable: "run.started|rind.turn_resumed"}),
	KindContextBuilt:              row[ContextBuilt](Info{Name: "context_built", Class: Note, Prune: PruneOlder, Told: Incremental}),
	KindAssistantDelta:            row[AssistantDelta](Info{Name: "assistant_delta", Class: Increment, Prune: PruneEditor, Told: Incremental, Portable: "output.text.delta", ACP: "agent_message_chunk"}),
	KindReasoningDelta:            row[ReasoningDelta](Info{Name: "reasoning_delta", Class: Increment, Prune: PruneEditor, Told: Incremental, Portable: "rind.reasoning", ACP: "agent_thought_chunk"}),
	KindReasoningCompleted:        row[ReasoningCompleted](Info{Name: "reasoning_completed", Told: Durable, ACP: "agent_thought_chunk"}),
	KindTurnStepRetry:             row[TurnStepRetry](Info{Name: "turn_step_retry", Class: Note, Told: Incremental, Portable: "rind.turn_step_retry", ACP: "notice"}),
	KindToolInputStarted:          row[ToolInputStarted](Info{Name: "tool_input_started", Class: Increment, Prune: PruneAll, Told: Incremental}),
	KindToolInputDelta:            row[ToolInputDelta](Info{Name: "tool_input_delta", Class: Increment, Prune: PruneAll, Told: Incremental}),
	KindToolInputEnded:            row[ToolInputEnded](Info{Name: "tool_input_ended", Class: Increment, Prune: PruneAll, Told: Incremental}),
	KindTokenStatsUpdated:         row[TokenStatsUpdated](Info{Name: "token_stats_updated", Class: Note, Told: Incremental, Portable: "rind.usage", ACP: "usage_update"}),
	KindAssistantMessageCompleted: row[AssistantMessageCompleted](Info{Name: "assistant_message_completed", Told: Durable, Portable: "rind.message_completed", ACP: "agent_message_chunk"}),
	KindToolRequested:             row[ToolRequested](Info{Name: "tool_requested", Told: Durable, Portable: "rind.tool_requested", ACP: "tool_call"}),
	KindPlanUpdated:               row[PlanUpdated](Info{Name: "plan_updated", Told: Incremental, Portable: "rind.plan_updated", ACP: "plan"}),
	KindApprovalRequested:         row[ApprovalRequested](Info{Name: "approval_requested", Told: Durable, Portable: "action.required", ACP: "request_permission"}),
	KindApprovalResolved:          row[ApprovalResolved](Info{Name: "approval_resolved", Told: Durable, Portable: "action.responded", ACP: "$/cancel_request"}),
	KindToolCallStarted:           row[ToolCallStarted](Info{Name: "tool_call_started", Told: Incremental, Portable: "rind.tool_started", ACP: "tool_call_update"}),
	KindUserQuestionRequested:     row[UserQuestionRequested](Info{Name: "user_question_requested", Told: Durable, Portable: "action.required", ACP: "elicitation"}),
	KindUserQuestionAnswered:      row[UserQuestionAnswered](Info{Name: "user_question_answered", Told: Durable, Portable: "action.responded", ACP: "$/cancel_request"}),
	KindToolProgress:              row[ToolProgress](Info{Name: "tool_progress", Class: Note, Prune: PruneEditor, Told: Incremental, Portable: "rind.tool_progress", ACP: "tool_call_update"}),
	KindFileChange:                row[FileChange](Info{Name: "file_change", Told: Incremental, Portable: "rind.file_changed"}),
	KindToolResult:                row[ToolResult](Info{Name: "tool_result", Told: Durable, Portable: "rind.tool_result", ACP: "tool_call_update"}),
	KindArtifactCreated:           row[ArtifactCreated](Info{Name: "artifact_created", Portable: "artifact.created"}),
	KindProviderEvent:             row[ProviderEvent](Info{Name: "provider.event", Class: Note, Portable: "provider.event"}),
	KindNotice:                    row[Notice](Info{Name: "notice", Class: Note, Prune: PruneAll, Told: Incremental, ACP: "notice"}),
	KindCommandsChanged:           row[CommandsChanged](Info{Name: "commands_changed", Class: Note, Prune: PruneOlder, ACP: "available_commands_update"}),
	KindInputAccepted:             row[InputAccepted](Info{Name: "input_accepted"}),
	KindInputMoved:                row[InputMoved](Info{Name: "input_moved"}),
	KindQueuedInputDelivered:      row[QueuedInputDelivered](Info{Name: "queued_input_delivered", Told: Durable, Portable: "rind.input_delivered", ACP: "user_message_chunk"}),
	KindQueuedInputReturned:       row[QueuedInputReturned](Info{Name: "queued_input_returned", Told: Durable}),
	KindCancelRequested:           row[CancelRequested](Info{Name: "cancel_requested"}),
	KindContextCompacted:          row[ContextCompacted](Info{Name: "context_compacted", Told: Durable, Portable: "rind.context_compacted", ACP: "compaction_update"}),
	KindHistoryRepaired:           row[HistoryRepaired](Info{Name: "history_repaired"}),
	KindTurnCompleted:             row[TurnCompleted](Info{Name: "turn_completed", Told: Durable, Portable: "output.text.done,run.completed", ACP: "answer", Terminal: true}),
	KindTurnFailed:                row[TurnFailed](Info{Name: "turn_failed", Told: Durable, Portable: "run.failed", ACP: "answer", Terminal: true}),
	KindTurnCancelled:             row[TurnCancelled](Info{Name: "turn_cancelled", Told: Durable, Portable: "run.cancelled", ACP: "answer", Terminal: true}),
	KindTaskUpdated:               row[TaskUpdated](Info{Name: "task_updated", Told: DurableTask, Portable: "rind.task_updated", ACP: "notice"}),
	KindTaskOutput:                row[TaskOutput](Info{Name: "task_output", Class: Note, Prune: PruneAll, Told: Incremental}),
	KindBackgroundWaitChanged:     row[BackgroundWaitChanged](Info{Name: "background_wait_changed", Class: Note, Prune: PruneAll, Told: Incremental}),
	KindTaskContinuationFailed:    row[TaskContinuationFailed](Info{Name: "task_continuation_failed", Class: Note, Told: Incremental}),
	KindGoalUpdated:               row[GoalUpdated](Info{Name: "goal_updated", Told: Incremental}),
	KindSessionSettingsChanged:    row[SessionSettingsChanged](Info{Name: "session_settings_changed", Told: Incremental, ACP: "config_option_update,current_mode_update"}),
	KindSessionRenamed:            row[SessionRenamed](Info{Name: "session_renamed", Told: Incremental, ACP: "session_info_update"}),
	KindProviderSession:           row[ProviderSession](Info{Name: "provider_session"}),
	KindProviderContinuity:        row[ProviderContinuity](Info{Name: "provider_continuity"}),
}

// Known reports whether this build knows k; an entry of an unknown kind was written by a newer version.
func (k Kind) Known() bool { return k > 0 && k < kindEnd }

// Info returns the catalogue row of k; an unknown kind gives a fact that is not told.
func (k Kind) Info() *Info {
	if !k.Known() {
		return &Info{Name: "unknown"}
	}
	return &Catalogue[k]
}

func (k Kind) String() string { return k.Info().Name }
