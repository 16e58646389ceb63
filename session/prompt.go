package session

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// Stop reasons of an Outcome (docs/protocol/rind-v2.md section 4.3).
const (
	stopEndTurn       = "end_turn"
	stopCancelled     = "cancelled"
	stopShutdown      = "shutdown"
	stopMaxTokens     = "max_tokens"
	stopFilter        = "content_filter"
	stopProvider      = "provider_error"
	stopTool          = "tool_error"
	stopPersistence   = "persistence_error"
	stopConfiguration = "configuration_error"
	stopRuntime       = "runtime_error"
)

// Outcomes of a prompt.
const (
	OutcomeCompleted = "completed"
	OutcomeFailed    = "failed"
	OutcomeCancelled = "cancelled"
	OutcomeWaiting   = "waiting"
)

// maxWaiting bounds the editor prompts that wait for a session's serial lane (docs/protocol/rind-v2.md section 7.1).
const maxWaiting = 8

// PromptRequest asks for a turn.
type PromptRequest struct {
	Input     string
	Parts     []protocol.Part
	Resume    bool // go on with the open turn instead of starting one
	Transient []protocol.SystemMessage
	Skills    []protocol.SystemMessage
	Surface   string // scope of Key: "rind", "acp"
	Key       string // idempotency key, "" for none
	Digest    string // fingerprint of the request, with Key
	Scope     bool   // request scope: Outcome has Scope and Answer
	Goal      bool   // go on with the active goal, with or without words
	compact   bool   // only compact; see Session.Compact
	task      bool   // a continuation turn the runtime starts because tasks ended
	goal      bool   // a goal turn the runtime starts
	exec      TurnID // an execution that was accepted before; see Session.Execute
	// Queued tells the 1-based place in the line whenever it changes. Runs on the session's goroutine and must not block.
	Queued func(position int)
	// Started tells the turn before anything of it is in the log. Runs on the session's goroutine and must not block.
	Started func(turn TurnID)
}

// TurnFault is the error of a failed turn.
type TurnFault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Outcome is how a prompt ended. Its answer may be written once the connection was told everything up to Seq.
type Outcome struct {
	Turn    TurnID
	Outcome string
	Stop    string
	Fault   *TurnFault
	Reason  string          // of a cancellation
	Seq     Seq             // of the terminal; 0 when there is none
	Scope   string          // request scope id
	Answer  string          // content of the last assistant message
	Record  json.RawMessage // of a compaction
}

// Prompt is a prompt without an answer.
type Prompt struct {
	s        *Session
	req      PromptRequest
	scope    string
	done     []func(Outcome, error)
	position int
	turn     *Turn
	ended    bool
}

// Prompt asks for a turn and returns at once. done is called exactly once, on the session's goroutine, and must not block: with the
// outcome when the turn has ended, or with an error when there was none.
func (s *Session) Prompt(req PromptRequest, done func(Outcome, error)) *Prompt {
	p := &Prompt{s: s, req: req, done: []func(Outcome, error){done}}
	skills, err := s.all.loadSkills(s.workspace, req.Input) // here, as files are read
	if err != nil {
		if !s.post(func() { p.finish(Outcome{}, err) }) {
			done(Outcome{}, err)
		}
		return p
	}
	p.req.Skills = append(p.req.Skills, skills...)
	if !s.post(func() { s.prompt(p) }) {
		done(Outcome{}, protocol.Errorf(protocol.SessionNotFound, "Session not found: %s", s.ID))
	}
	return p
}

func (p *Prompt) finish(o Outcome, err error) {
	if p.ended {
		return
	}
	p.ended = true
	if p.req.Key != "" && p.s.keyed[p.req.Key] == p {
		delete(p.s.keyed, p.req.Key)
	}
	o.Scope = p.scope
	for _, f := range p.done {
		f(o, err)
	}
}

// withdraw answers a prompt whose turn never started.
func (p *Prompt) withdraw(stop string) {
	p.finish(Outcome{Outcome: OutcomeCancelled, Stop: stop}, nil)
}

