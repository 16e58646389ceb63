package session

import (
	"github.com/rind-dev/rind/protocol"
)

// resume answers a prompt that goes on with the open turn.
func (s *Session) resume(p *Prompt) {
	none := protocol.Errorf(protocol.TurnNotActive, "No recoverable turn is available.")
	if !s.lane.free() || s.draft {
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
		s.lane.starting = nil
		s.resumeTurn(p, open)
	})
}

// resumeTurn goes on with an open turn, or waits with it for its answer.
func (s *Session) resumeTurn(p *Prompt, open *OpenTurn) {
	if s.lane.run != nil && s.lane.run.ID == open.ID || open.waiting() {
		s.watch(open.ID, func(o Outcome) { p.finish(o, nil) })
		if s.lane.run == nil {
			s.startOver(nil)
			s.settleDown()
		}
		return
	}
	s.lane.start(p)
	s.withLease(func(err error) {
		if err != nil {
			s.notStarted(p, err)
			return
		}
		if open = s.next.Serial; open == nil {
			s.lane.starting = nil
			s.again(p, p.lastTurn(s))
			s.startOver(nil)
			return
		}
		if open.Cancel != nil || s.unsettled != nil || open.Hosted {
			turn := open.ID
			s.settleOpen(nil, func(err error) {
				if err != nil {
					s.notStarted(p, err)
					return
				}
				s.startOver(nil)
				o, err := s.outcomeOf(turn)
				p.finish(o, err)
				s.nextPrompt()
			})
			return
		}
		s.continueTurn(p, open)
	})
}

// lastTurn names the turn a resumption was meant for when it ended meanwhile.
func (p *Prompt) lastTurn(s *Session) TurnID {
	if s.next.Last != nil {
		return s.next.Last.Turn
	}
	return ""
}

// continueTurn starts another attempt at an interrupted turn (docs/protocol/rind-v2.md section 7.4).
func (s *Session) continueTurn(p *Prompt, open *OpenTurn) {
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
	t.gather.message, t.transient = "", open.Transient
	t.restrict(open)
	ls := lines(open.ID, bodies...)
	s.stampRoots(ls)
	s.append(ls, func(_ Seq, err error) {
		if err != nil {
			t.cancel(err)
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
	t := newTurn(s, open.ID, nil, s.next.Sel)
	t.transient = open.Transient
	t.restrict(open)
	s.startOver(t)
}
