package session

import (
	"cmp"
	"time"

	"github.com/rind-dev/rind/protocol"
)

const interruptedText = "The runtime stopped before this turn finished."

type endKind uint8

const (
	endCompleted   endKind = iota
	endFailed              // the agent failed
	endCancelled           // by a person, another surface, or the end of the runtime
	endInterrupted         // its process died: closed by the next prompt
)

// ending says how an open turn is to be closed.
type ending struct {
	turn    TurnID
	kind    endKind
	dead    bool // its process died: what had started may have run
	stop    string
	reason  string                    // of a cancellation that is not on record
	cancel  *protocol.CancelRequested // on record with the end itself; nil for none
	failure *Failure
	cleanup string // what went wrong in the cancel hook of a provider
}

// closing lists the facts that close turn t, in the order of docs/protocol/rind-v2.md sections 5.1 and 7.4.
func (s *Session) closing(t *OpenTurn, e *ending) []protocol.Body {
	var out []protocol.Body
	text := s.openText(t)
	if !e.dead {
		out = append(out, text...)
	}
	out = append(out, closeActions(t, e)...)
	for _, c := range t.Calls {
		if !c.Done {
			out = append(out, s.closeCall(t, c, e))
		}
	}
	if e.dead {
		out = append(out, text...)
	}
	var dropped []string
	for _, in := range t.Inputs {
		reason := protocol.ReturnedFailed
		switch e.kind {
		case endCancelled:
			reason = protocol.ReturnedCancelled
		case endCompleted:
			reason = protocol.ReturnedTurnEnded
		}
		dropped = append(dropped, in.ID)
		out = append(out, &protocol.QueuedInputReturned{InputID: in.ID, Input: in.Text, Mode: in.Mode, Reason: reason})
	}
	return append(out, s.terminal(t, e, dropped))
}

// openText is the message that was being said, kept as interrupted.
func (s *Session) openText(t *OpenTurn) []protocol.Body {
	var out []protocol.Body
	if len(t.Thinking) > 0 {
		r := &protocol.ReasoningCompleted{Content: string(t.Thinking)}
		r.ContentChars = protocol.CharLen(r.Content)
		r.More.MessageID = t.MessageID
		if r.More.MessageID == "" {
			r.More.MessageID = s.all.cfg.IDs.Hex32()
		}
		out = append(out, r)
	}
	if len(t.Text) > 0 {
		m := &protocol.AssistantMessageCompleted{Content: string(t.Text), MessageID: t.MessageID, Interrupted: true}
		m.ContentChars = protocol.CharLen(m.Content)
		m.More.Parallel = t.Parallel
		out = append(out, m)
	}
	return out
}

func closeActions(t *OpenTurn, e *ending) []protocol.Body {
	by := protocol.ByCancel
	if e.kind != endCancelled {
		by = protocol.ByRuntime
	}
	var out []protocol.Body
	for _, a := range t.Actions {
		if a.Question {
			q := &protocol.UserQuestionAnswered{ToolCallID: a.CallID}
			q.More.ActionID, q.More.By = a.ID, by
			out = append(out, q)
			continue
		}
		out = append(out, &protocol.ApprovalResolved{
			ActionID: a.ID, ToolCallID: a.CallID, Outcome: protocol.OutcomeCancelled, By: by,
		})
	}
	return out
}

// closeCall is the result of a call that has none.
func (s *Session) closeCall(t *OpenTurn, c *CallState, e *ending) protocol.Body {
	r := &protocol.ToolResult{ToolCallID: c.ID, ToolName: c.Name, ErrorSource: "tool"}
	text := ""
	switch {
	case c.Started && t.asks(c.ID):
		r.Status, r.ErrorType, text = protocol.ToolFailed, protocol.ErrQuestionEmpty, "User provided an empty answer."
	case e.dead && c.Started, e.kind == endFailed && c.Started:
		r.Status, r.ErrorType, text = protocol.ToolUnknown, protocol.ErrToolOutcomeUnknown, UnknownOutcome
	case e.dead, e.kind == endFailed:
		r.Status, r.ErrorType, text = protocol.ToolCancelled, protocol.ErrToolNotRun, "This call was never started."
	default:
		r.Status, r.ErrorType, text = protocol.ToolCancelled, protocol.ErrCancelled, "The turn was cancelled before this call finished."
	}
	now := s.all.now()
	if c.Started && !c.StartedAt.IsZero() && now.After(c.StartedAt) && !e.dead {
		r.DurationMS = now.Sub(c.StartedAt).Milliseconds()
	}
	r.Result = failureText(c.Name, r.ErrorType, text, now)
	return r
}

// terminal is the last fact of a turn.
func (s *Session) terminal(t *OpenTurn, e *ending, dropped []string) protocol.Body {
	end := protocol.End{StopReason: e.stop, Dropped: dropped}
	switch e.kind {
	case endCompleted:
		if end.StopReason == "" {
			end.StopReason = stopEndTurn
		}
		return &protocol.TurnCompleted{DurationMS: max(0, s.all.now().Sub(t.StartedAt).Milliseconds()), BackgroundWait: s.next.backgroundWait(), More: end}
	case endCancelled:
		end.CleanupError = e.cleanup
		if end.StopReason == "" {
			end.StopReason = stopCancelled
		}
		reason := e.reason
		if c := cmp.Or(t.Cancel, e.cancel); c != nil {
			reason = c.More.Reason
			if c.More.Given {
				end.Reason = reason
			}
		}
		return &protocol.TurnCancelled{Reason: reason, More: end}
	case endInterrupted:
		end.StopReason = stopRuntime
		return &protocol.TurnFailed{
			Error: interruptedText, ErrorType: protocol.FailTurn, Status: "failed", ErrorSource: "runtime", More: end,
		}
	default:
		f := e.failure
		end.StopReason = f.stop()
		return &protocol.TurnFailed{Error: f.Message, ErrorType: f.Type, Status: f.Status, ErrorSource: f.Source, More: end}
	}
}

// write appends what closes a turn.
func (s *Session) write(e *ending, then func(Outcome, error)) {
	s.withLease(func(err error) {
		open := s.next.turn(e.turn)
		switch {
		case err != nil:
			then(Outcome{}, err)
			return
		case open == nil: // another process closed it meanwhile
			s.outcomeOf(e.turn, then)
			return
		}
		bodies := s.closing(open, e)
		answer := open.LastMessage
		if len(open.Text) > 0 {
			answer = string(open.Text)
		}
		s.append(append(s.goalEnd(open, e), lines(e.turn, bodies...)...), func(seq Seq, err error) {
			o := outcome(e.turn, bodies[len(bodies)-1])
			o.Seq, o.Answer = seq, answer
			then(o, err)
		})
	})
}

// retryLater keeps trying to store the end of a turn, every second, while nothing else does. At the end of the process it is left to the next one.
func (s *Session) retryLater(e *ending) {
	if s.stopping {
		s.all.unstored.Store(true)
		return
	}
	s.unsettled = e
	s.after(time.Second, func() {
		switch {
		case s.unsettled != e || s.stopping:
			return
		case !s.lane.free(): // what is being started closes it first, if it can
			s.retryLater(e)
			return
		}
		s.settleOpen(nil, func(err error) {
			if err != nil && s.unsettled == e && !s.stopping {
				s.retryLater(e)
				return
			}
			s.nextPrompt()
		})
	})
}

// settleOpen closes the serial turn a dead process, or a failed append, left open; cancel is set when that is what closes it.
// The lease is held.
func (s *Session) settleOpen(cancel *ending, then func(error)) {
	open := s.next.Serial
	if open == nil || s.lane.run != nil {
		s.unsettled = nil
		then(nil)
		return
	}
	e := s.unsettled
	switch {
	case e != nil && e.turn == open.ID:
	case cancel != nil:
		e = cancel
	case open.Cancel != nil: // a cancel was on record when its process died: nothing continues it
		e = &ending{turn: open.ID, kind: endCancelled, dead: true}
	default:
		e = &ending{turn: open.ID, kind: endInterrupted, dead: true}
	}
	s.write(e, func(o Outcome, err error) {
		if err != nil {
			then(err)
			return
		}
		s.unsettled = nil
		s.tellWatchers(o)
		then(nil)
	})
}
