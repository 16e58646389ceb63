package protocol

import "strconv"

// The methods of Body, one line a kind.

func (*SessionCreated) Kind() Kind             { return KindSessionCreated }
func (*SessionForked) Kind() Kind              { return KindSessionForked }
func (*TurnAccepted) Kind() Kind               { return KindTurnAccepted }
func (*UserMessage) Kind() Kind                { return KindUserMessage }
func (*TurnStarted) Kind() Kind                { return KindTurnStarted }
func (*ContextBuilt) Kind() Kind               { return KindContextBuilt }
func (*AssistantDelta) Kind() Kind             { return KindAssistantDelta }
func (*ReasoningDelta) Kind() Kind             { return KindReasoningDelta }
func (*ReasoningCompleted) Kind() Kind         { return KindReasoningCompleted }
func (*TurnStepRetry) Kind() Kind              { return KindTurnStepRetry }
func (*ToolInputStarted) Kind() Kind           { return KindToolInputStarted }
func (*ToolInputDelta) Kind() Kind             { return KindToolInputDelta }
func (*ToolInputEnded) Kind() Kind             { return KindToolInputEnded }
func (*TokenStatsUpdated) Kind() Kind          { return KindTokenStatsUpdated }
func (*AssistantMessageCompleted) Kind() Kind  { return KindAssistantMessageCompleted }
func (*ToolRequested) Kind() Kind              { return KindToolRequested }
func (*PlanUpdated) Kind() Kind                { return KindPlanUpdated }
func (*ApprovalRequested) Kind() Kind          { return KindApprovalRequested }
func (*ApprovalResolved) Kind() Kind           { return KindApprovalResolved }
func (*ToolCallStarted) Kind() Kind            { return KindToolCallStarted }
func (*UserQuestionRequested) Kind() Kind      { return KindUserQuestionRequested }
func (*UserQuestionAnswered) Kind() Kind       { return KindUserQuestionAnswered }
func (*ToolProgress) Kind() Kind               { return KindToolProgress }
func (*FileChange) Kind() Kind                 { return KindFileChange }
func (*ToolResult) Kind() Kind                 { return KindToolResult }
func (*ArtifactCreated) Kind() Kind            { return KindArtifactCreated }
func (*ProviderEvent) Kind() Kind              { return KindProviderEvent }
func (*Notice) Kind() Kind                     { return KindNotice }
func (*CommandsChanged) Kind() Kind            { return KindCommandsChanged }
func (*InputAccepted) Kind() Kind              { return KindInputAccepted }
func (*InputMoved) Kind() Kind                 { return KindInputMoved }
func (*QueuedInputDelivered) Kind() Kind       { return KindQueuedInputDelivered }
func (*QueuedInputReturned) Kind() Kind        { return KindQueuedInputReturned }
func (*CancelRequested) Kind() Kind            { return KindCancelRequested }
func (*ContextCompacted) Kind() Kind           { return KindContextCompacted }
func (*HistoryRepaired) Kind() Kind            { return KindHistoryRepaired }
func (*TurnCompleted) Kind() Kind              { return KindTurnCompleted }
func (*TurnFailed) Kind() Kind                 { return KindTurnFailed }
func (*TurnCancelled) Kind() Kind              { return KindTurnCancelled }
func (*TaskUpdated) Kind() Kind                { return KindTaskUpdated }
func (*TaskOutput) Kind() Kind                 { return KindTaskOutput }
func (*BackgroundWaitChanged) Kind() Kind      { return KindBackgroundWaitChanged }
func (*TaskContinuationFailed) Kind() Kind     { return KindTaskContinuationFailed }
func (*GoalUpdated) Kind() Kind                { return KindGoalUpdated }
func (*SessionSettingsChanged) Kind() Kind     { return KindSessionSettingsChanged }
func (*SessionRenamed) Kind() Kind             { return KindSessionRenamed }
func (*ProviderSession) Kind() Kind            { return KindProviderSession }
func (*ProviderContinuity) Kind() Kind         { return KindProviderContinuity }
func (*SessionCreated) told() bool             { return true }
func (*SessionForked) told() bool              { return true }
func (*TurnAccepted) told() bool               { return true }
func (*UserMessage) told() bool                { return true }
func (*TurnStarted) told() bool                { return true }
func (*ContextBuilt) told() bool               { return true }
func (*AssistantDelta) told() bool             { return true }
func (*ReasoningDelta) told() bool             { return true }
func (b *ReasoningCompleted) told() bool       { return !b.More.Hidden }
func (*TurnStepRetry) told() bool              { return true }
func (*ToolInputStarted) told() bool           { return true }
func (*ToolInputDelta) told() bool             { return true }
func (*ToolInputEnded) told() bool             { return true }
func (*TokenStatsUpdated) told() bool          { return true }
func (*AssistantMessageCompleted) told() bool  { return true }
func (*ToolRequested) told() bool              { return true }
func (*PlanUpdated) told() bool                { return true }
func (*ApprovalRequested) told() bool          { return true }
func (*ApprovalResolved) told() bool           { return true }
func (*ToolCallStarted) told() bool            { return true }
func (*UserQuestionRequested) told() bool      { return true }
func (*UserQuestionAnswered) told() bool       { return true }
func (*ToolProgress) told() bool               { return true }
func (*FileChange) told() bool                 { return true }
func (*ToolResult) told() bool                 { return true }
func (*ArtifactCreated) told() bool            { return true }
func (*ProviderEvent) told() bool              { return true }
func (*Notice) told() bool                     { return true }
func (*CommandsChanged) told() bool            { return true }
func (*InputAccepted) told() bool              { return true }
func (*InputMoved) told() bool                 { return true }
func (*QueuedInputDelivered) told() bool       { return true }
func (*QueuedInputReturned) told() bool        { return true }
func (*CancelRequested) told() bool            { return true }
func (*ContextCompacted) told() bool           { return true }
func (*HistoryRepaired) told() bool            { return true }
func (*TurnCompleted) told() bool              { return true }
func (*TurnFailed) told() bool                 { return true }
func (*TurnCancelled) told() bool              { return true }
func (*TaskUpdated) told() bool                { return true }
func (*TaskOutput) told() bool                 { return true }
func (*BackgroundWaitChanged) told() bool      { return true }
func (*TaskContinuationFailed) told() bool     { return true }
func (*GoalUpdated) told() bool                { return true }
func (*SessionSettingsChanged) told() bool     { return true }
func (*SessionRenamed) told() bool             { return true }
func (*ProviderSession) told() bool            { return true }
func (*ProviderContinuity) told() bool         { return true }
func (b *SessionCreated) more() any            { return &b.More }
func (b *SessionForked) more() any             { return &b.More }
func (b *TurnAccepted) more() any              { return &b.More }
func (b *UserMessage) more() any               { return &b.More }
func (b *TurnStarted) more() any               { return &b.More }
func (b *ContextBuilt) more() any              { return &b.More }
func (b *AssistantDelta) more() any            { return &b.More }
func (b *ReasoningDelta) more() any            { return &b.More }
func (b *ReasoningCompleted) more() any        { return &b.More }
func (b *TurnStepRetry) more() any             { return &b.More }
func (*ToolInputStarted) more() any            { return nil }
func (*ToolInputDelta) more() any              { return nil }
func (*ToolInputEnded) more() any              { return nil }
func (b *TokenStatsUpdated) more() any         { return &b.More }
func (b *AssistantMessageCompleted) more() any { return &b.More }
func (b *ToolRequested) more() any             { return &b.More }
func (*PlanUpdated) more() any                 { return nil }
func (b *ApprovalRequested) more() any         { return &b.More }
func (*ApprovalResolved) more() any            { return nil }
func (b *ToolCallStarted) more() any           { return &b.More }
func (b *UserQuestionRequested) more() any     { return &b.More }
func (b *UserQuestionAnswered) more() any      { return &b.More }
func (b *ToolProgress) more() any              { return &b.More }
func (b *FileChange) more() any                { return &b.More }
func (b *ToolResult) more() any                { return &b.More }
func (b *ArtifactCreated) more() any           { return &b.More }
func (b *ProviderEvent) more() any             { return &b.More }
func (b *Notice) more() any                    { return &b.More }
func (b *CommandsChanged) more() any           { return &b.More }
func (b *InputAccepted) more() any             { return &b.More }
func (b *InputMoved) more() any                { return &b.More }
func (b *QueuedInputDelivered) more() any      { return &b.More }
func (*QueuedInputReturned) more() any         { return nil }
func (b *CancelRequested) more() any           { return &b.More }
func (b *ContextCompacted) more() any          { return &b.More }
func (b *HistoryRepaired) more() any           { return &b.More }
func (b *TurnCompleted) more() any             { return &b.More }
func (b *TurnFailed) more() any                { return &b.More }
func (b *TurnCancelled) more() any             { return &b.More }
func (b *TaskUpdated) more() any               { return &b.More }
func (*TaskOutput) more() any                  { return nil }
func (*BackgroundWaitChanged) more() any       { return nil }
func (*TaskContinuationFailed) more() any      { return nil }
func (b *GoalUpdated) more() any               { return &b.More }
func (*SessionSettingsChanged) more() any      { return nil }
func (*SessionRenamed) more() any              { return nil }
func (b *ProviderSession) more() any           { return &b.More }
func (b *ProviderContinuity) more() any        { return &b.More }

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }
