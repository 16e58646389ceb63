package portable

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Record is the fold of one execution's entries into its objects. Apply the entries of its turn in order, from the first; entries without a
// number change nothing.
type Record struct {
	Context
	x         Execution
	updated   time.Time
	messages  []string
	artifacts []Artifact
}

// NewRecord begins the record of an execution.
func NewRecord(execution, conversation, workspace string) *Record {
	r := &Record{Context: Context{Execution: execution, Workspace: workspace}}
	r.x = Execution{ID: execution, ConversationID: conversation, Capabilities: []string{}, EffectiveConfig: json.RawMessage("{}")}
	return r
}

// matters lists the kinds a record is folded from; the text of deltas is in the messages.
var matters = map[protocol.Kind]bool{
	protocol.KindTurnAccepted: true, protocol.KindTurnStarted: true, protocol.KindAssistantMessageCompleted: true, protocol.KindApprovalRequested: true,
	protocol.KindApprovalResolved: true, protocol.KindUserQuestionRequested: true, protocol.KindUserQuestionAnswered: true, protocol.KindFileChange: true,
	protocol.KindArtifactCreated: true, protocol.KindTurnCompleted: true, protocol.KindTurnFailed: true, protocol.KindTurnCancelled: true,
}

// Matters reports whether entries of a kind have to be decoded for a record.
func Matters(k protocol.Kind) bool { return matters[k] }

// Apply folds one entry in; b is its body.
func (r *Record) Apply(e *protocol.Entry, b protocol.Body) {
	switch b := b.(type) {
	case *protocol.TurnAccepted:
		m := &b.More
		r.Provider, r.x.ProviderID, r.x.Input = m.Provider, m.Provider, m.Input
		if len(m.Config) > 0 {
			r.x.EffectiveConfig = m.Config
		}
		if m.Capabilities != nil {
			r.x.Capabilities = m.Capabilities
		}
		r.x.CreatedAt = FormatTime(e.Time)
		r.move(Queued, e.Time)
	case *protocol.TurnStarted:
		if b.Origin != protocol.OriginResume && r.x.StartedAt == "" {
			r.x.StartedAt = FormatTime(e.Time)
			r.move(Running, e.Time)
		}
		if b.Origin == protocol.OriginTask || b.Origin == protocol.OriginGoal {
			r.x.Input = "" // what the runtime said in the person's place is nobody's
		}
	case *protocol.AssistantMessageCompleted:
		if b.Content != "" {
			r.messages = append(r.messages, b.Content)
		}
	case *protocol.ApprovalRequested:
		r.move(AwaitingApproval, e.Time)
	case *protocol.UserQuestionRequested:
		r.move(AwaitingInput, e.Time)
	case *protocol.ApprovalResolved, *protocol.UserQuestionAnswered:
		if e.PortableCount > 0 {
			r.move(Running, e.Time)
		}
	case *protocol.FileChange:
		if b.More.First {
			r.artifacts = append(r.artifacts, fileArtifact(&r.Context, e, b))
		}
	case *protocol.ArtifactCreated:
		if a, err := providerArtifact(&r.Context, e, b); err == nil {
			r.artifacts = append(r.artifacts, a)
		}
	case *protocol.TurnCompleted:
		text := r.Text()
		if b.More.FinalOutput != nil {
			text = *b.More.FinalOutput
		}
		r.x.FinalOutput = &text
		r.end(Succeeded, e.Time)
	case *protocol.TurnFailed:
		f := failure(b)
		r.x.Error = &f
		r.end(Failed, e.Time)
	case *protocol.TurnCancelled:
		r.end(Cancelled, e.Time)
	}
}

func (r *Record) move(state string, at time.Time) {
	r.x.State, r.updated = state, at
	r.x.UpdatedAt = FormatTime(at)
}

func (r *Record) end(state string, at time.Time) {
	r.x.EndedAt = FormatTime(at)
	r.move(state, at)
}

// Cancelling says that a cancel is on record since a time, while the execution has no end.
func (r *Record) Cancelling(since time.Time) {
	if r.Ended() {
		return
	}
	if since.Before(r.updated) {
		since = r.updated
	}
	r.move(Cancelling, since)
}

// Text is the text of the turn so far: its messages, joined by blank lines.
func (r *Record) Text() string { return strings.Join(r.messages, "\n\n") }

// Ended reports whether the execution has its end.
func (r *Record) Ended() bool { return r.x.EndedAt != "" }

// Execution is the object clients see. It is not to be changed.
func (r *Record) Execution() Execution { return r.x }

// Artifacts lists what was made, in order.
func (r *Record) Artifacts() []Artifact { return append([]Artifact{}, r.artifacts...) }
