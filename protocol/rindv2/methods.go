package rindv2

// Method is one row of docs/protocol/rind-v2.md section 4.
type Method struct {
	Name   string
	Params any // pointer to the params type, new for each call of Methods; a Reader but for the methods of rind/executions
	Result any // value of the result type, for describing it
	Early  bool
	Always bool
}

// Methods is the table of all methods of the protocol, in the order of the contract. Early: allowed before initialize. Always: never
// refused as Overloaded (section 2).
func Methods() []Method {
	return []Method{
		{Name: "initialize", Params: &InitializeParams{}, Result: Initialize{}, Early: true},
		{Name: "ping", Params: &Nothing{}, Result: OK{}, Early: true, Always: true},
		{Name: "shutdown", Params: &Nothing{}, Result: OK{}, Early: true, Always: true},
		{Name: "session/new", Params: &NewParams{}, Result: SessionInfo{}},
		{Name: "session/create", Params: &CreateParams{}, Result: SessionInfo{}},
		{Name: "rind/session/forget_draft", Params: &Target{}, Result: Forgotten{}},
		{Name: "session/list", Params: &ListParams{}, Result: List{}},
		{Name: "session/switch", Params: &Named{}, Result: SessionInfo{}},
		{Name: "session/fork", Params: &ForkParams{}, Result: Forked{}},
		{Name: "session/delete", Params: &Named{}, Result: Deleted{}},
		{Name: "session/subscribe", Params: &SubscribeParams{}, Result: Subscribed{}},
		{Name: "session/unsubscribe", Params: &Target{}, Result: Subscribed{}},
		{Name: "session/replay", Params: &ReplayParams{}, Result: ReplayResult{}},
		{Name: "session/prompt", Params: &PromptParams{}, Result: Prompt{}},
		{Name: "session/cancel", Params: &CancelParams{}, Result: OK{}, Always: true},
		{Name: "model/list", Params: &ModelListParams{}, Result: Models{}},
		{Name: "model/set", Params: &ModelSetParams{}, Result: ModelSet{}},
		{Name: "model/effort", Params: &EffortParams{}, Result: Effort{}},
		{Name: "rind/session/steer", Params: &InputParams{}, Result: Input{}},
		{Name: "rind/session/follow_up", Params: &InputParams{}, Result: Input{}},
		{Name: "rind/session/promote_follow_up", Params: &PromoteParams{}, Result: Input{}},
		{Name: "rind/session/unsteer", Params: &RetrieveParams{}, Result: Input{}},
		{Name: "rind/session/dequeue_follow_up", Params: &RetrieveParams{}, Result: Input{}},
		{Name: "rind/session/compact", Params: &Target{}, Result: Compaction{}},
		{Name: "rind/command/execute", Params: &CommandParams{}, Result: CommandResult{}},
		{Name: "rind/user-question/respond", Params: &AnswerParams{}, Result: OK{}, Always: true},
		{Name: "rind/approval/respond", Params: &ApprovalParams{}, Result: OK{}, Always: true},
		{Name: "rind/session/set_mode", Params: &ModeParams{}, Result: Mode{}},
		{Name: "rind/runtime/describe", Params: &Nothing{}, Result: RuntimeDescription{}},
		{Name: "rind/conversation/create", Params: &ConversationCreateParams{}, Result: ConversationResult{}},
		{Name: "rind/conversation/read", Params: &ConversationReadParams{}, Result: ConversationResult{}},
		{Name: "rind/execution/start", Params: &ExecutionStartParams{}, Result: Execution{}},
		{Name: "rind/execution/read", Params: &ExecutionParams{}, Result: Execution{}},
		{Name: "rind/execution/cancel", Params: &ExecutionCancelParams{}, Result: Execution{}},
		{Name: "rind/execution/events", Params: &ExecutionEventsParams{}, Result: ExecutionPage{}},
		{Name: "rind/execution/artifacts", Params: &ExecutionParams{}, Result: ExecutionArtifacts{}},
		{Name: "rind/action/respond", Params: &ActionRespondParams{}, Result: Execution{}, Always: true},
		{Name: "rind/background/list", Params: &Target{}, Result: BackgroundList{}},
		{Name: "rind/background/output", Params: &BackgroundOutputParams{}, Result: BackgroundOutput{}},
		{Name: "rind/task/list", Params: &TaskListParams{}, Result: TaskList{}},
		{Name: "rind/task/read", Params: &TaskReadParams{}, Result: TaskPart{}},
		{Name: "rind/task/wait", Params: &TaskWaitParams{}, Result: TaskPart{}},
		{Name: "rind/task/cancel", Params: &TaskParams{}, Result: Task{}},
		{Name: "rind/task/release_wait", Params: &ReleaseParams{}, Result: Released{}},
		{Name: "rind/goal/get", Params: &Target{}, Result: GoalResult{}},
		{Name: "rind/goal/set", Params: &GoalSetParams{}, Result: GoalResult{}},
		{Name: "rind/goal/status", Params: &GoalStatusParams{}, Result: GoalResult{}},
		{Name: "rind/goal/clear", Params: &Target{}, Result: GoalResult{}},
		{Name: "rind/context/inspect", Params: &Target{}, Result: ContextInspect{}},
		{Name: "rind/usage/summary", Params: &UsageParams{}, Result: Usage{}},
		{Name: "rind/auth/list", Params: &Nothing{}, Result: Providers{}},
		{Name: "rind/auth/login", Params: &LoginParams{}, Result: LoggedIn{}},
		{Name: "rind/auth/logout", Params: &LogoutParams{}, Result: LoggedOut{}},
		{Name: "rind/folder_defaults/get", Params: &FolderParams{}, Result: Folder{}},
		{Name: "rind/folder_defaults/set", Params: &FolderSetParams{}, Result: Folder{}},
		{Name: "rind/folder_defaults/unset", Params: &FolderUnsetParams{}, Result: Folder{}},
		{Name: "rind/folder_defaults/resolve", Params: &FolderResolveParams{}, Result: Folders{}},
		{Name: "rind/folder_defaults/apply", Params: &Target{}, Result: FolderApplied{}},
		{Name: "file/list", Params: &FileListParams{}, Result: FileList{}},
		{Name: "file/read", Params: &FileParams{}, Result: FileContent{}},
		{Name: "file/write", Params: &FileWriteParams{}, Result: FileWritten{}},
	}
}

// Loose are the events that have no entry in a log (docs/protocol/catalogue.md), by name, with the fields of their own.
var Loose = map[string]any{
	"prompt_queued": struct {
		RequestID any `json:"request_id" wire:"RequestID"`
		Position  int `json:"position"` // from 1
	}{},
	"session_discarded": struct{}{},
	"folder_defaults_changed": struct {
		WorkspaceRoot string `json:"workspace_root"`
	}{},
}
