// The rind v2 protocol. Written by its codec, not by hand. Members that are not named here may appear at any time.

export interface ActionRespondParams {
  execution_id: string;
  action_id: string;
  response: Record<string, unknown>;
}

export interface AnswerParams {
  session_id?: string;
  tool_call_id: string;
  answer: string;
}

export interface ApprovalParams {
  session_id?: string;
  action_id: string;
  option_id: string;
}

export interface ApprovalRequestedEvent {
  type: "approval_requested";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  action_id: string;
  tool_call_id: string;
  tool_name: string;
  title: string;
  arguments: Record<string, unknown>;
  options: Option[];
}

export interface ApprovalResolvedEvent {
  type: "approval_resolved";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  action_id: string;
  tool_call_id: string;
  option_id: string;
  outcome: string;
  by: string;
}

export interface AssistantDeltaEvent {
  type: "assistant_delta";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  text: string;
}

export interface AssistantMessageCompletedEvent {
  type: "assistant_message_completed";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  content: string;
  content_chars: number;
  message_id: string;
  interrupted?: boolean;
}

export interface Attachment {
  kind: string;
  name?: string;
  mime?: string;
  uri?: string;
}

export interface AuthPromptAnswer {
  value: string;
}

export interface AuthPromptParams {
  kind: string;
  message: string;
  options: string[];
}

export interface AuthUpdateLine {
  kind: "event";
  method: "rind/auth/update";
  sequence: number;
  event: LoginProgress;
}

export interface BackgroundItem {
  bg_id: string;
  status: string;
  exit_code: number;
  cwd: string;
}

export interface BackgroundList {
  tasks: BackgroundItem[];
}

export interface BackgroundOutput {
  task: {
    bg_id: string;
    status: string;
    exit_code: number;
    cwd: string;
    stdout: string;
    stderr: string;
    truncated: boolean;
  };
}

export interface BackgroundOutputParams {
  session_id?: string;
  bg_id: string;
  max_output_chars?: number;
}

export interface BackgroundWait {
  count: number;
  started_at: number;
}

export interface BackgroundWaitChangedEvent {
  type: "background_wait_changed";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  background_wait: BackgroundWait | null;
}

export interface Breakdown {
  captured_at: string;
  turn_id: string;
  estimated_total: number;
  context_window_tokens: number;
  sections: Section[];
}

export interface CancelParams {
  session_id?: string;
  turn_id?: string;
  request_id?: string | number;
}

export interface Choice {
  label: string;
  description: string;
}

export interface Command {
  name: string;
  description: string;
  usage: string;
  aliases: string[];
}

export interface CommandParams {
  session_id?: string;
  input: string;
}

export interface CommandResult {
  text: string;
  display?: Record<string, unknown>;
  prompt_prefill?: string;
  next_prompt?: NextPrompt;
}

export interface Compaction {
  id: string;
  created_at: string;
  strategy: "llm_inline" | "deterministic_fallback";
  reason: "manual" | "auto" | "context_length_error";
  phase: string;
  policy_version: string;
  source: CompactionSource;
  continuation_user_message: CompactionMessage;
  handoff_message: CompactionMessage;
  usage?: Stats;
  fallback_error?: string;
}

export interface CompactionMessage {
  role: string;
  content: string;
}

export interface CompactionSource {
  message_start_index: number;
  message_end_index_exclusive: number;
  tool_call_ids: string[];
  history_digest: string;
}

export interface ContextBuiltEvent {
  type: "context_built";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  message_count: number;
  stats: Record<string, number>;
  decisions: ContextDecisions;
}

export interface ContextCompactedEvent {
  type: "context_compacted";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  record: Compaction;
}

export interface ContextDecisions {
  auto_compact_token_limit_reached: boolean;
  compact_required: boolean;
  rind_docs_truncated: boolean;
  rind_docs_truncated_scopes: string[];
}

