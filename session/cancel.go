package session

import (
	"errors"

	"github.com/rind-dev/rind/protocol"
)

// CancelRequest asks for the end of a turn.
type CancelRequest struct {
	Turn    TurnID // "" for the active serial turn
	Reason  string // "" for ReasonUser
	Given   bool   // a portable caller gave Reason
	Surface string
}

// Cancel ends a turn. It is acted on in the order of the calls and never hits a prompt asked for later. done is called once the
// request is on disk, before or after the terminal; TurnNotActive when there is nothing to cancel.
func (s *Session) Cancel(r CancelRequest, done func(error)) {
	if !s.post(func() { s.cancel(r, done) }) {
		done(errNoTurn())
	}
}

func (s *Session) cancel(r CancelRequest, done func(error)) {
	if r.Reason == "" {
		r.Reason = protocol.ReasonUser
	}
	if run := s.exec.runs[r.Turn]; run != nil {
		run.stop(r, done)
		return
	}
	again := func() { s.cancel(r, done) }
	switch {
	case s.lane.starting != nil:
		s.lane.later(again)
		return
	case r.Turn == "" && s.lane.run == nil && s.door.shut: // a prompt was asked for before
		s.door.enter(again)
		return
	}
	open := s.next.Serial
	if r.Turn != "" {
		open = s.next.turn(r.Turn)
	}
	switch {
	case open == nil && r.Turn != "":
		done(errTurnOver())
	case open == nil:
		s.cancelContinuation(done)
	case s.lane.run != nil && s.lane.run.ID == open.ID:
		s.cancelRun(r, done)
	default:
		s.cancelOrphan(r, open.ID, done)
	}
}

func errTurnOver() error {
	return protocol.Errorf(protocol.TurnNotActive, "The requested turn is no longer active.")
}

// cancelBody is the fact of a cancel. hold keeps continuations back until the next prompt of a person.
func cancelBody(r CancelRequest, hold bool) *protocol.CancelRequested {
	c := &protocol.CancelRequested{}
	c.More.Reason, c.More.Given, c.More.Surface, c.More.Hold = r.Reason, r.Given, r.Surface, hold
	return c
}

// cancelRun cancels the turn this process runs.
func (s *Session) cancelRun(r CancelRequest, done func(error)) {
	run := s.lane.run
	if s.next.turn(run.ID).Cancel != nil { // its fact may be on the way still
		s.settled(done)
		return
	}
	s.append(lines(run.ID, cancelBody(r, true)), func(_ Seq, err error) { done(err) })
	run.cancel(errCancelled) // at once: the fact is ahead of whatever the turn still records
}

// cancelContinuation cancels what the runtime itself is about to start; no turn is open.
func (s *Session) cancelContinuation(done func(error)) {
	switch {
	case s.noticeDue() || s.scope.prompt != nil:
		s.holdContinuations(done)
	case s.goalDue():
		s.changeGoal(false, func(g *protocol.Goal) (*protocol.Goal, error) {
			if g != nil && g.Status == GoalActive {
				g.Status = GoalPaused
			}
			return g, nil
		}, func(_ *protocol.Goal, err error) { done(err) })
	default:
		done(errNoTurn())
	}
}

// cancelOrphan cancels a turn that nobody here works on: it stands in line, its process is gone, or another process has it.
func (s *Session) cancelOrphan(r CancelRequest, turn TurnID, done func(error)) {
	r.Turn = turn // whatever is asked for from here on is not meant
	s.withLease(func(err error) {
		open := s.next.turn(turn)
		switch {
		case protocol.KindOf(err) == protocol.SessionBusy:
			s.sendLetter(letter{Op: "cancel", Turn: turn, Reason: r.Reason, Given: r.Given, Surface: r.Surface}, done)
		case err != nil:
			done(err)
		case open == nil:
			done(errTurnOver())
		case s.exec.runs[turn] != nil || s.lane.run != nil && s.lane.run.ID == turn: // it came to life meanwhile
			s.cancel(r, done)
		case open == s.next.Serial:
			s.cancelOpen(r, open, done)
		default:
			s.cancelQueued(r, open, done)
		}
	})
}

// cancelOpen records the cancel of the serial turn a dead process left open, and closes it. The lease is held.
func (s *Session) cancelOpen(r CancelRequest, open *OpenTurn, done func(error)) {
	turn := open.ID
	if open.Cancel == nil {
		s.append(lines(turn, cancelBody(r, true)), func(_ Seq, err error) { done(err) })
	} else {
		s.settled(done)
	}
	s.settleOpen(&ending{turn: turn, kind: endCancelled, dead: true}, func(err error) {
		if err != nil && !errors.Is(err, ErrFenced) {
			s.log().Warn("close cancelled turn", "session", s.ID, "turn", turn, "err", err)
		}
		s.nextPrompt()
	})
}

// cancelQueued ends an execution that stands in line, or whose process is gone, with its cancel. The lease is held.
func (s *Session) cancelQueued(r CancelRequest, open *OpenTurn, done func(error)) {
	turn := open.ID
	e := &ending{turn: turn, kind: endCancelled, cancel: cancelBody(r, false), dead: open.Started}
	s.endAside(e, func(err error) {
		if p := s.lane.execution(turn); p != nil && err == nil {
			s.lane.leave(p)
			p.withdraw(stopCancelled)
		}
		if err == nil {
			delete(s.exec.setups, turn)
		}
		done(err)
		s.nextPrompt()
	})
}

// cancelExecution cancels an execution and answers once its end is on disk.
func (s *Session) cancelExecution(turn TurnID, reason *string, done func(error)) {
	s.findTurn(turn, func(open *OpenTurn) {
		if open == nil {
			s.settled(func(error) { done(nil) })
			return
		}
		r := CancelRequest{Turn: turn, Surface: protocol.SurfacePortable}
		if reason != nil {
			r.Reason, r.Given = *reason, true
		}
		var once bool
		answer := func(err error) {
			if !once {
				once = true
				done(err)
			}
		}
		s.watch(turn, func(Outcome) { answer(nil) })
		s.cancel(r, func(err error) {
			switch {
			case err == nil:
			case protocol.KindOf(err) == protocol.TurnNotActive: // its end is on disk, or on the way there, which the watch tells
				s.settled(func(error) {
					if s.shown.turn(turn) == nil {
						answer(nil)
					}
				})
			default:
				answer(err)
			}
		})
	})
}

// findTurn tells then of an open turn, also of one that another process has just begun and that was not told here yet; nil for none.
func (s *Session) findTurn(turn TurnID, then func(*OpenTurn)) {
	if open := s.next.turn(turn); open != nil {
		then(open)
		return
	}
	s.refreshed(func() { then(s.next.turn(turn)) })
}
