package session

import (
	"context"
	"encoding/json"

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
}

// Progress is how a running tool tells where it is. Safe for concurrent use; it never blocks on a slow client.
type Progress interface {
	// Say tells one line of progress.
	Say(message string)
	// Ask puts a question and waits for the answer (ask_user_question). Cancelled: context.Cause(ctx).
	Ask(ctx context.Context, question string, options []protocol.Choice) (answer string, err error)
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
	Plan        []protocol.PlanStep   // of update_plan
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