export interface ContextInspect {
  session_id: string;
  breakdown: Breakdown | null;
  latest_usage: Stats | null;
}

export interface Conversation {
  id: string;
  createdAt: string;
  metadata: Record<string, unknown>;
}

export interface ConversationCreateParams {
  metadata?: Record<string, unknown>;
}

export interface ConversationReadParams {
  conversation_id?: string;
  session_id?: string;
}

export interface ConversationResult {
  conversation: Conversation;
  session_id: string;
}

export interface CreateParams {
  workspace_root?: string;
  provider_id?: string;
  model_id?: string;
  reasoning_effort?: string;
  session_id?: string;
  name?: string;
}

export interface DayUsage {
  day: string;
  tokens: number;
}

export interface Deleted {
  ok: boolean;
  deleted: string;
}

export interface DiffLine {
  kind: string;
  text: string;
}

export interface Effort {
  reasoning_effort: string;
  session: boolean;
  applies: "now" | "next_turn";
}

export interface EffortParams {
  session_id?: string;
  reasoning_effort: string;
}

export interface ErrorObject {
  type: "ActionAlreadyResolved" | "ActionNotFound" | "ConfigurationError" | "Conflict" | "IdempotencyConflict" | "InputNotPending" | "InputQueueFull" | "InputTooLong" | "InternalError" | "InvalidRequest" | "MethodNotFound" | "NotFound" | "Overloaded" | "ParseError" | "PersistenceError" | "ProviderError" | "QuestionNotFound" | "RequestFailed" | "ServerNotReady" | "ServerStopping" | "SessionBusy" | "SessionNotFound" | "ShutdownFailed" | "TaskNotOwned" | "TurnActive" | "TurnNotActive" | "Unavailable" | "Unsupported" | "UnsupportedOperation";
  message: string;
}

export type Event = ApprovalRequestedEvent | ApprovalResolvedEvent | AssistantDeltaEvent | AssistantMessageCompletedEvent | BackgroundWaitChangedEvent | ContextBuiltEvent | ContextCompactedEvent | FileChangeEvent | FolderDefaultsChangedEvent | GoalUpdatedEvent | NoticeEvent | PlanUpdatedEvent | PromptQueuedEvent | QueuedInputDeliveredEvent | QueuedInputReturnedEvent | ReasoningCompletedEvent | ReasoningDeltaEvent | SessionDiscardedEvent | SessionRenamedEvent | SessionSettingsChangedEvent | TaskContinuationFailedEvent | TaskOutputEvent | TaskUpdatedEvent | TokenStatsUpdatedEvent | ToolCallStartedEvent | ToolInputDeltaEvent | ToolInputEndedEvent | ToolInputStartedEvent | ToolProgressEvent | ToolRequestedEvent | ToolResultEvent | TurnCancelledEvent | TurnCompletedEvent | TurnFailedEvent | TurnStartedEvent | TurnStepRetryEvent | UserQuestionAnsweredEvent | UserQuestionRequestedEvent;

export interface EventLine {
  kind: "event";
  method: "session/update";
  sequence: number;
  durability: "durable" | "incremental";
  session_id: string;
  turn_id: string;
  cursor?: number;
  task_cursor?: number;
  event: Event;
}

export interface Execution {
  id: string;
  conversationId: string;
  providerId: string;
  state: "queued" | "starting" | "running" | "awaiting_approval" | "awaiting_input" | "cancelling" | "succeeded" | "failed" | "cancelled";
  input: string;
  requiredCapabilities: string[];
  effectiveConfig: Record<string, unknown>;
  createdAt: string;
  updatedAt: string;
  startedAt?: string;
  endedAt?: string;
  finalOutput?: string;
  error?: ExecutionError;
}

export interface ExecutionArtifact {
  id: string;
  name: string;
  mediaType: string;
  uri?: string;
  metadata: Record<string, unknown>;
  executionId: string;
  createdAt: string;
}

export interface ExecutionArtifacts {
  artifacts: ExecutionArtifact[];
}

