package session

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// State is the fold of a session's log: what holds after the entries up to Head. It is made by Apply alone, the same way when a
// log is opened, while a turn runs and while another process's turn is followed, so these can never disagree.
//
// A State belongs to one goroutine. It is plain JSON, so that it can be stored as a snapshot and copied.
type State struct {
	Version    int
	Head       Seq
	HeadCursor Seq // last entry told with cursor
	TaskCursor Seq // last entry told with task_cursor

	Workspace     string
	Conversation  string
	Parent        SessionID
	Created       time.Time
	Sel           Selection
	Title         string
	Renamed       bool
	Preview       string
	Activity      time.Time
	Messages      int // as message mode counts them, without the system prompt
	ToolCalls     int
	LastMessageID string // of the assistant, as counted in Messages
	UserPrompt    bool

	Stats           *protocol.Stats // latest sampling
	Context         *ContextNote    // latest context_built
	Goal            *protocol.Goal
	GoalLegacy      bool
	GoalFailures    int       // goal turns that failed in a row
	Held            bool      // automatic continuations are held until the next user prompt
	Last            *TurnEnd  // how the last serial turn ended
	Serial          *OpenTurn // the open turn of the serial lane
	Parallel        map[TurnID]*OpenTurn
	Queued          []*OpenTurn     // accepted executions of the serial lane that have not started, oldest first
	Metadata        json.RawMessage // of the portable conversation; nil is {}
	TokenRatio      float64         // tokens the provider counted for one that was estimated; 0 unknown
	FreshCompaction bool            // nothing was said since the last compaction
	Tasks           []*TaskState    // in the order of their starts
	Asked           bool            // an approval said what commands run in
}

// stateVersion changes when the fold means something else; older snapshots are then made anew from the log.
const stateVersion = 1

// ContextNote is the newest context_built, for context/inspect.
type ContextNote struct {
	Time     time.Time
	Turn     TurnID
	Total    int
	Window   int
	Sections []protocol.Section
}

// TurnEnd says how a turn ended.
type TurnEnd struct {
	Turn      TurnID
	Status    string // completed, failed, cancelled
	Time      time.Time
	Reason    string
	Error     string
	ErrorType string
	Stop      string
	Seq       Seq // of the terminal
	Recovery  int
}

// Input is an accepted steering or follow-up input without a fate.
type Input struct {
	ID    string          `json:"input_id"`
	Text  string          `json:"input"`
	Mode  string          `json:"mode"`
	Parts []protocol.Part `json:"-"`
}

// Action is an open approval or question.
type Action struct {
	ID              string // hex32
	CallID          string
	Tool            string
	Question        bool
	Title           string
	Choices         []protocol.Choice
	Approval        *protocol.ApprovalRequested
	Time            time.Time
	QuestionEventID string
}

// CallState is one tool call of an open turn.
type CallState struct {
	ID        string
	Name      string
	MessageID string
	Arguments json.RawMessage
	Raw       string
	Bad       bool
	Preview   string
	Allowed   bool // an approval was given
	Rejected  bool // an approval was refused
	Always    bool // the answer was an always option
	Started   bool
	ReadOnly  bool
	StartedAt time.Time
	Done      bool
	Status    string
	Output    string // of the result, at most 30,000 characters
	ErrorType string
	Duration  int64
	Answer    *string // to its question, once given
	Rule      json.RawMessage
	Outside   []string // what consent was asked for, then what it was started with
}

// Steps of an open turn.
const (
	stepNone        = ""            // nothing was sampled yet
	stepFinal       = "final"       // the last sampling ended without calls
	stepCalls       = "calls"       // the last sampling ended with calls
	stepInterrupted = "interrupted" // the last sampling was cut off
	stepInput       = "input"       // an input was delivered since
)

// OpenTurn is a turn without a terminal.
type OpenTurn struct {
	ID            TurnID
	Operation     string
	Origin        string
	Execution     bool
	Parallel      bool
	Surface       string
	Scope         string
	Key           string
	Started       bool // has its turn_started
	StartedAt     time.Time
	LastTime      time.Time
	Attempts      int // resumptions
	UserMessageID string
	Transient     []protocol.SystemMessage // hold for this turn only
	NextPortable  int64

	MessageID   string // of the open message
	Text        []byte // of the open message, as told
	TextChars   int
	LastPiece   []byte // event of the newest piece of the open message
	LastPieceAt time.Time
	Thinking    []byte // reasoning of the open step, as told
	TextFirst   int64  // portable number of its first piece
	HasOutput   bool
	LastMessage string // content of the last completed message
	Samplings   int
	Retries     int // of the current step
	Recovery    int
	Step        string
	Calls       []*CallState // of the current step
	Actions     []*Action
	Inputs      []*Input
	Cancel      *protocol.CancelRequested
	CancelAt    time.Time
	Plan        []protocol.PlanStep
	Files       []string
	Usage       float64
}

func newState() *State { return &State{Version: stateVersion, Parallel: map[TurnID]*OpenTurn{}} }

// clone makes an independent copy.
func (st *State) clone() *State {
	b, err := json.Marshal(st)
	if err != nil {
		panic("session: state is plain JSON: " + err.Error())
	}
	return loadState(b)
}

// loadState reads a snapshot; nil when it is of another version or unreadable, which only means that the log is folded anew.
func loadState(b []byte) *State {
	st := newState()
	if json.Unmarshal(b, st) != nil || st.Version != stateVersion {
		return nil
	}
	if st.Parallel == nil {
		st.Parallel = map[TurnID]*OpenTurn{}
	}
	return st
}

// quiet reports whether no turn is open, so that the state is small and worth a snapshot.
func (st *State) quiet() bool {
	return st.Serial == nil && len(st.Parallel) == 0 && len(st.Queued) == 0
}

// turn returns the open turn id, nil when there is none.
func (st *State) turn(id TurnID) *OpenTurn {
	if id == "" {
		return nil
	}
	if st.Serial != nil && st.Serial.ID == id {
		return st.Serial
	}
	if i := st.queued(id); i >= 0 {
		return st.Queued[i]
	}
	return st.Parallel[id]
}

// queued finds an execution that stands in line; -1 when it does not.
func (st *State) queued(id TurnID) int {
	return slices.IndexFunc(st.Queued, func(t *OpenTurn) bool { return t.ID == id })
}

// promote gives the serial lane to an execution that stood in line for it.
func (st *State) promote(id TurnID) {
	if i := st.queued(id); i >= 0 {
		st.Serial = st.Queued[i]
		st.Queued = slices.Delete(slices.Clone(st.Queued), i, i+1)
	}
}

// numbering says what the portable number of the next entry of turn depends on.
func (st *State) numbering(id TurnID) (protocol.Numbering, int64) {
	t := st.turn(id)
	if t == nil {
		return protocol.Numbering{}, 0
	}
	return protocol.Numbering{Execution: t.Execution, Parallel: t.Parallel, Open: true}, t.NextPortable
}

// row is the summary stored with the session.
func (st *State) row() *Row {
	r := &Row{
		Title: st.Title, Preview: st.Preview, Activity: st.Activity, Messages: st.Messages, ToolCalls: st.ToolCalls,
		UserPrompt: st.UserPrompt, Metadata: st.Metadata,
	}
	if st.quiet() {
		b, err := json.Marshal(st)
		if err != nil {
			panic("session: state is plain JSON: " + err.Error())
		}
		r.Fold, r.FoldSeq = b, st.Head
	}
	return r
}

// openTurn makes room for the turn an entry belongs to.
func (st *State) openTurn(id TurnID, parallel bool) *OpenTurn {
	if t := st.turn(id); t != nil {
		return t
	}
	t := &OpenTurn{ID: id, NextPortable: 1, Operation: protocol.OpPrompt}
	if parallel {
		t.Parallel = true
		st.Parallel[id] = t
	} else {
		st.Serial = t
	}
	return t
}

// Apply folds one entry in. b is its decoded body, nil for a kind this build does not know.
func (st *State) Apply(e *Entry, b protocol.Body) {
	st.Head = e.Seq
	switch e.Told() {
	case protocol.Durable:
		st.HeadCursor = e.Seq
	case protocol.DurableTask:
		st.TaskCursor = e.Seq
	}
	st.Activity = e.Time
	switch b.(type) {
	case *protocol.UserMessage, *protocol.TurnStarted:
		st.promote(e.Turn)
	}
	if acc, ok := b.(*protocol.TurnAccepted); ok {
		if acc.More.Surface == protocol.SurfacePortable && !acc.More.Parallel {
			st.Queued = append(slices.Clone(st.Queued), &OpenTurn{ID: e.Turn, NextPortable: 1, Operation: protocol.OpPrompt})
		}
		t := st.openTurn(e.Turn, acc.More.Parallel)
		t.Execution = true
		t.Surface, t.Scope, t.Key = acc.More.Surface, acc.More.Scope, acc.More.Key
	}
	t := st.turn(e.Turn)
	if t != nil {
		t.LastTime = e.Time
		if e.PortableCount > 0 {
			t.NextPortable = e.PortableFirst + int64(e.PortableCount)
		}
	}
	if !st.applySession(e, b) {
		if b, ok := b.(*protocol.ApprovalRequested); ok {
			st.Asked = st.Asked || b.More.Sandbox
		}
		st.applyTurn(t, e, b)
	}
}

// applySession folds what belongs to the session, and reports whether that was all.
func (st *State) applySession(e *Entry, b protocol.Body) bool {
	switch b := b.(type) {
	case *protocol.SessionCreated:
		m := &b.More
		st.Workspace, st.Conversation, st.Created = m.WorkspaceRoot, m.ConversationID, e.Time
		st.Metadata = m.Metadata
		st.Sel = Selection{Provider: m.Provider, Model: m.Model, Effort: m.Effort, Mode: m.Mode}
		if m.Title != "" {
			st.Title, st.Renamed = m.Title, true
		}
	case *protocol.SessionForked:
		m := &b.More
		st.Workspace, st.Conversation, st.Created, st.Parent = m.WorkspaceRoot, m.ConversationID, e.Time, m.Parent
		st.Sel = Selection{Provider: m.Provider, Model: m.Model, Effort: m.Effort, Mode: m.Mode}
		st.Title, st.Renamed = m.Title, true
		for _, fe := range forkedEntries(b) {
			st.count(fe.body)
		}
	case *protocol.SessionSettingsChanged:
		st.Sel = Selection{Provider: b.Provider, Model: b.Model, Effort: b.ReasoningEffort, Mode: b.ApprovalMode}
	case *protocol.SessionRenamed:
		st.Title, st.Renamed = b.Title, true
	case *protocol.GoalUpdated:
		if b.Goal != nil && b.Goal.Status == "active" && st.activeGoal() == nil {
			st.GoalFailures = 0
		}
		st.Goal, st.GoalLegacy = b.Goal, b.More.Legacy
	default:
		return false
	}
	return true
}

// count keeps the numbers and texts a list shows.
func (st *State) count(b protocol.Body) {
	switch b := b.(type) {
	case *protocol.UserMessage:
		if b.More.Origin != protocol.OriginUser {
			return
		}
		st.said(b.More.Text)
		st.UserPrompt = true
	case *protocol.QueuedInputDelivered:
		st.said(b.Input)
	case *protocol.AssistantMessageCompleted:
		st.Messages++
		st.LastMessageID = b.MessageID
		st.Preview = protocol.Prefix(oneLine(b.Content), 200)
	case *protocol.ToolRequested:
		st.ToolCalls++
		if b.More.MessageID != st.LastMessageID { // a message of calls alone
			st.Messages++
			st.LastMessageID = b.More.MessageID
		}
	case *protocol.ToolResult:
		st.Messages++
	}
}

