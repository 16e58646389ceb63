package session

import "github.com/rind-dev/rind/protocol"

// This file is how a hosted agent that takes steering is given it (docs/protocol/acp.md sections 4 and 5.6): an input is handed over while the agent
// works, and becomes part of the conversation where the agent says that it did.

// Steering says that the agent of this turn takes steering from now on. ring is called when an input may wait for Hand; it must not block. An error
// is the turn's end.
func (t *Turn) Steering(ring func()) error {
	return t.do(func(done func(error)) {
		t.steered = ring
		done(nil)
	})
}

// takes says why a mode of input does not reach the agent of a running turn; nil when it does.
func (t *Turn) takes(mode string, open *OpenTurn) error {
	if open.Hosted && mode == protocol.ModeSteering && t.steered == nil {
		return protocol.Errorf(protocol.UnsupportedOperation, "This agent cannot be steered; a follow-up reaches it when its answer ends.")
	}
	return nil
}

// ring wakes a hosted agent for an input that was accepted.
func (t *Turn) ring(mode string) {
	if mode == protocol.ModeSteering && t.steered != nil {
		t.steered()
	}
}

// Hand returns the oldest steering input that was not handed over yet, nil when there is none. It cannot be taken back from now on, but for TakeBack.
func (t *Turn) Hand() (*Input, error) {
	var got *Input
	err := t.do(func(done func(error)) {
		open := t.s.next.turn(t.ID)
		if open == nil || open.Cancel != nil {
			done(errCancelled)
			return
		}
		for _, in := range open.queued(protocol.ModeSteering) {
			if !t.handed[in.ID] {
				if t.handed == nil {
					t.handed = map[string]bool{}
				}
				t.handed[in.ID] = true
				c := *in
				got = &c
				break
			}
		}
		done(nil)
	})
	return got, err
}

// TakeBack says that the agent did not take an input: it waits again.
func (t *Turn) TakeBack(id string) error {
	return t.do(func(done func(error)) {
		delete(t.handed, id)
		done(nil)
	})
}

// Arrived records that an input which was handed over is part of the conversation now.
func (t *Turn) Arrived(id string) error {
	return t.do(func(done func(error)) {
		t.gather.flush()
		open := t.s.next.turn(t.ID)
		if open == nil || open.Cancel != nil {
			done(errCancelled)
			return
		}
		in := open.input(id)
		if in == nil {
			done(nil)
			return
		}
		t.s.append(lines(t.ID, deliveryOf(in)), func(_ Seq, err error) { done(err) })
	})
}

// withAgent reports whether an input is with the running agent.
func (s *Session) withAgent(id string) bool { return s.lane.run != nil && s.lane.run.handed[id] }