export interface ExecutionCancelParams {
  execution_id: string;
  reason?: string;
}

export interface ExecutionError {
  code: "PROVIDER_ERROR";
  message: string;
}

export interface ExecutionEvent {
  id: string;
  executionId: string;
  sequence: number;
  type: "run.queued" | "run.started" | "output.text.delta" | "output.text.done" | "action.required" | "action.responded" | "artifact.created" | "provider.event" | "run.completed" | "run.failed" | "run.cancelled";
  time: string;
  data: Record<string, unknown>;
}

export interface ExecutionEventsParams {
  execution_id: string;
  after?: number;
  limit?: number;
  follow?: boolean;
}

export interface ExecutionLine {
  kind: "event";
  method: "execution/event";
  sequence: number;
  execution_id: string;
  event: ExecutionEvent;
}

export interface ExecutionPage {
  events: ExecutionEvent[];
  nextCursor: number;
  following: boolean;
}

export interface ExecutionParams {
  execution_id: string;
}

export interface ExecutionStartParams {
  conversationId: string;
  providerId: string;
  input: string;
  requiredCapabilities?: string[];
  config?: Record<string, unknown>;
  idempotencyKey?: string;
}

export interface Fault {
  type: string;
  message: string;
}

export interface FileChangeEvent {
  type: "file_change";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  tool_call_id: string;
  file_path: string;
  lines: DiffLine[];
}

export interface FileContent {
  content_base64: string;
  mime: string;
  size: number;
}

export interface FileEntry {
  name: string;
  type: "file" | "dir";
  size: number;
}

export interface FileList {
  entries: FileEntry[];
}

export interface FileListParams {
  session_id?: string;
  path?: string;
}

export interface FileParams {
  session_id?: string;
  path: string;
}

export interface FileWriteParams {
  session_id?: string;
  path: string;
  content_base64: string;
}

export interface FileWritten {
  path: string;
  size: number;
}

export interface Folder {
  workspace_root: string;
  folder: unknown;
  resolved: FolderResolved;
  inherited: unknown;
}

export interface FolderApplied {
  provider_id: string;
  model_id: string;
  reasoning_effort: string;
  changed: boolean;
  applies: "now" | "next_turn";
}

export interface FolderDefaultsChangedEvent {
  type: "folder_defaults_changed";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  workspace_root: string;
}

export interface FolderParams {
  workspace_root?: string;
}

export interface FolderResolveParams {
  workspace_roots: string[];
}

export interface FolderResolved {
  provider: string;
  model: string;
  reasoning_effort: string;
  model_source: string;
  effort_source: string;
}

export interface FolderSetParams {
  workspace_root?: string;
  provider_id?: string;
  model_id?: string;
  reasoning_effort?: string;
}

export interface FolderUnsetParams {
  workspace_root?: string;
  group: "model" | "reasoning_effort";
}

export interface Folders {
  folders: Folder[];
}

export interface Forgotten {
  forgotten: boolean;
}

export interface ForkParams {
  session_id?: string;
  before_message_id?: string;
}

export interface Forked {
  session_id: string;
  forked_from: string;
}

export interface FunctionCall {
  name: string;
  arguments: string;
}

export interface Goal {
  objective: string;
  status: string;
  turns_used: number;
  max_turns: number;
}

export interface GoalResult {
  goal: Goal | null;
}

export interface GoalSetParams {
  session_id?: string;
  objective: string;
  max_turns?: number;
}

export interface GoalStatusParams {
  session_id?: string;
  status: "active" | "paused";
}

export interface GoalUpdatedEvent {
  type: "goal_updated";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  goal: Goal | null;
}