func (s *Session) prompt(p *Prompt) {
	switch {
	case s.removed:
		p.finish(Outcome{}, protocol.Errorf(protocol.SessionNotFound, "Session not found: %s", s.ID))
		return
	case s.stopping:
		p.finish(Outcome{}, protocol.Errorf(protocol.ServerStopping, "Runtime is shutting down."))
		return
	}
	if p.req.Scope {
		if s.scopeOpen() {
			p.finish(Outcome{}, protocol.Errorf(protocol.SessionBusy, "A request is already active for this session."))
			return
		}
		p.scope = s.all.cfg.IDs.Hex32()
	}
	if p.req.Key != "" && s.repeated(p) {
		return
	}
	if p.req.Goal && s.next.activeGoal() == nil {
		p.finish(Outcome{}, errNoGoal())
		return
	}
	if p.req.Resume {
		s.resume(p)
		return
	}
	if s.run != nil || s.starting != nil || len(s.queue) > 0 && !s.waitsForAnswer() {
		if s.editorPrompts() >= maxWaiting {
			p.finish(Outcome{}, protocol.Errorf(protocol.SessionBusy, "Too many prompts are waiting for this session (maximum %d).", maxWaiting))
			return
		}
		s.queue = append(s.queue, p)
		s.tellPositions()
		return
	}
	s.begin(p)
}

func (s *Session) scopeOpen() bool {
	open := func(p *Prompt) bool { return p != nil && p.req.Scope && !p.ended }
	for _, p := range s.queue {
		if open(p) {
			return true
		}
	}
	return s.scoped != nil || open(s.starting) || s.run != nil && open(s.run.prompt)
}

// repeated answers a prompt whose idempotency key is known; false when it is new.
func (s *Session) repeated(p *Prompt) bool {
	conflict := protocol.Errorf(protocol.IdempotencyConflict, "idempotency_key was already used with different parameters.")
	if first := s.keyed[p.req.Key]; first != nil {
		if first.req.Digest != p.req.Digest || first.req.Surface != p.req.Surface {
			p.finish(Outcome{}, conflict)
		} else {
			first.done = append(first.done, p.done...)
		}
		return true
	}
	if !s.draft {
		k, err := s.all.cfg.Store.Key(context.Background(), s.ID, p.req.Surface, p.req.Key)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			p.finish(Outcome{}, s.all.storeError(err))
			return true
		case k.Digest != p.req.Digest:
			p.finish(Outcome{}, conflict)
			return true
		default:
			s.again(p, k.Turn)
			return true
		}
	}
	s.keyed[p.req.Key] = p
	return false
}

// again answers a prompt whose turn was accepted before: its outcome, waiting for it, or going on with it after a crash.
func (s *Session) again(p *Prompt, turn TurnID) {
	if open := s.next.Serial; open != nil && open.ID == turn {
		s.resumeTurn(p, open)
		return
	}
	o, err := s.outcomeOf(turn)
	p.finish(o, err)
}

// outcomeOf reads how a turn ended from its terminal.
func (s *Session) outcomeOf(turn TurnID) (Outcome, error) {
	var last *Entry
	answer := ""
	for after := int64(0); ; {
		page, err := s.all.cfg.Store.ReadTurn(context.Background(), turn, after, 1024)
		if err != nil {
			return Outcome{}, s.all.storeError(err)
		}
		for i := range page {
			if page[i].Kind == protocol.KindAssistantMessageCompleted {
				if b, err := protocol.Decode(&page[i]); err == nil {
					answer = b.(*protocol.AssistantMessageCompleted).Content
				}
			}
			last = &page[i]
		}
		if len(page) < 1024 {
			break
		}
		after = last.PortableFirst + int64(last.PortableCount) - 1
	}
	if last == nil || !last.Kind.Info().Terminal {
		return Outcome{}, s.all.internal(errors.New("turn " + string(turn) + " has a key but no terminal"))
	}
	b, err := protocol.Decode(last)
	if err != nil {
		return Outcome{}, s.all.storeError(errors.Join(ErrCorrupt, err))
	}
	o := outcome(turn, b)
	o.Seq, o.Answer = last.Seq, answer
	return o, nil
}

// outcome reads an Outcome from a terminal.
func outcome(turn TurnID, terminal protocol.Body) Outcome {
	switch b := terminal.(type) {
	case *protocol.TurnFailed:
		return Outcome{Turn: turn, Outcome: OutcomeFailed, Stop: b.More.StopReason, Fault: &TurnFault{Type: b.ErrorType, Message: b.Error}}
	case *protocol.TurnCancelled:
		return Outcome{Turn: turn, Outcome: OutcomeCancelled, Stop: b.More.StopReason, Reason: b.Reason}
	case *protocol.TurnCompleted:
		return Outcome{Turn: turn, Outcome: OutcomeCompleted, Stop: b.More.StopReason}
	}
	return Outcome{Turn: turn}
}

