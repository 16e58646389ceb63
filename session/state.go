package session

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// State is the fold of a session's log: what holds after the entries up to Head. It is made by Apply alone, the same way when a
// log is opened, while a turn runs and while another process's turn is followed, so these can never disagree.
//
// A State belongs to one goroutine. It is plain JSON, so that it can be stored as a snapshot and copied; what bodies of open turns hide from
// clients is not in their JSON, and is in no snapshot, as those are of quiet states.
type State struct {
	Version    int
	Head       Seq
	HeadCursor Seq // last entry told with cursor
	TaskCursor Seq // last entry told with task_cursor

	Workspace     string
	Roots         []string // further folders of its tools: absolute, links resolved
	Surface       string   // that opened it: "acp", "" for all others
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
	Cost            float64         // of all samplings whose price is known, US dollars
	Context         *ContextNote    // latest context_built
	Goal            *protocol.Goal
	GoalLegacy      bool
	GoalFailures    int       // goal turns that failed in a row
	Held            bool      // automatic continuations are held until the next user prompt
	Last            *TurnEnd  // how the last serial turn ended
	Serial          *OpenTurn // the open turn of the serial lane
	Parallel        map[TurnID]*OpenTurn
	Queued          []*OpenTurn     // accepted executions of the serial lane that have not started, oldest first
	Metadata        json.RawMessage `json:",omitempty"` // of the portable conversation; nil is {}
	TokenRatio      float64         // tokens the provider counted for one that was estimated; 0 unknown
	FreshCompaction bool            // nothing was said since the last compaction
	Tasks           []*TaskState    // in the order of their starts
	Asked           bool            // an approval said what commands run in
	Child           *ChildSession   // newest session of a hosted agent; nil when there was none
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
	Arguments json.RawMessage `json:",omitempty"`
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
	Answer    *string         // to its question, once given
	PutOff    bool            // the person answers its question with the next prompt
	Rule      json.RawMessage `json:",omitempty"`
	Outside   []string        // what consent was asked for, then what it was started with
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
	Hosted        bool // by an agent with a loop of its own
	Execution     bool
	Parallel      bool
	Surface       string
	Scope         string
	Key           string
	Provider      string // that answers it; "" for a turn without turn_accepted
	Accepted      Seq    // of its turn_accepted; 0 for a turn without
	Started       bool   // has its turn_started
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
	Tokens      int // input and output, as reported
}

func newState() *State { return &State{Version: stateVersion, Parallel: map[TurnID]*OpenTurn{}} }

// clone makes an independent copy.
func (st *State) clone() *State {
	if st.Head == 0 { // a session that begins: nothing was folded, and what it was given is not changed in place
		c := *st
		c.Parallel = map[TurnID]*OpenTurn{}
		return &c
	}
	b, err := protocol.Marshal(st) // keeps the JSON that it holds as it is
	if err != nil {
		panic("session: state is plain JSON: " + err.Error())
	}
	c := loadState(b)
	if c.Serial != nil {
		c.Serial.hidden(st.Serial)
	}
	for i, t := range st.Queued {
		c.Queued[i].hidden(t)
	}
	for id, t := range st.Parallel {
		c.Parallel[id].hidden(t)
	}
	return c
}

// hidden takes over from the turn it is a copy of what the JSON of bodies lacks. Nobody changes a body.
func (t *OpenTurn) hidden(from *OpenTurn) {
	t.Cancel = from.Cancel
	for i, a := range from.Actions {
		t.Actions[i].Approval = a.Approval
	}
	for i, in := range from.Inputs {
		t.Inputs[i].Parts = in.Parts
	}
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
	if string(st.Metadata) == "null" { // how versions up to 0.1 copied none
		st.Metadata = nil
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
		b, err := protocol.Marshal(st)
		if err != nil {
			panic("session: state is plain JSON: " + err.Error())
		}
		r.Fold, r.FoldSeq = b, st.Head
	}
	return r
}

func (t *OpenTurn) changed(path string) {
	if !slices.Contains(t.Files, path) {
		t.Files = append(t.Files, path)
	}
}

func (t *OpenTurn) call(id string) *CallState {
	for _, c := range t.Calls {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// openCalls are the calls without a result: a hosted agent goes on speaking while they run.
func (t *OpenTurn) openCalls() []*CallState {
	var open []*CallState
	for _, c := range t.Calls {
		if !c.Done {
			open = append(open, c)
		}
	}
	return open
}

// callsDone reports whether no call of the current step waits for its result.
func (t *OpenTurn) callsDone() bool {
	return !slices.ContainsFunc(t.Calls, func(c *CallState) bool { return !c.Done })
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
	if len(t.Actions) == 0 || t.Cancel != nil || len(t.Text) > 0 || t.Parallel || t.Hosted {
		return false
	}
	for _, c := range t.Calls {
		if c.Started && !c.Done && !t.asks(c.ID) {
			return false
		}
	}
	return true
}

// asks reports whether a call waits for a person.
func (t *OpenTurn) asks(call string) bool {
	return slices.ContainsFunc(t.Actions, func(a *Action) bool { return a.CallID == call })
}