export interface Initialize {
  session_id: string;
  draft: boolean;
  model: string;
  provider: string;
  reasoning_effort: string;
  base_url: string;
  workspace_root: string;
  team_main: string | null;
  approval_mode: string;
  version: string;
  protocol_version: string;
  capabilities: string[];
  methods: string[];
  resume_preview: string;
  has_rind_doc: boolean;
  title: string;
  updated_at: string;
  message_count: number;
  turn_state: TurnState | null;
  live_turn: LiveTurn | null;
  goal: Goal | null;
  commands: Command[];
  providers: Provider[];
}

export interface InitializeParams {
  client_capabilities?: string[];
}

export interface Input {
  accepted?: boolean;
  retrieved?: boolean;
  input_id: string;
  input?: string;
  mode: string;
  pending: number;
}

export interface InputParams {
  session_id?: string;
  input: string;
  turn_id?: string;
}

export interface List {
  sessions: ListItem[];
  current_session_id: string | null;
  next_page_token: string | null;
}

export interface ListItem {
  id: string;
  title: string;
  updated_at: string;
  size: ListSize;
  preview: string;
  workspace_root: string;
  project_id: string | null;
  owner_agent_id: string | null;
  session_type: string;
  parent_session_id: string | null;
  has_user_message: boolean;
  connection_ready: boolean;
}

export interface ListParams {
  limit?: number;
  workspace_root?: string;
  exclude_workspace_roots?: string[];
  page_token?: string;
}

export interface ListSize {
  messages: number;
  tool_calls: number;
}

export interface LiveApproval {
  action_id: string;
  tool_call_id: string;
  tool_name: string;
  title: string;
  arguments: Record<string, unknown>;
  options: Option[];
}

export interface LiveQuestion {
  tool_call_id: string;
  question: string;
  options: Choice[] | null;
}

export interface LiveTool {
  tool_call_id: string;
  tool_name: string;
  args_preview: string;
  arguments: Record<string, unknown>;
  status: "pending" | "running" | "completed" | "error";
  output: string;
  error_type?: string;
  duration_ms?: number;
}

export interface LiveTurn {
  turn_id: string;
  status: "running";
  operation: "prompt" | "compact";
  assistant_text: string;
  tools: LiveTool[];
  question: LiveQuestion | null;
  pending_inputs: PendingInput[];
  plan: PlanStep[];
  files: string[];
  context_usage_percent: number;
  approvals: LiveApproval[];
  started_at: string;
}

export interface LoggedIn {
  ok: boolean;
  provider_id: string;
  models_count: number;
  selection: unknown;
}

export interface LoggedOut {
  ok: boolean;
  provider_id: string;
  deleted: boolean;
  source: string;
}

export interface LoginParams {
  provider_id: string;
  method?: string;
  workspace_root?: string;
}

export interface LoginProgress {
  type: "login_progress";
  ts: string;
  event_id: string;
  provider_id: string;
  message: string;
}

export interface LogoutParams {
  provider_id: string;
}

export interface Message {
  id: string;
  ts: string;
  role: "system" | "user" | "assistant" | "tool";
  content?: string;
  attachments?: Attachment[];
  tool_calls?: ToolCall[];
  tool_call_id?: string;
  interrupted?: boolean;
}

export interface Mode {
  mode: "ask" | "edit" | "read" | "full";
}

export interface ModeParams {
  session_id?: string;
  mode: "ask" | "edit" | "read" | "full";
}

export interface Model {
  provider_id: string;
  id: string;
  name: string;
  api: string;
  reasoning_efforts: string[];
  context_window: number | null;
  image_input: boolean | null;
}

export interface ModelListParams {
  session_id?: string;
  refresh?: boolean;
  workspace_root?: string;
}

export interface ModelRef {
  provider_id: string;
  model_id: string;
}

export interface ModelSet {
  provider_id: string;
  model_id: string;
  model: string;
  session: boolean;
  runtime: boolean;
  applies: string;
  session_model: string;
  default_model: string;
  previous_default: string;
  new_default: string;
  default_updated: boolean;
  active_updated: boolean;
}

export interface ModelSetParams {
  session_id?: string;
  model?: string;
  model_id?: string;
  provider_id?: string;
}