func (s *Session) tellPositions() {
	for i, p := range s.queue {
		if p.position != i+1 {
			p.position = i + 1
			if p.req.Queued != nil {
				p.req.Queued(p.position)
			}
		}
	}
}

// Withdraw takes a waiting prompt back, or cancels its turn. done gets TurnNotActive when it has ended.
func (p *Prompt) Withdraw(reason string, done func(error)) {
	if !p.s.post(func() { p.s.withdraw(p, reason, done) }) {
		done(errNoTurn())
	}
}

func (s *Session) withdraw(p *Prompt, reason string, done func(error)) {
	for i, q := range s.queue {
		if q == p {
			s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
			p.withdraw(stopCancelled)
			s.tellPositions()
			s.settleDown()
			done(nil)
			return
		}
	}
	switch {
	case p.ended:
		done(errNoTurn())
	case s.starting == p:
		s.onStart = append(s.onStart, func() { s.withdraw(p, reason, done) })
	case s.scoped == p && s.run == nil && s.starting == nil:
		s.endScope(Outcome{Outcome: OutcomeCancelled, Stop: stopCancelled, Reason: reason})
		done(nil)
	case s.scoped == p:
		s.cancel(CancelRequest{Reason: reason}, done)
	case p.turn != nil && s.run == p.turn:
		s.cancel(CancelRequest{Turn: p.turn.ID, Reason: reason}, done)
	default:
		done(errNoTurn())
	}
}

// WithdrawWaiting takes the prompts of a connection that ended back, when they have not started.
func (p *Prompt) WithdrawWaiting() {
	p.s.post(func() {
		for _, q := range p.s.queue {
			if q == p {
				p.s.withdraw(p, protocol.ReasonUser, func(error) {})
				return
			}
		}
	})
}

func errNoGoal() error {
	return protocol.Errorf(protocol.InvalidRequest, "No active goal to continue.")
}

func errNoTurn() error {
	return protocol.Errorf(protocol.TurnNotActive, "No active turn to interrupt.")
}

// begin starts the turn of a prompt: the lane is free.
func (s *Session) begin(p *Prompt) {
	s.starting = p
	s.withLease(func(err error) {
		if err != nil {
			s.notStarted(p, err)
			return
		}
		s.settleOpen(nil, func(err error) { // a turn a dead process left open is closed first
			if err != nil {
				s.notStarted(p, err)
				return
			}
			s.startTurn(p)
		})
	})
}

func (s *Session) notStarted(p *Prompt, err error) {
	p.finish(Outcome{}, err)
	s.startOver(nil)
	s.nextPrompt()
}

// startOver ends the phase in which a turn is being started: t runs, or nothing does. What came in meanwhile is done now.
func (s *Session) startOver(t *Turn) {
	s.starting, s.run = nil, t
	if t != nil {
		if s.stopping {
			t.stop()
		}
		t.launch()
	}
	late := s.onStart
	s.onStart = nil
	for _, f := range late {
		f()
	}
}

// nextPrompt starts the oldest waiting prompt, if the lane is free.
func (s *Session) nextPrompt() {
	if s.run != nil || s.starting != nil {
		return
	}
	if len(s.queue) == 0 {
		s.checkScope()
		if !s.taskTurn() && !s.drive() {
			s.settleDown()
		}
		return
	}
	p := s.queue[0]
	if p.req.exec != "" && s.waitsForAnswer() {
		return
	}
	s.queue = s.queue[1:]
	s.tellPositions()
	s.begin(p)
}

