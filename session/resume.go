package session

import (
	"time"

	"github.com/rind-dev/rind/protocol"
)

// resume answers a prompt that goes on with the open turn.
func (s *Session) resume(p *Prompt) {
	none := protocol.Errorf(protocol.TurnNotActive, "No recoverable turn is available.")
	if !s.lane.free() || s.draft.Load() {
		p.finish(Outcome{}, none)
		return
	}
	s.lane.start(p)
	s.withLease(func(err error) {
		open := s.next.Serial
		if err == nil && (open == nil || open.Operation != protocol.OpPrompt || open.Hosted) { // a hosted agent's cannot be gone on with
			err = none
		}
		if err != nil {
			s.notStarted(p, err)
			return
		}
		s.goOn(p, open.ID)
	})
}

// resumeTurn goes on with an open turn, or waits with it for its answer. Nothing is being started.
func (s *Session) resumeTurn(p *Prompt, turn TurnID) {
	if s.lane.run != nil || s.next.Serial.waiting() {
		s.watch(turn, func(o Outcome) { p.finish(o, nil) })
		return
	}
	s.lane.start(p)
	s.withLease(func(err error) {
		switch {
		case protocol.KindOf(err) == protocol.SessionBusy && p.req.Key != "":
			s.startOver(nil)
			s.awaitElsewhere(p, turn)
			s.nextPrompt()
		case err != nil:
			s.notStarted(p, err)
		default:
			s.goOn(p, turn)
		}
	})
}

// awaitElsewhere waits with a turn that another process works on for its end, or for that of the process, which is looked for every second.
func (s *Session) awaitElsewhere(p *Prompt, turn TurnID) {
	if !p.awaits {
		p.awaits = true
		s.watch(turn, func(o Outcome) { p.finish(o, nil) })
	}
	s.againIn(time.Second, p, turn)
}

func (s *Session) againIn(d time.Duration, p *Prompt, turn TurnID) {
	s.after(d, func() {
		if !s.refused(p) {
			s.again(p, turn)
		}
	})
}

// goOn goes on with a turn that is no process's: p is being started for it, and the lease is held.
func (s *Session) goOn(p *Prompt, turn TurnID) {
	open := s.next.Serial
	switch {
	case open == nil || open.ID != turn: // it ended while the lease was being taken
		s.outcomeOf(turn, p.finish)
		s.startOver(nil)
		s.nextPrompt()
	case open.waiting():
		s.watch(turn, func(o Outcome) { p.finish(o, nil) })
		s.startOver(nil)
		s.nextPrompt()
	case open.Cancel != nil || s.unsettled != nil || open.Hosted:
		s.settleOpen(nil, func(err error) {
			if err != nil {
				s.notStarted(p, err)
				return
			}
			s.outcomeOf(turn, p.finish)
			s.startOver(nil)
			s.nextPrompt()
		})
	default:
		s.limitsOf(open, func(given *givenLimits) { s.continueTurn(p, turn, given) })
	}
}

// continueTurn starts another attempt at an interrupted turn (docs/protocol/rind-v2.md section 7.4).
func (s *Session) continueTurn(p *Prompt, turn TurnID, given *givenLimits) {
	open := s.next.turn(turn)
	if open == nil {
		s.goOn(p, turn)
		return
	}
	started := &protocol.TurnStarted{Operation: open.Operation, Origin: protocol.OriginResume, UserMessageID: open.UserMessageID}
	started.More.Attempt = open.Attempts + 1
	bodies := append([]protocol.Body{started}, s.openText(open)...)
	for _, c := range open.Calls {
		if c.Done || c.ReadOnly || !c.Started || c.Answer != nil || open.asks(c.ID) {
			continue
		}
		bodies = append(bodies, s.closeCall(open, c, &ending{dead: true}))
	}
	t := newTurn(s, open.ID, p, s.next.Sel)
	t.transient = open.Transient
	t.restrict(open, given)
	ls := lines(open.ID, bodies...)
	s.stampRoots(ls)
	s.append(ls, func(_ Seq, err error) {
		if err != nil {
			t.drop(err)
			s.notStarted(p, err)
			return
		}
		s.startOver(t)
	})
}

// revive goes on with a waiting turn after its answer, when the process that asked is gone: no second turn_started.
func (s *Session) revive(open *OpenTurn) {
	if !s.lane.free() {
		return
	}
	turn := open.ID
	s.lane.start(&Prompt{s: s}) // nobody waits for its answer: it keeps the lane
	s.limitsOf(open, func(given *givenLimits) {
		open := s.next.turn(turn)
		if open == nil {
			s.startOver(nil)
			s.nextPrompt()
			return
		}
		t := newTurn(s, turn, nil, s.next.Sel)
		t.transient = open.Transient
		t.restrict(open, given)
		s.startOver(t)
	})
}