export interface ModelUsage {
  model: string;
  tokens: number;
  samples: number;
}

export interface Models {
  models: Model[] | string[];
  warning: string | null;
  current: ModelRef;
  current_model: string;
  default_model: string;
}

export interface Named {
  session_id: string;
}

export interface NewParams {
  workspace_root?: string;
}

export interface NextPrompt {
  input: string;
  transient_system_messages?: SystemMessage[];
}

export interface Nothing {
}

export interface NoticeEvent {
  type: "notice";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  severity: string;
  title: string;
}

export interface OK {
  ok: boolean;
}

export interface Option {
  id: string;
  label: string;
  kind: string;
}

export interface PendingInput {
  input_id: string;
  input: string;
  mode: "steering" | "follow_up";
}

export interface PlanStep {
  step: string;
  status: string;
}

export interface PlanUpdatedEvent {
  type: "plan_updated";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  tool_call_id: string;
  plan: PlanStep[];
}

export interface Progress {
  message: string;
}

export interface PromoteParams {
  session_id?: string;
  input_id: string;
}

export interface Prompt {
  ok: boolean;
  session_id: string;
  turn_id: string;
  outcome: string;
  stop_reason: string;
  error?: Fault;
  request_id?: string;
  answer?: string;
}

export interface PromptParams {
  session_id?: string;
  input?: string;
  query?: string;
  resume?: boolean;
  goal_continuation?: boolean;
  transient_system_messages?: SystemMessage[];
  completion_scope?: "turn" | "request";
  idempotency_key?: string;
}

export interface PromptQueuedEvent {
  type: "prompt_queued";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  request_id: string | number;
  position: number;
}

export interface Provider {
  id: string;
  name: string;
  methods: string[];
  configured: boolean;
  source: string;
}

export interface ProviderManifest {
  id: string;
  name: string;
  version: string;
  protocolVersion: string;
  topologies: string[];
  capabilities: Record<string, string>;
  metadata?: Record<string, unknown>;
}

export interface Providers {
  providers: Provider[];
}

export interface QueuedInputDeliveredEvent {
  type: "queued_input_delivered";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  input_id: string;
  input: string;
  mode: string;
}

export interface QueuedInputReturnedEvent {
  type: "queued_input_returned";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  input_id: string;
  input: string;
  mode: string;
  reason: string;
}

export interface ReasoningCompletedEvent {
  type: "reasoning_completed";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  content: string;
  content_chars: number;
}

export interface ReasoningDeltaEvent {
  type: "reasoning_delta";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  text: string;
}

export interface ReleaseParams {
  session_id?: string;
  task_id?: string;
  tool_call_id?: string;
}

export interface Released {
  ok: boolean;
  released: boolean;
}

export interface ReplayEvents {
  events: EventLine[];
  cursor: number;
  next_cursor?: number;
  has_more: boolean;
  task_events?: EventLine[];
  task_has_more?: boolean;
  session_id: string;
  model: string;
  turn_state: TurnState | null;
  live_turn: LiveTurn | null;
  hosted: boolean;
  tasks: Task[];
  background_wait: BackgroundWait | null;
  head_cursor: number;
  task_cursor: number;
  as_of_sequence: number;
}

export interface ReplayMessages {
  messages: Message[];
  session_id: string;
  model: string;
  turn_state: TurnState | null;
  live_turn: LiveTurn | null;
  hosted: boolean;
  tasks: Task[];
  background_wait: BackgroundWait | null;
  head_cursor: number;
  task_cursor: number;
  as_of_sequence: number;
}

export interface ReplayParams {
  session_id?: string;
  start?: number;
  end?: number;
  after_cursor?: number;
  limit?: number;
  after_task_cursor?: number;
}

export type ReplayResult = ReplayMessages | ReplayEvents;

export interface RequestLine {
  kind: "request";
  request_id: string | number;
  method: string;
  params?: Record<string, unknown>;
}