// startTurn appends the facts a turn begins with and runs it once they are down.
func (s *Session) startTurn(p *Prompt) {
	if p.req.exec != "" {
		s.startExecution(p)
		return
	}
	turn := TurnID(s.all.cfg.IDs.Hex32())
	if p.req.compact {
		started := &protocol.TurnStarted{Operation: protocol.OpCompact, Origin: protocol.OriginUser}
		started.More.Model, started.More.Provider = s.next.Sel.Model, s.next.Sel.Provider
		s.startWith(p, turn, lines(turn, started), nil)
		return
	}
	input := strings.ToValidUTF8(p.req.Input, "\uFFFD")
	var goal, notice []line
	if ended := s.next.untold(); len(ended) > 0 {
		notice = lines(turn, s.notice(ended))
	}
	if p.req.task {
		s.startNotice(p, turn, notice)
		return
	}
	silent := p.req.goal || p.req.Goal && strings.TrimSpace(input) == ""
	switch {
	case silent && s.next.activeGoal() == nil: // it ended while the prompt waited
		s.notStarted(p, errNoGoal())
		return
	case p.req.goal:
		input, goal = goalInput(s.next.Goal), s.goalStart()
	case silent:
		input = goalInput(s.next.Goal)
	default:
		s.driving = true
	}
	acc := &protocol.TurnAccepted{}
	acc.More.Provider, acc.More.Surface, acc.More.Input = "agent", protocol.SurfaceEditor, input
	acc.More.Key, acc.More.Scope = p.req.Key, p.scope
	msg := &protocol.UserMessage{}
	msg.More.ID, msg.More.Text, msg.More.Parts = s.all.cfg.IDs.Hex32(), input, p.req.Parts
	msg.More.Origin, msg.More.Transient, msg.More.Skills = protocol.OriginUser, p.req.Transient, p.req.Skills
	started := &protocol.TurnStarted{
		UserMessageChars: protocol.CharLen(input), Operation: protocol.OpPrompt, Origin: protocol.OriginUser,
		UserMessageID: msg.More.ID, Input: protocol.Prefix(input, 8000),
	}
	started.InputTruncated = len(started.Input) < len(input)
	started.More.Model, started.More.Provider = s.next.Sel.Model, s.next.Sel.Provider
	if silent {
		msg.More.Origin, started.Origin = protocol.OriginGoal, protocol.OriginGoal
		started.UserMessageChars, started.Input, started.InputTruncated = 0, "", false
	}
	ls := append(append(s.opening(), goal...), lines(turn, acc)...)
	ls = append(append(ls, notice...), lines(turn, msg, started)...)
	var keys []Key
	if p.req.Key != "" {
		keys = []Key{{Surface: p.req.Surface, Key: p.req.Key, Digest: p.req.Digest, Turn: turn}}
	}
	s.startWith(p, turn, ls, keys)
}

// startNotice starts a continuation turn: one internal message tells of the tasks that ended.
func (s *Session) startNotice(p *Prompt, turn TurnID, notice []line) {
	if len(notice) == 0 { // a turn before it told of them
		s.notStarted(p, errNothingDue)
		return
	}
	msg := notice[0].body.(*protocol.UserMessage)
	acc := &protocol.TurnAccepted{}
	acc.More.Provider, acc.More.Surface, acc.More.Input, acc.More.Scope = "agent", protocol.SurfaceEditor, msg.More.Text, p.scope
	started := &protocol.TurnStarted{Operation: protocol.OpPrompt, Origin: protocol.OriginTask, UserMessageID: msg.More.ID}
	started.More.Model, started.More.Provider = s.next.Sel.Model, s.next.Sel.Provider
	s.startWith(p, turn, lines(turn, acc, msg, started), nil)
}

var errNothingDue = errors.New("nothing is due")

// startWith appends what a turn begins with and runs it once that is down.
func (s *Session) startWith(p *Prompt, turn TurnID, ls []line, keys []Key) {
	t := newTurn(s, turn, p, s.next.Sel)
	t.transient = p.req.Transient
	if p.req.Started != nil {
		p.req.Started(turn)
	}
	s.appendKeyed(ls, keys, func(_ Seq, err error) {
		if err != nil {
			t.cancel(err)
			s.notStarted(p, err)
			return
		}
		s.startOver(t)
	})
}

// opening is the first line of a log that has none yet.
func (s *Session) opening() []line {
	if s.next.Head > 0 {
		return nil
	}
	c := &protocol.SessionCreated{}
	st := s.next
	c.More.WorkspaceRoot, c.More.ConversationID = st.Workspace, st.Conversation
	c.More.Provider, c.More.Model, c.More.Effort, c.More.Mode = st.Sel.Provider, st.Sel.Model, st.Sel.Effort, st.Sel.Mode
	c.More.Metadata = st.Metadata
	if st.Renamed {
		c.More.Title = st.Title
	}
	return lines("", c)
}
