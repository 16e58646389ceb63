package session

import (
	"context"
	"errors"
	"slices"

	"github.com/rind-dev/rind/protocol"
)

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
	aside     agentFunc
	after     TurnID // of aside
	Editor    Editor // what the client does for the tools of the turn
	// Queued tells the 1-based place in the line whenever it changes. Runs on the session's goroutine and must not block.
	Queued func(position int)
	// Started tells the turn before anything of it is in the log. Runs on the session's goroutine and must not block.
	Started func(turn TurnID)
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
		done(Outcome{}, errGone(s.ID))
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
		p.finish(Outcome{}, errGone(s.ID))
		return
	case s.stopping:
		p.finish(Outcome{}, errStopping())
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
	if !s.lane.free() || len(s.lane.line) > 0 && !s.waitsForAnswer() {
		if s.lane.editors() >= maxWaiting {
			p.finish(Outcome{}, protocol.Errorf(protocol.SessionBusy, "Too many prompts are waiting for this session (maximum %d).", maxWaiting))
			return
		}
		s.lane.join(p)
		s.hurryAside()
		return
	}
	s.begin(p)
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
	if s.lane.starting != nil { // it may close that turn
		s.lane.later(func() { s.again(p, turn) })
		return
	}
	if open := s.next.Serial; open != nil && open.ID == turn {
		s.resumeTurn(p, open)
		return
	}
	o, err := s.outcomeOf(turn)
	p.finish(o, err)
}

// Withdraw takes a waiting prompt back, or cancels its turn. done gets TurnNotActive when it has ended.
func (p *Prompt) Withdraw(reason string, done func(error)) {
	if !p.s.post(func() { p.s.withdraw(p, reason, done) }) {
		done(errNoTurn())
	}
}

func (s *Session) withdraw(p *Prompt, reason string, done func(error)) {
	switch {
	case s.lane.leave(p):
		p.withdraw(stopCancelled)
		s.settleDown()
		done(nil)
	case p.ended:
		done(errNoTurn())
	case s.lane.starting == p:
		s.lane.later(func() { s.withdraw(p, reason, done) })
	case s.scope.prompt == p && s.lane.free():
		s.endScope(Outcome{Outcome: OutcomeCancelled, Stop: stopCancelled, Reason: reason})
		done(nil)
	case s.scope.prompt == p:
		s.cancel(CancelRequest{Reason: reason}, done)
	case p.turn != nil && s.lane.run == p.turn:
		s.cancel(CancelRequest{Turn: p.turn.ID, Reason: reason}, done)
	default:
		done(errNoTurn())
	}
}

// WithdrawWaiting takes the prompts of a connection that ended back, when they have not started.
func (p *Prompt) WithdrawWaiting() {
	p.s.post(func() {
		if slices.Contains(p.s.lane.line, p) {
			p.s.withdraw(p, protocol.ReasonUser, func(error) {})
		}
	})
}

func errNoGoal() error {
	return protocol.Errorf(protocol.InvalidRequest, "No active goal to continue.")
}

func errNoTurn() error {
	return protocol.Errorf(protocol.TurnNotActive, "No active turn to interrupt.")
}