export interface ResponseLine {
  kind: "response";
  request_id: string | number | null;
  result?: unknown;
  error?: ErrorObject;
}

export interface RetrieveParams {
  session_id?: string;
  input_id?: string;
}

export interface RuntimeDescription {
  name: string;
  version: string;
  protocolVersion: string;
  providers: ProviderManifest[];
}

export interface Section {
  key: string;
  label: string;
  tokens: number;
  messages: number;
}

export interface SessionDiscardedEvent {
  type: "session_discarded";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
}

export interface SessionInfo {
  session_id: string;
  draft: boolean;
  model: string;
  provider: string;
  reasoning_effort: string;
  approval_mode: string;
  workspace_root: string;
  team_main: string | null;
  project_id: string | null;
  owner_agent_id: string | null;
  session_type: string;
  parent_session_id: string | null;
  turn_state: TurnState | null;
  goal: Goal | null;
  usage: Stats | null;
  message_count: number;
  title: string;
  updated_at: string;
  live_turn: LiveTurn | null;
  resume_preview: string;
}

export interface SessionRenamedEvent {
  type: "session_renamed";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  name: string;
  title: string;
}

export interface SessionSettingsChangedEvent {
  type: "session_settings_changed";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  provider: string;
  model: string;
  reasoning_effort: string;
  approval_mode: string;
  applies: string;
  selection_source: string;
  connection_ready: boolean;
}

export interface SessionUsage {
  session_id: string;
  updated_at: string;
  tokens: number;
  samples: number;
}

export interface Stats {
  sampling_kind: string;
  input_tokens: number;
  cached_input_tokens: number;
  cache_hit_rate: number;
  output_tokens: number;
  reasoning_output_tokens: number;
  total_tokens: number;
  context_window_tokens: number;
  context_usage_percent: number;
  anchor: string;
}

export interface SubscribeParams {
  session_id?: string;
  after_cursor?: number;
}

export interface Subscribed {
  ok: boolean;
  subscribed: string[];
}

export interface SystemMessage {
  role: "system";
  content: string;
  _context_kind?: string;
}

export interface Target {
  session_id?: string;
}

export interface Task {
  task_id: string;
  bg_id: string;
  owner_session_id: string;
  origin_tool_call_id: string;
  origin_turn_id: string;
  request_id: string;
  command: string;
  cwd: string;
  shell_backend: string;
  shell_executable: string;
  status: "starting" | "running" | "cancelling" | "completed" | "failed" | "cancelled" | "timed_out" | "lost";
  exit_code: number;
  notify: "on_exit" | "manual";
  started_at: number | null;
  finished_at: number | null;
  elapsed_ms: number;
  reason: string;
  stdout: string;
  stderr: string;
  meta: TaskMeta;
}

export interface TaskContinuationFailedEvent {
  type: "task_continuation_failed";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  error: string;
}

export interface TaskList {
  tasks: Task[];
  next_page_token: string | null;
}

export interface TaskListParams {
  session_id?: string;
  page_token?: string;
}

export interface TaskMeta {
  truncated: boolean;
  total_bytes: number;
  total_lines: number;
  output_path: string;
  output_incomplete: boolean;
}

export interface TaskOutputEvent {
  type: "task_output";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  task: Task;
  origin_turn_id: string;
}

export interface TaskParams {
  session_id?: string;
  task_id: string;
}

export interface TaskPart {
  task_id: string;
  bg_id: string;
  owner_session_id: string;
  origin_tool_call_id: string;
  origin_turn_id: string;
  request_id: string;
  command: string;
  cwd: string;
  shell_backend: string;
  shell_executable: string;
  status: "starting" | "running" | "cancelling" | "completed" | "failed" | "cancelled" | "timed_out" | "lost";
  exit_code: number;
  notify: "on_exit" | "manual";
  started_at: number | null;
  finished_at: number | null;
  elapsed_ms: number;
  reason: string;
  stdout: string;
  stderr: string;
  meta: TaskMeta;
  start_cursor: number;
  next_cursor: number;
  return_reason: "finished" | "yield_timeout" | "released" | "interrupted";
}

