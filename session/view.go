package session

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// View is a session as it was acknowledged at one point of its log. It is valid only inside the function it is handed to.
type View struct {
	*State
	Session *Session
	Draft   bool
	Hosted  bool // this process runs the open turn

	owner *bool // see ownerAlive; nil while nobody asked
}

// view is what holds now. Runs on the session's goroutine.
func (s *Session) view() *View {
	return &View{State: s.shown, Session: s, Draft: s.draft.Load(), Hosted: s.lane.run != nil}
}

// Inspect runs f on the session's goroutine. It returns false when the session is gone. f must not block, and must not keep or
// change what it sees.
func (s *Session) Inspect(f func(v *View)) bool {
	return s.post(func() { f(s.view()) })
}

// InspectNow is Inspect for callers that may wait, at most until ctx ends. f has run when it returns nil, and never runs when it returns an
// error: what f writes is the caller's again.
func (s *Session) InspectNow(ctx context.Context, f func(v *View)) error {
	return s.lookNow(ctx, func(look func(err error, f func())) bool {
		return s.Inspect(func(v *View) { look(nil, func() { f(v) }) })
	})
}

// lookNow asks for a look at the session and waits for it, at most until ctx ends.
func (s *Session) lookNow(ctx context.Context, ask func(look func(err error, f func())) bool) error {
	var taken atomic.Bool // by whoever is first: the session, or the end of ctx
	done := make(chan error, 1)
	if !ask(func(err error, f func()) {
		if !taken.CompareAndSwap(false, true) {
			return
		}
		if err == nil {
			f()
		}
		done <- err
	}) {
		return errGone(s.ID)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		if taken.CompareAndSwap(false, true) {
			return context.Cause(ctx)
		}
		return <-done
	}
}

// ownerPatience bounds what is waited for to learn whether another process lives: a session is looked at on its goroutine, in order.
const ownerPatience = time.Second

// ownerAlive reports whether some other living process holds the lease of the session. It is asked once for each view.
func (v *View) ownerAlive() bool {
	if v.owner == nil {
		ctx, cancel := context.WithTimeout(v.Session.all.ctx, ownerPatience)
		defer cancel()
		meta, err := v.Session.all.cfg.Store.Session(ctx, v.Session.ID)
		alive := err == nil && meta.OwnerAlive
		v.owner = &alive
	}
	return *v.owner
}

// Alive reports whether some living process runs the open turn.
func (v *View) Alive() bool {
	return v.Hosted || v.Serial != nil && !v.Draft && v.ownerAlive()
}

// Working reports whether the serial lane is taken here, or prompts wait for it.
func (v *View) Working() bool {
	return v.Session.lane.busy() || v.Session.door.shut
}