func (st *State) said(text string) {
	st.Messages++
	if st.Title == "" && !st.Renamed {
		st.Title = protocol.Prefix(oneLine(text), 40)
	}
	st.Preview = protocol.Prefix(oneLine(text), 200)
	st.FreshCompaction = false
}

// oneLine folds white space, so that a text fits a list.
func oneLine(s string) string {
	if len(s) > 2000 {
		s = protocol.Prefix(s, 2000)
	}
	return strings.Join(strings.Fields(s), " ")
}

// applyTurn folds what belongs to turn t, which is nil for entries of ended turns and unknown ones.
func (st *State) applyTurn(t *OpenTurn, e *Entry, b protocol.Body) {
	if started, ok := b.(*protocol.TurnStarted); ok {
		if t == nil {
			t = st.openTurn(e.Turn, false)
		}
		t.start(st, e, started)
		return
	}
	switch b := b.(type) {
	case *protocol.UserMessage:
		if t == nil {
			t = st.openTurn(e.Turn, false)
		}
		for _, id := range b.More.Tasks {
			if ended := st.task(id); ended != nil {
				ended.Told = true
			}
		}
		if t.UserMessageID == "" || b.More.Origin == protocol.OriginUser { // further ones are checkpoints of a goal
			t.UserMessageID, t.Transient = b.More.ID, b.More.Transient
		} else {
			t.Step = stepInput
		}
		st.count(b)
		if b.More.Origin == protocol.OriginUser {
			st.Held = false
		}
		return
	case *protocol.TaskUpdated:
		st.applyTask(b)
		return
	case *protocol.TaskOutput:
		return
	}
	if t == nil {
		if c, ok := b.(*protocol.CancelRequested); ok { // of a continuation that was due
			st.Held = st.Held || c.More.Hold
		}
		return
	}
	st.count(b)
	switch b := b.(type) {
	case *protocol.ContextBuilt:
		st.Context = &ContextNote{Time: e.Time, Turn: e.Turn, Total: b.More.EstimatedTotal, Window: b.More.Window, Sections: b.More.Sections}
	case *protocol.TokenStatsUpdated:
		st.Stats = &b.Stats
		if b.More.Estimate > 0 && b.Stats.Anchor == anchorProvider {
			st.TokenRatio = min(4, max(0.25, float64(b.Stats.InputTokens)/float64(b.More.Estimate)))
		}
		t.Usage = b.Stats.ContextUsagePercent
	case *protocol.ContextCompacted:
		st.FreshCompaction = true
	case *protocol.CancelRequested:
		t.Cancel, t.CancelAt = b, e.Time
		st.Held = st.Held || b.More.Hold
	case *protocol.TurnCompleted:
		st.end(t, e, "completed", "", "", "", b.More)
	case *protocol.TurnFailed:
		st.end(t, e, "failed", "", b.Error, b.ErrorType, b.More)
	case *protocol.TurnCancelled:
		st.end(t, e, "cancelled", b.Reason, "", "", b.More)
	default:
		t.apply(e, b)
	}
}

func (st *State) end(t *OpenTurn, e *Entry, status, reason, fault, faultType string, end protocol.End) {
	if t.Parallel {
		delete(st.Parallel, t.ID)
		return
	}
	if i := st.queued(t.ID); i >= 0 {
		st.Queued = slices.Delete(slices.Clone(st.Queued), i, i+1)
		return
	}
	st.Serial = nil
	if t.Origin == protocol.OriginGoal {
		if st.GoalFailures++; status != "failed" {
			st.GoalFailures = 0
		}
	}
	st.Last = &TurnEnd{
		Turn: t.ID, Status: status, Time: e.Time, Reason: reason, Error: fault, ErrorType: faultType, Stop: end.StopReason,
		Seq: e.Seq, Recovery: t.Recovery,
	}
}

