package session

import (
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// Bounds of the steering and follow-up queues of a turn (docs/protocol/rind-v2.md section 7.2).
const (
	maxInputs     = 4
	maxInputChars = 8000
)

// InputResult answers the queue methods.
type InputResult struct {
	ID      string
	Mode    string
	Input   string
	Pending int // inputs of the mode that wait now
}

// activeTurn is the running turn that takes inputs. SessionBusy while another process runs one.
func (s *Session) activeTurn(turn TurnID) (*OpenTurn, error) {
	open := s.next.Serial
	switch {
	case s.lane.run == nil && open != nil && s.view().foreign(): // whatever turn is meant, it is not for this process to feed it
		return nil, errBusy()
	case turn != "" && (s.lane.run == nil || open == nil || open.ID != turn):
		return nil, protocol.Errorf(protocol.TurnNotActive, "The requested turn is no longer active.")
	case s.lane.run == nil || open == nil:
		return nil, protocol.Errorf(protocol.TurnNotActive, "Session execution is not active.")
	case s.lane.run.ending || open.Cancel != nil:
		return nil, protocol.Errorf(protocol.TurnNotActive, "No active turn accepts queued input.")
	}
	return open, nil
}

// Enqueue accepts a steering or follow-up input for the running turn. done runs once it is on disk.
func (s *Session) Enqueue(mode, input string, turn TurnID, done func(InputResult, error)) {
	s.queueCall(done, func() {
		open, err := s.activeTurn(turn)
		if err != nil {
			done(InputResult{}, err)
			return
		}
		if err := s.lane.run.takes(mode, open); err != nil {
			done(InputResult{}, err)
			return
		}
		input = strings.TrimSpace(strings.ToValidUTF8(input, "\uFFFD"))
		waiting := open.queued(mode)
		chars := protocol.CharLen(input)
		sum := chars
		for _, in := range waiting {
			sum += protocol.CharLen(in.Text)
		}
		switch {
		case input == "":
			err = protocol.Errorf(protocol.InvalidRequest, "%s input must not be empty.", mode)
		case chars > maxInputChars:
			err = protocol.Errorf(protocol.InputTooLong, "%s input exceeds %d characters.", mode, maxInputChars)
		case len(waiting) >= maxInputs:
			err = protocol.Errorf(protocol.InputQueueFull, "%s queue is full (maximum %d).", mode, maxInputs)
		case sum > maxInputChars:
			err = protocol.Errorf(protocol.InputQueueFull, "%s queue exceeds %d queued characters.", mode, maxInputChars)
		}
		if err != nil {
			done(InputResult{}, err)
			return
		}
		b := &protocol.InputAccepted{}
		b.More.InputID, b.More.Mode, b.More.Input = s.all.cfg.IDs.Hex32(), mode, input
		res := InputResult{ID: b.More.InputID, Mode: mode, Input: input, Pending: len(waiting) + 1}
		s.append(lines(open.ID, b), func(_ Seq, err error) {
			if err == nil {
				s.jobs.release(func(w *taskWait) bool { return w.tool }) // what waits lets the input be delivered
				if run := s.lane.run; run != nil && run.ID == open.ID {
					run.ring(mode)
				}
			}
			done(res, err)
		})
	})
}

// Promote moves a follow-up to the end of steering.
func (s *Session) Promote(id string, done func(InputResult, error)) {
	s.queueCall(done, func() {
		open, err := s.activeTurn("")
		if err != nil {
			done(InputResult{}, err)
			return
		}
		if err := s.lane.run.takes(protocol.ModeSteering, open); err != nil {
			done(InputResult{}, err)
			return
		}
		in := open.input(id)
		if in == nil || in.Mode != protocol.ModeFollowUp {
			done(InputResult{}, protocol.Errorf(protocol.InputNotPending, "Queued follow-up was not found."))
			return
		}
		waiting := open.queued(protocol.ModeSteering)
		sum := protocol.CharLen(in.Text)
		for _, w := range waiting {
			sum += protocol.CharLen(w.Text)
		}
		switch {
		case len(waiting) >= maxInputs:
			done(InputResult{}, protocol.Errorf(protocol.InputQueueFull, "steering queue is full (maximum %d).", maxInputs))
			return
		case sum > maxInputChars:
			done(InputResult{}, protocol.Errorf(protocol.InputQueueFull, "steering queue exceeds %d queued characters.", maxInputChars))
			return
		}
		b := &protocol.InputMoved{}
		b.More.InputID, b.More.To = id, protocol.ModeSteering
		res := InputResult{ID: id, Mode: protocol.ModeSteering, Input: in.Text, Pending: len(waiting) + 1}
		s.append(lines(open.ID, b), func(_ Seq, err error) {
			if run := s.lane.run; err == nil && run != nil && run.ID == open.ID {
				run.ring(protocol.ModeSteering)
			}
			done(res, err)
		})
	})
}

// Retrieve takes an input back: the one named, or the newest of the mode when id is "". One that is with a hosted agent stays there.
func (s *Session) Retrieve(mode, id string, done func(InputResult, error)) {
	s.queueCall(done, func() {
		open, err := s.activeTurn("")
		if err != nil {
			done(InputResult{}, err)
			return
		}
		waiting := slices.DeleteFunc(open.queued(mode), func(in *Input) bool { return s.withAgent(in.ID) })
		var in *Input
		switch {
		case id != "":
			if in = open.input(id); in == nil || in.Mode != mode || s.withAgent(id) {
				done(InputResult{}, protocol.Errorf(protocol.InputNotPending, "Queued %s input was not found.", mode))
				return
			}
		case len(waiting) == 0:
			done(InputResult{}, protocol.Errorf(protocol.InputNotPending, "No queued %s input is available.", mode))
			return
		default:
			in = waiting[len(waiting)-1]
		}
		b := &protocol.InputMoved{}
		b.More.InputID, b.More.To = in.ID, protocol.MovedAway
		res := InputResult{ID: in.ID, Mode: mode, Input: in.Text, Pending: len(waiting) - 1}
		s.append(lines(open.ID, b), func(_ Seq, err error) { done(res, err) })
	})
}

// queueCall runs f on the session's goroutine; a session that is gone has no active turn.
func (s *Session) queueCall(done func(InputResult, error), f func()) {
	if !s.post(f) {
		done(InputResult{}, protocol.Errorf(protocol.TurnNotActive, "Session execution is not active."))
	}
}

// Deliver gives the oldest waiting input of mode to the model as a user message; nil when none waits.
func (t *Turn) Deliver(mode string) (*Input, error) {
	var got *Input
	err := t.do(func(done func(error)) {
		t.gather.flush()
		open := t.s.next.turn(t.ID)
		if open == nil || open.Cancel != nil {
			done(errCancelled)
			return
		}
		waiting := open.queued(mode)
		if len(waiting) == 0 {
			done(nil)
			return
		}
		in := *waiting[0]
		t.s.append(lines(t.ID, deliveryOf(&in)), func(_ Seq, err error) {
			if err == nil {
				got = &in
			}
			done(err)
		})
	})
	return got, err
}

// deliveryOf is the fact that an input is part of the conversation now.
func deliveryOf(in *Input) protocol.Body {
	b := &protocol.QueuedInputDelivered{InputID: in.ID, Input: in.Text, Mode: in.Mode}
	b.More.Parts = in.Parts
	return b
}

// LastCall ends the acceptance of inputs unless one waits: it reports whether the turn may end.
func (t *Turn) LastCall() (bool, error) {
	last := false
	err := t.do(func(done func(error)) {
		open := t.s.next.turn(t.ID)
		if open == nil {
			done(errTurnGone)
			return
		}
		last = len(open.Inputs) == 0
		t.ending = last
		done(nil)
	})
	return last, err
}
