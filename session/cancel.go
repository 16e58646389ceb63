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
	if s.cancelLane(r, done) {
		return
	}
	if s.lane.starting != nil {
		s.lane.later(func() { s.cancel(r, done) })
		return
	}
	open := s.next.Serial
	if r.Turn != "" {
		open = s.next.turn(r.Turn)
	}
	switch {
	case open == nil && r.Turn != "":
		done(protocol.Errorf(protocol.TurnNotActive, "The requested turn is no longer active."))
		return
	case open == nil && (s.noticeDue() || s.scope.prompt != nil): // only a continuation is due: it is held
		s.holdContinuations(done)
		return
	case open == nil && s.goalDue(): // only a continuation is due: it is held
		s.changeGoal(false, func(g *protocol.Goal) (*protocol.Goal, error) {
			if g != nil && g.Status == GoalActive {
				g.Status = GoalPaused
			}
			return g, nil
		}, func(_ *protocol.Goal, err error) { done(err) })
		return
	case open == nil:
		done(errNoTurn())
		return
	case open.Cancel != nil && s.lane.run != nil:
		done(nil) // it is being cancelled already
		return
	}
	if r.Reason == "" {
		r.Reason = protocol.ReasonUser
	}
	c := &protocol.CancelRequested{}
	c.More.Reason, c.More.Given, c.More.Surface, c.More.Hold = r.Reason, r.Given, r.Surface, true
	run := s.lane.run
	if run != nil && run.ID == open.ID {
		s.append(lines(open.ID, c), func(_ Seq, err error) { done(err) })
		run.cancel(errCancelled) // at once: the fact is ahead of whatever the turn still records
		return
	}
	id := open.ID
	s.withLease(func(err error) { // its process is gone, or another one has it
		if err != nil {
			if protocol.KindOf(err) == protocol.SessionBusy {
				s.sendLetter(letter{Op: "cancel", Turn: id, Reason: r.Reason, Given: r.Given, Surface: r.Surface}, done)
				return
			}
			done(err)
			return
		}
		open := s.next.turn(id)
		if open == nil {
			done(protocol.Errorf(protocol.TurnNotActive, "The requested turn is no longer active."))
			return
		}
		if open.Cancel == nil {
			s.append(lines(id, c), func(_ Seq, err error) { done(err) })
		} else {
			done(nil)
		}
		s.settleOpen(&ending{turn: id, kind: endCancelled, dead: true}, func(err error) {
			if err != nil && !errors.Is(err, ErrFenced) {
				s.log().Warn("close cancelled turn", "session", s.ID, "turn", id, "err", err)
			}
			s.nextPrompt()
		})
	})
}