// start folds a turn_started: the first one of a turn, or a resumption, which gives up what the dead attempt left open.
func (t *OpenTurn) start(st *State, e *Entry, b *protocol.TurnStarted) {
	t.Operation = b.Operation
	if b.Origin == protocol.OriginResume {
		t.Attempts++
		return
	}
	t.Started, t.StartedAt, t.Origin = true, e.Time, b.Origin
}

// apply folds what a turn did.
func (t *OpenTurn) apply(e *Entry, b protocol.Body) {
	switch b := b.(type) {
	case *protocol.AssistantDelta:
		if t.MessageID != b.More.MessageID || len(t.Text) == 0 {
			t.MessageID, t.Text, t.TextChars, t.TextFirst = b.More.MessageID, nil, 0, e.PortableFirst
		}
		t.Text = append(t.Text, b.Text...)
		t.LastPiece, t.LastPieceAt = e.Event, e.Time
		t.TextChars += protocol.CharLen(b.Text)
	case *protocol.ReasoningDelta:
		t.Thinking = append(t.Thinking, b.Text...)
	case *protocol.TurnStepRetry:
		t.dropText()
		t.Retries, t.Recovery = b.Attempt, t.Recovery+1
	case *protocol.ReasoningCompleted:
		t.Thinking = nil
	case *protocol.AssistantMessageCompleted:
		t.message(b)
	case *protocol.ToolRequested:
		t.request(b)
	case *protocol.PlanUpdated:
		t.Plan = b.Plan
	case *protocol.FileChange:
		t.changed(b.FilePath)
	case *protocol.QueuedInputDelivered:
		t.dropInput(b.InputID)
		t.Step = stepInput
	case *protocol.QueuedInputReturned:
		t.dropInput(b.InputID)
	case *protocol.InputAccepted:
		t.Inputs = append(t.Inputs, &Input{ID: b.More.InputID, Text: b.More.Input, Mode: b.More.Mode, Parts: b.More.Parts})
	case *protocol.InputMoved:
		t.moveInput(b)
	default:
		t.applyCall(e, b)
	}
}

// applyCall folds what happened to one tool call.
func (t *OpenTurn) applyCall(e *Entry, b protocol.Body) {
	switch b := b.(type) {
	case *protocol.ToolCallStarted:
		if c := t.call(b.ToolCallID); c != nil {
			c.Started, c.ReadOnly, c.StartedAt, c.Outside = true, b.More.ReadOnly, e.Time, b.More.Outside
		}
	case *protocol.ToolResult:
		if c := t.call(b.ToolCallID); c != nil {
			c.Done, c.Status, c.ErrorType, c.Duration = true, b.Status, b.ErrorType, b.DurationMS
			c.Output = protocol.Prefix(b.Result, 30_000)
		}
	case *protocol.ApprovalRequested:
		t.Actions = append(t.Actions, &Action{
			ID: b.ActionID, CallID: b.ToolCallID, Tool: b.ToolName, Title: b.Title, Approval: b, Time: e.Time,
			QuestionEventID: b.More.QuestionEventID,
		})
		if c := t.call(b.ToolCallID); c != nil {
			c.Rule, c.Outside = b.More.Rule, b.More.Outside
		}
	case *protocol.UserQuestionRequested:
		t.Actions = append(t.Actions, &Action{
			ID: b.More.ActionID, CallID: b.ToolCallID, Question: true, Title: b.Question, Choices: b.Options, Time: e.Time,
		})
	case *protocol.ApprovalResolved:
		t.dropAction(b.ActionID)
		if c := t.call(b.ToolCallID); c != nil {
			c.Allowed, c.Rejected = b.Outcome == protocol.OutcomeAllowed, b.Outcome == protocol.OutcomeRejected
			c.Always = b.OptionID == "allow_always" || b.OptionID == "reject_always"
		}
	case *protocol.UserQuestionAnswered:
		t.dropAction(b.More.ActionID)
		if c := t.call(b.ToolCallID); c != nil {
			c.Answer = &b.Answer
		}
	}
}