// TurnState is turn_state of docs/protocol/rind-v2.md section 4.1.
type TurnState struct {
	TurnID   TurnID     `json:"turn_id"`
	Status   string     `json:"status"`
	TS       string     `json:"ts"`
	Waiting  bool       `json:"waiting,omitempty"`
	Recovery int        `json:"recovery_attempt,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Error    *TurnFault `json:"error,omitempty"`
}

// TurnState returns the state of the newest turn, nil when there was none.
func (v *View) TurnState() *TurnState {
	if t := v.Serial; t != nil && t.Started {
		return &TurnState{
			TurnID: t.ID, Status: "running", TS: protocol.FormatTime(t.StartedAt), Waiting: t.waiting(), Recovery: t.Recovery,
		}
	}
	if l := v.Last; l != nil {
		ts := &TurnState{TurnID: l.Turn, Status: l.Status, TS: protocol.FormatTime(l.Time), Recovery: l.Recovery, Reason: l.Reason}
		if l.ErrorType != "" {
			ts.Error = &TurnFault{Type: l.ErrorType, Message: l.Error}
		}
		return ts
	}
	return nil
}

// LiveTurn is live_turn of docs/protocol/rind-v2.md section 4.4.
type LiveTurn struct {
	TurnID        TurnID              `json:"turn_id"`
	Status        string              `json:"status"` // running
	Operation     string              `json:"operation"`
	AssistantText string              `json:"assistant_text"`
	Tools         []LiveTool          `json:"tools"`
	Question      *LiveQuestion       `json:"question"`
	PendingInputs []Input             `json:"pending_inputs"`
	Plan          []protocol.PlanStep `json:"plan"`
	Files         []string            `json:"files"`
	Usage         float64             `json:"context_usage_percent"`
	Approvals     []LiveApproval      `json:"approvals"`
	StartedAt     string              `json:"started_at"`
}

// LiveTool is a tool call of a live turn.
type LiveTool struct {
	ToolCallID  string          `json:"tool_call_id"`
	ToolName    string          `json:"tool_name"`
	ArgsPreview string          `json:"args_preview"`
	Arguments   json.RawMessage `json:"arguments"`
	Status      string          `json:"status"` // pending, running, completed, error
	Output      string          `json:"output"`
	ErrorType   string          `json:"error_type,omitempty"`
	DurationMS  *int64          `json:"duration_ms,omitempty"`
}

// LiveQuestion is the oldest open question.
type LiveQuestion struct {
	ToolCallID string            `json:"tool_call_id"`
	Question   string            `json:"question"`
	Options    []protocol.Choice `json:"options"`
}

// LiveApproval is an open approval.
type LiveApproval struct {
	ActionID   string            `json:"action_id"`
	ToolCallID string            `json:"tool_call_id"`
	ToolName   string            `json:"tool_name"`
	Title      string            `json:"title"`
	Arguments  json.RawMessage   `json:"arguments"`
	Options    []protocol.Option `json:"options"`
}

const liveTextChars = 30_000

// Live returns the live turn: null unless some living process runs it or it waits. With approvals false the reader does not know
// approvals, and sees the oldest of them as a question.
func (v *View) Live(approvals bool) *LiveTurn {
	t := v.Serial
	if t == nil || !t.Started || !t.waiting() && !v.Alive() {
		return nil
	}
	lt := &LiveTurn{
		TurnID: t.ID, Status: "running", Operation: t.Operation, AssistantText: liveText(t.Text), Tools: []LiveTool{},
		PendingInputs: []Input{}, Plan: append([]protocol.PlanStep{}, t.Plan...), Files: append([]string{}, t.Files...), Usage: t.Usage,
		Approvals: []LiveApproval{}, StartedAt: protocol.FormatTime(t.StartedAt),
	}
	for _, c := range t.Calls {
		lt.Tools = append(lt.Tools, liveTool(c))
	}
	for _, in := range t.Inputs {
		lt.PendingInputs = append(lt.PendingInputs, *in)
	}
	for _, a := range t.Actions {
		switch {
		case a.Question && lt.Question == nil:
			lt.Question = &LiveQuestion{ToolCallID: a.CallID, Question: a.Title, Options: a.Choices}
		case a.Approval != nil:
			ap := a.Approval
			lt.Approvals = append(lt.Approvals, LiveApproval{
				ActionID: ap.ActionID, ToolCallID: ap.ToolCallID, ToolName: ap.ToolName, Title: ap.Title, Arguments: ap.Arguments, Options: ap.Options,
			})
			if !approvals && lt.Question == nil {
				lt.Question = &LiveQuestion{ToolCallID: a.CallID, Question: ap.Title, Options: ChoicesOf(ap.Options)}
			}
		}
	}
	return lt
}

// ChoicesOf shows the options of an approval to a reader that only knows questions.
func ChoicesOf(options []protocol.Option) []protocol.Choice {
	out := make([]protocol.Choice, len(options))
	for i, o := range options {
		out[i] = protocol.Choice{Label: o.Label}
	}
	return out
}

func liveText(text []byte) string {
	n := protocol.CharLen(string(text))
	if n <= liveTextChars {
		return string(text)
	}
	head := protocol.Prefix(string(text), n-liveTextChars)
	return "[Earlier output truncated]\n\n" + string(text[len(head):])
}

func liveTool(c *CallState) LiveTool {
	lt := LiveTool{
		ToolCallID: c.ID, ToolName: c.Name, ArgsPreview: protocol.Prefix(c.Preview, 120), Arguments: c.Arguments, Status: "pending", Output: c.Output,
	}
	switch {
	case c.Done:
		lt.Status, lt.ErrorType = "completed", c.ErrorType
		if c.Status != protocol.ToolCompleted {
			lt.Status = "error"
		}
		d := c.Duration
		lt.DurationMS = &d
	case c.Started:
		lt.Status = "running"
	}
	return lt
}

// OpenMessage returns the message being said and its text so far: where told starts for a new follower.
func (v *View) OpenMessage() (id, text string) {
	if t := v.Serial; t != nil && len(t.Text) > 0 {
		return t.MessageID, string(t.Text)
	}
	return "", ""
}

// OpenText is the text of the open message so far as one assistant_delta, with id and time of its newest piece; false when none is open.
func (v *View) OpenText() (Entry, bool) {
	t := v.Serial
	if t == nil || len(t.Text) == 0 || t.LastPiece == nil {
		return Entry{}, false
	}
	h := protocol.Head{Time: t.LastPieceAt, EventID: protocol.EventID(t.LastPiece), Session: v.Session.ID, Turn: t.ID}
	e, err := protocol.Encode(h, &protocol.AssistantDelta{Text: string(t.Text)})
	return e, err == nil
}

// Forget drops a draft that was never used; done says whether there was one.
func (s *Session) Forget(done func(bool)) {
	if !s.post(func() {
		if !s.draft.Load() || s.lane.starting != nil || s.gone.Load() {
			done(false)
			return
		}
		s.remove()
		done(true)
	}) {
		done(false)
	}
}
