package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// ToolSpec tells the model and the policy what a tool is.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments, an object
	Kind        string          // read, edit, search, execute, fetch, think, other (ACP's words)
	ReadOnly    bool            // repeatable: runs again after a crash, may overlap others of its batch
}

// ToolCall is one call about to run. Its arguments are a JSON object already checked against the tool's schema.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage
	Session   SessionID
	Turn      TurnID
	Roots     []string // absolute; the first is the workspace root and the base of relative paths
	Outside   []string // absolute paths outside the roots that consent was given for
	// Reads: the policy allowed the call because it only reads. A tool that can be held to that, by a sandbox, has to be.
	Reads bool
	// Editor is what the client that asked for the turn does for tools.
	Editor Editor
}

// Progress is how a running tool tells where it is. Safe for concurrent use; it never blocks on a slow client.
type Progress interface {
	// Say tells one line of progress.
	Say(message string)
	// Ask puts a question and waits for the answer (ask_user_question). Cancelled: context.Cause(ctx).
	Ask(ctx context.Context, question string, options []protocol.Choice) (answer string, err error)
}

// Job is a command that goes on after its call was answered. The tool that started it hands it to the session, which ends and closes it.
// Safe for concurrent use.
type Job interface {
	// Output is text of the output from offset from on, at most max characters of both streams together; from counts bytes of text of both
	// streams in the order in which they came. What is not there any more is skipped: start says where the text begins, next where it ends.
	Output(from int64, max int) (stdout, stderr string, start, next int64)
	// Tail is the last max characters of each stream.
	Tail(max int) (stdout, stderr string)
	// Sum says how much output there is. It grows while the command runs.
	Sum() JobSum
	// Done is closed when the command has ended.
	Done() <-chan struct{}
	// Exit says how it ended: protocol.TaskCompleted for exit code 0, TaskFailed, TaskTimedOut, TaskCancelled. Call it after Done.
	Exit() (status string, code int)
	// End ends the command: TERM, a grace, KILL; none at the end of the runtime. An error says that its end is not confirmed.
	End() error
	// Close gives files back. The output stays readable.
	Close()
}

// JobSum counts the output of a Job.
type JobSum struct {
	Bytes, Lines int64
	Path         string // of the file that holds it, absolute; "" for none
	Incomplete   bool   // the file does not hold all of it
}

// JobSpec is what a task record says of a Job beside its output.
type JobSpec struct {
	Command    string
	CWD        string
	Backend    string // shell_backend
	Executable string // shell_executable
	Notify     string // on_exit, manual
	Started    time.Time
}

// Background is what the Progress of a call may offer beside: a way to go on after the call was answered (docs/protocol/rind-v2.md
// section 7.5). A tool asks for it with a type assertion; without it the call waits for the end.
type Background interface {
	// Reserve takes one of the session's places for live tasks, before the command starts; false when all are taken. free gives it
	// back, once; HandOff uses it up. now says that the command goes on in the background from its beginning: the intent is then on disk
	// when Reserve returns, and a call that was started before is refused with an error.
	Reserve(spec JobSpec, now bool) (free func(), ok bool, err error)
	// Released is closed when the call is to stop waiting: somebody released it, or an input waits to be delivered.
	Released() <-chan struct{}
	// HandOff makes the running job a task of the session and returns its id, once that is on disk.
	HandOff(job Job, spec JobSpec) (task string, err error)
}

// ToolResult is how a call ended. Data is put into the result's JSON; Status "" means completed.
type ToolResult struct {
	Data        any
	Meta        map[string]any
	Status      string // protocol.ToolCompleted … ToolUnknown; "" = completed, or failed when ErrorType is set
	ErrorType   string // protocol.ErrNotFound …; "" for none
	Error       string // text for the model and the user
	ModelData   any    // what the model gets in place of Data where that is more than clients get; nil for the same
	Attachments []protocol.Part
	Changes     []protocol.FileChange // of tools that write; ToolCallID is filled in by the loop
	Touched     *protocol.Touched     // files a command changed beside its work; not told, for undo
}

// Tool is something a model may call. Run must come back soon after ctx ends. An error it returns is a defect (InternalError);
// everything a user or model can cause is a ToolResult. Safe for concurrent use.
type Tool interface {
	Spec() ToolSpec
	Run(ctx context.Context, call ToolCall, out Progress) (ToolResult, error)
}

// Verdict is what the policy says of a call.
type Verdict struct {
	Effect    string          // "allow", "ask", "deny"
	ErrorType string          // of deny: ApprovalRejected, PermissionDenied, DangerousCommandBlocked
	Reason    string          // of deny, for the model and the user
	Title     string          // of ask: what will be done
	Rule      json.RawMessage // of ask: what an always option remembers
	Outside   []string
	Reads     bool // of allow: because the call only reads
}

// Policy decides what may run. The approval mode is the session's.
type Policy interface {
	Judge(ctx context.Context, mode string, spec ToolSpec, call ToolCall) (Verdict, error)
	// Remember stores the rule of an always option for the workspace.
	Remember(ctx context.Context, workspace string, rule json.RawMessage, allow bool) error
	// Rules lists what is remembered for a workspace, oldest first.
	Rules(ctx context.Context, workspace string) ([]Rule, error)
	// Revoke forgets one; false when there is none.
	Revoke(ctx context.Context, workspace string, id int64) (bool, error)
}
