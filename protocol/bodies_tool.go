package protocol

import (
	"encoding/json"
	"strings"
)

// Bodies of tool calls: the call, consent and questions, what it changed, how it ended.

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

// ToolRequested is one call of the model.
type ToolRequested struct {
	ToolCallID  string          `json:"tool_call_id"`
	ToolName    string          `json:"tool_name"`
	ArgsPreview string          `json:"args_preview"`
	Arguments   json.RawMessage `json:"arguments"` // an object; {} where the model's text is none
	More        struct {
		MessageID  string    `json:"m,omitempty"`   // the assistant message the call belongs to
		Raw        string    `json:"raw,omitempty"` // the arguments as the model wrote them, where they differ from Arguments
		Bad        bool      `json:"bad,omitempty"` // Raw is not a JSON object
		ProviderID string    `json:"pid,omitempty"` // the id the provider gave, where it was renamed
		Title      string    `json:"title,omitempty"`
		ToolKind   string    `json:"tool_kind,omitempty"`
		AutoAnswer string    `json:"auto,omitempty"` // option a mode picked for a hosted agent
		View       *CallView `json:"view,omitempty"` // what a hosted agent shows of it before it runs
	} `json:"-"`
}

// CallView is what a hosted agent shows of a call: what it is about, and what it would change.
type CallView struct {
	Kind   string     `json:"kind,omitempty"` // of the call, as docs/protocol/acp.md names them
	Text   string     `json:"text,omitempty"`
	Diffs  []ViewDiff `json:"diffs,omitempty"`
	Places []Place    `json:"places,omitempty"`
}

// ViewDiff is a change of a file, or of a piece of it. Old is nil for a file that is new.
type ViewDiff struct {
	Path string  `json:"path"` // absolute
	Old  *string `json:"old,omitempty"`
	New  string  `json:"new"`
}

// Place is a line of a file, counted from 1; 0 for the file.
type Place struct {
	Path string `json:"path"` // absolute
	Line int    `json:"line,omitempty"`
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

// Rejection is the option that rejects once, or the nearest to it; "" when none rejects.
func Rejection(options []Option) string {
	found := ""
	for _, o := range options {
		switch {
		case o.Kind == "reject_once":
			return o.ID
		case found == "" && strings.HasPrefix(o.Kind, "reject"):
			found = o.ID
		}
	}
	return found
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
		View            *CallView       `json:"view,omitempty"`    // what a hosted agent shows of the call
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
		PutOff   bool   `json:"put_off,omitempty"` // the person was shown it and answers with the next prompt: the turn ends
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