export interface TaskReadParams {
  session_id?: string;
  task_id: string;
  cursor?: number;
  max_output_chars?: number;
}

export interface TaskUpdatedEvent {
  type: "task_updated";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  task: Task;
  origin_turn_id: string;
}

export interface TaskWaitParams {
  session_id?: string;
  task_id: string;
  cursor?: number;
  max_output_chars?: number;
  wait_ms?: number;
}

export interface TokenStatsUpdatedEvent {
  type: "token_stats_updated";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  stats: Stats;
}

export interface ToolCall {
  id: string;
  type: "function";
  function: FunctionCall;
}

export interface ToolCallStartedEvent {
  type: "tool_call_started";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  tool_call_id: string;
  tool_name: string;
}

export interface ToolInputDeltaEvent {
  type: "tool_input_delta";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  tool_call_id: string;
  tool_name: string;
  delta: string;
}

export interface ToolInputEndedEvent {
  type: "tool_input_ended";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  tool_call_id: string;
  tool_name: string;
}

export interface ToolInputStartedEvent {
  type: "tool_input_started";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  tool_call_id: string;
  tool_name: string;
}

export interface ToolProgressEvent {
  type: "tool_progress";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  tool_call_id: string;
  tool_name: string;
  payload: Progress;
}

export interface ToolRequestedEvent {
  type: "tool_requested";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  tool_call_id: string;
  tool_name: string;
  args_preview: string;
  arguments: Record<string, unknown>;
}

export interface ToolResultEvent {
  type: "tool_result";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  tool_call_id: string;
  tool_name: string;
  status: string;
  result: string;
  error_type: string;
  error_source: string;
  duration_ms: number;
}

export interface TurnCancelledEvent {
  type: "turn_cancelled";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  reason: string;
}

export interface TurnCompletedEvent {
  type: "turn_completed";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  duration_ms: number;
  background_wait: BackgroundWait | null;
}

export interface TurnFailedEvent {
  type: "turn_failed";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  error: string;
  error_type: string;
  status: string;
  error_source: string;
}

export interface TurnStartedEvent {
  type: "turn_started";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  user_message_chars: number;
  operation: string;
  origin: string;
  user_message_id: string;
  input: string;
  input_truncated: boolean;
}

export interface TurnState {
  turn_id: string;
  status: "running" | "completed" | "failed" | "cancelled";
  ts: string;
  waiting?: boolean;
  recovery_attempt?: number;
  reason?: string;
  error?: Fault;
}

export interface TurnStepRetryEvent {
  type: "turn_step_retry";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  attempt: number;
  reason: string;
}

export interface Usage {
  days: number;
  totals: UsageTotals;
  by_day: DayUsage[];
  by_model: ModelUsage[];
  recent_sessions: SessionUsage[];
}

export interface UsageParams {
  days?: number;
}

export interface UsageTotals {
  input: number;
  cached: number;
  output: number;
  reasoning: number;
  total: number;
  samples: number;
  compactions: number;
}

export interface UserQuestionAnsweredEvent {
  type: "user_question_answered";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  tool_call_id: string;
  answer: string;
}

export interface UserQuestionRequestedEvent {
  type: "user_question_requested";
  ts: string;
  event_id: string;
  session_id: string;
  turn_id: string;
  tool_call_id: string;
  question: string;
  options: Choice[] | null;
}

