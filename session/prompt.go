package session

import (
	"context"
	"errors"
	"time"

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
	errand    *Errand
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
	atDoor   bool // not taken yet: its key is being looked up, or that of one before it
	turn     *Turn
	awaits   bool // the end of a turn of another process
	unheard  int  // how often the turn of its key was looked for, which another process has just begun
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
	p.ended, p.atDoor = true, false
	if p.s.keyed[p.key()] == p {
		delete(p.s.keyed, p.key())
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

// surfaceKey is an idempotency key: those of other surfaces are apart.
type surfaceKey struct{ surface, key string }

func (p *Prompt) key() surfaceKey { return surfaceKey{p.req.Surface, p.req.Key} }

func (s *Session) prompt(p *Prompt) {
	p.atDoor = true
	s.door.enter(func() { s.admit(p) })
}

// admit looks the prompt's idempotency key up, and starts a prompt that is new.
func (s *Session) admit(p *Prompt) {
	first := s.keyed[p.key()]
	switch {
	case s.refused(p):
	case p.req.Key == "" || first == nil && s.draft.Load():
		s.take(p)
	case first != nil && first.req.Digest != p.req.Digest:
		p.finish(Outcome{}, errPromptConflict())
	case first != nil:
		p.atDoor = false
		first.done = append(first.done, p.done...)
	default:
		s.door.shut = true
		s.lookUp(p, func(k Key, err error) {
			switch {
			case s.refused(p):
			case errors.Is(err, ErrNotFound):
				s.take(p)
			case err != nil:
				p.finish(Outcome{}, err)
			default:
				s.again(p, k.Turn)
			}
			s.door.open()
		})
	}
}

// refused answers a prompt that cannot be worked off here; also one that was withdrawn at the door is none any more.
func (s *Session) refused(p *Prompt) bool {
	switch {
	case s.gone.Load():
		p.finish(Outcome{}, errGone(s.ID))
	case s.stopping:
		p.finish(Outcome{}, errStopping())
	}
	return p.ended
}

// take starts a new prompt, or puts it in line.
func (s *Session) take(p *Prompt) {
	p.atDoor = false
	if p.req.Scope {
		if s.scopeOpen() {
			p.finish(Outcome{}, protocol.Errorf(protocol.SessionBusy, "A request is already active for this session."))
			return
		}
		p.enterScope("")
	}
	if p.req.Key != "" {
		s.keyed[p.key()] = p
	}
	switch {
	case p.req.errand != nil:
		s.claim(p)
	case p.req.Goal && s.next.activeGoal() == nil:
		p.finish(Outcome{}, errNoGoal())
	case p.req.Resume:
		s.resume(p)
	case s.lane.free() && (len(s.lane.line) == 0 || s.waitsForAnswer()):
		s.begin(p)
	case s.lane.editors() >= maxWaiting:
		p.finish(Outcome{}, protocol.Errorf(protocol.SessionBusy, "Too many prompts are waiting for this session (maximum %d).", maxWaiting))
	default:
		s.lane.join(p)
		s.hurryAside()
	}
}

// startedElsewhere answers a prompt whose key was used by another process while this one was about to start its turn.
func (s *Session) startedElsewhere(p *Prompt) {
	s.lookUp(p, func(k Key, err error) {
		if err != nil {
			s.notStarted(p, err)
			return
		}
		s.startOver(nil)
		s.again(p, k.Turn)
		s.nextPrompt()
	})
}

// lookUp looks the prompt's key up: ErrNotFound for one that is new, IdempotencyConflict for one that was used for something else.
func (s *Session) lookUp(p *Prompt, then func(Key, error)) {
	fetch(s, func(ctx context.Context, store Store) (Key, error) {
		return store.Key(ctx, s.ID, p.req.Surface, p.req.Key)
	}, func(k Key, err error) {
		if err == nil && k.Digest != p.req.Digest {
			err = errPromptConflict()
		}
		then(k, err)
	})
}

func errPromptConflict() error {
	return protocol.Errorf(protocol.IdempotencyConflict, "idempotency_key was already used with different parameters.")
}

// again answers a prompt whose turn was accepted before: its outcome, waiting for it, or going on with it after a crash.
func (s *Session) again(p *Prompt, turn TurnID) {
	p.atDoor = false
	if turn == "" { // what the key was used for is none
		s.errandAgain(p)
		return
	}
	if s.lane.starting != nil { // it may close that turn
		s.lane.later(func() { s.again(p, turn) })
		return
	}
	if open := s.next.Serial; open != nil && open.ID == turn {
		p.enterScope(open.Scope)
		s.resumeTurn(p, turn)
		return
	}
	fetch(s, func(ctx context.Context, store Store) (Outcome, error) {
		o, err := readOutcome(ctx, store, turn)
		if err == nil && p.req.Scope {
			o, err = readScope(ctx, store, s.ID, o)
		}
		return o, err
	}, func(o Outcome, err error) {
		switch {
		case !errors.Is(err, errNoTerminal):
			p.enterScope(o.Scope)
			p.finish(o, err)
		case p.unheard < maxUnheard: // another process has just begun it
			p.unheard++
			s.refreshed(func() { s.againIn(100*time.Millisecond, p, turn) })
		default:
			p.finish(o, s.all.internal(err))
		}
	})
}

// maxUnheard is how often a prompt looks for the beginning of its turn in what another process wrote.
const maxUnheard = 50

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
	case p.atDoor:
		p.withdraw(stopCancelled)
		done(nil)
	case p.req.errand != nil:
		p.req.errand.withdraw(p, reason, done)
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

func errNoGoal() error {
	return protocol.Errorf(protocol.InvalidRequest, "No active goal to continue.")
}

func errNoTurn() error {
	return protocol.Errorf(protocol.TurnNotActive, "No active turn to interrupt.")
}
