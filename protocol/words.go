package protocol

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