export interface Methods {
  "initialize": { params: InitializeParams; result: Initialize };
  "ping": { params: Nothing; result: OK };
  "shutdown": { params: Nothing; result: OK };
  "session/new": { params: NewParams; result: SessionInfo };
  "session/create": { params: CreateParams; result: SessionInfo };
  "rind/session/forget_draft": { params: Target; result: Forgotten };
  "session/list": { params: ListParams; result: List };
  "session/switch": { params: Named; result: SessionInfo };
  "session/fork": { params: ForkParams; result: Forked };
  "session/delete": { params: Named; result: Deleted };
  "session/subscribe": { params: SubscribeParams; result: Subscribed };
  "session/unsubscribe": { params: Target; result: Subscribed };
  "session/replay": { params: ReplayParams; result: ReplayResult };
  "session/prompt": { params: PromptParams; result: Prompt };
  "session/cancel": { params: CancelParams; result: OK };
  "model/list": { params: ModelListParams; result: Models };
  "model/set": { params: ModelSetParams; result: ModelSet };
  "model/effort": { params: EffortParams; result: Effort };
  "rind/session/steer": { params: InputParams; result: Input };
  "rind/session/follow_up": { params: InputParams; result: Input };
  "rind/session/promote_follow_up": { params: PromoteParams; result: Input };
  "rind/session/unsteer": { params: RetrieveParams; result: Input };
  "rind/session/dequeue_follow_up": { params: RetrieveParams; result: Input };
  "rind/session/compact": { params: Target; result: Compaction };
  "rind/command/execute": { params: CommandParams; result: CommandResult };
  "rind/user-question/respond": { params: AnswerParams; result: OK };
  "rind/approval/respond": { params: ApprovalParams; result: OK };
  "rind/session/set_mode": { params: ModeParams; result: Mode };
  "rind/runtime/describe": { params: Nothing; result: RuntimeDescription };
  "rind/conversation/create": { params: ConversationCreateParams; result: ConversationResult };
  "rind/conversation/read": { params: ConversationReadParams; result: ConversationResult };
  "rind/execution/start": { params: ExecutionStartParams; result: Execution };
  "rind/execution/read": { params: ExecutionParams; result: Execution };
  "rind/execution/cancel": { params: ExecutionCancelParams; result: Execution };
  "rind/execution/events": { params: ExecutionEventsParams; result: ExecutionPage };
  "rind/execution/artifacts": { params: ExecutionParams; result: ExecutionArtifacts };
  "rind/action/respond": { params: ActionRespondParams; result: Execution };
  "rind/background/list": { params: Target; result: BackgroundList };
  "rind/background/output": { params: BackgroundOutputParams; result: BackgroundOutput };
  "rind/task/list": { params: TaskListParams; result: TaskList };
  "rind/task/read": { params: TaskReadParams; result: TaskPart };
  "rind/task/wait": { params: TaskWaitParams; result: TaskPart };
  "rind/task/cancel": { params: TaskParams; result: Task };
  "rind/task/release_wait": { params: ReleaseParams; result: Released };
  "rind/goal/get": { params: Target; result: GoalResult };
  "rind/goal/set": { params: GoalSetParams; result: GoalResult };
  "rind/goal/status": { params: GoalStatusParams; result: GoalResult };
  "rind/goal/clear": { params: Target; result: GoalResult };
  "rind/context/inspect": { params: Target; result: ContextInspect };
  "rind/usage/summary": { params: UsageParams; result: Usage };
  "rind/auth/list": { params: Nothing; result: Providers };
  "rind/auth/login": { params: LoginParams; result: LoggedIn };
  "rind/auth/logout": { params: LogoutParams; result: LoggedOut };
  "rind/folder_defaults/get": { params: FolderParams; result: Folder };
  "rind/folder_defaults/set": { params: FolderSetParams; result: Folder };
  "rind/folder_defaults/unset": { params: FolderUnsetParams; result: Folder };
  "rind/folder_defaults/resolve": { params: FolderResolveParams; result: Folders };
  "rind/folder_defaults/apply": { params: Target; result: FolderApplied };
  "file/list": { params: FileListParams; result: FileList };
  "file/read": { params: FileParams; result: FileContent };
  "file/write": { params: FileWriteParams; result: FileWritten };
}