func (t *OpenTurn) message(b *protocol.AssistantMessageCompleted) {
	t.dropText()
	t.Thinking = nil
	t.Retries = 0
	t.LastMessage = b.Content
	t.HasOutput = true
	t.Calls = nil
	if b.Interrupted {
		t.Step = stepInterrupted
		return
	}
	t.Step = stepFinal
	t.Samplings++
}

func (t *OpenTurn) request(b *protocol.ToolRequested) {
	if t.Step != stepCalls || t.callsDone() {
		t.Calls = nil
		if t.Step != stepFinal { // the message before the calls counted the sampling already
			t.Samplings++
		}
	}
	t.Step, t.Retries = stepCalls, 0
	t.Calls = append(t.Calls, &CallState{
		ID: b.ToolCallID, Name: b.ToolName, MessageID: b.More.MessageID, Arguments: b.Arguments, Raw: b.More.Raw, Bad: b.More.Bad,
		Preview: b.ArgsPreview,
	})
}

func (t *OpenTurn) dropText() { t.MessageID, t.Text, t.TextChars, t.TextFirst = "", nil, 0, 0 }

func (t *OpenTurn) changed(path string) {
	for _, p := range t.Files {
		if p == path {
			return
		}
	}
	t.Files = append(t.Files, path)
}

func (t *OpenTurn) call(id string) *CallState {
	for _, c := range t.Calls {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// callsDone reports whether no call of the current step waits for its result.
func (t *OpenTurn) callsDone() bool {
	for _, c := range t.Calls {
		if !c.Done {
			return false
		}
	}
	return true
}

func (t *OpenTurn) input(id string) *Input {
	for _, in := range t.Inputs {
		if in.ID == id {
			return in
		}
	}
	return nil
}

func (t *OpenTurn) dropInput(id string) {
	for i, in := range t.Inputs {
		if in.ID == id {
			t.Inputs = append(t.Inputs[:i:i], t.Inputs[i+1:]...)
			return
		}
	}
}

func (t *OpenTurn) moveInput(b *protocol.InputMoved) {
	in := t.input(b.More.InputID)
	if in == nil {
		return
	}
	t.dropInput(in.ID)
	if b.More.To == protocol.ModeSteering { // a promotion goes to the end of steering
		in.Mode = protocol.ModeSteering
		t.Inputs = append(t.Inputs, in)
	}
}

// queued returns the inputs of one mode, oldest first.
func (t *OpenTurn) queued(mode string) []*Input {
	var out []*Input
	for _, in := range t.Inputs {
		if in.Mode == mode {
			out = append(out, in)
		}
	}
	return out
}

func (t *OpenTurn) action(id string) *Action {
	for _, a := range t.Actions {
		if a.ID == id {
			return a
		}
	}
	return nil
}

func (t *OpenTurn) dropAction(id string) {
	for i, a := range t.Actions {
		if a.ID == id {
			t.Actions = append(t.Actions[:i:i], t.Actions[i+1:]...)
			return
		}
	}
}

// waiting reports whether the turn's only open business is an action: it may then outlive its process (docs/protocol/rind-v2.md
// section 7.4). Calls behind the one that waits have not been started, so they are no business yet.
func (t *OpenTurn) waiting() bool {
	if len(t.Actions) == 0 || t.Cancel != nil || len(t.Text) > 0 || t.Parallel {
		return false
	}
	for _, c := range t.Calls {
		if c.Started && !c.Done && !t.asks(c.ID) {
			return false
		}
	}
	return true
}

func (t *OpenTurn) asks(call string) bool {
	for _, a := range t.Actions {
		if a.CallID == call {
			return true
		}
	}
	return false
}
