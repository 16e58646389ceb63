package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// ActionReply answers an action of an execution.
type ActionReply struct {
	// Option picks an option of an approval; false: the answer does not fit. shown says that clients were shown the options.
	Option func(options []protocol.Option, shown bool) (id string, ok bool)
	Words  string // answers a question; "" declines
}

// ErrReplyUnfit: the answer does not fit the action, which stays open.
var ErrReplyUnfit = errors.New("answer does not fit the action")

func (s *Session) respond(turn TurnID, action string, reply func() (ActionReply, error), done func(error)) {
	sure := func() { s.refreshed(func() { s.answerAction(turn, action, reply, done, done) }) }
	if open := s.next.turn(turn); open == nil || open.action(action) == nil { // another process may have asked just now
		sure()
		return
	}
	s.answerAction(turn, action, reply, done, func(error) { sure() }) // or it has taken an answer: that comes before what is wrong with this one
}

// answerAction answers an action as it is known here. unfit is told what is wrong with an answer to one that is open.
func (s *Session) answerAction(turn TurnID, action string, reply func() (ActionReply, error), done, unfit func(error)) {
	missing := protocol.Errorf(protocol.ActionNotFound, "Action not found: %s", action)
	var a *Action
	open := s.next.turn(turn)
	if open != nil {
		a = open.action(action)
	}
	switch {
	case a == nil || s.answering[action]:
		s.unanswerable(turn, action, missing, done)
		return
	case open.Cancel != nil: // its execution is being cancelled
		done(missing)
		return
	}
	r, err := reply()
	if err != nil {
		unfit(err)
		return
	}
	settled := func(err error) {
		switch protocol.KindOf(err) {
		case protocol.QuestionNotFound, protocol.ActionNotFound: // it is gone since: whether with an answer, the log knows
			s.unanswerable(turn, action, missing, done)
		default:
			done(err)
		}
	}
	if a.Question {
		s.answerQuestion(a.CallID, r.Words, settled)
		return
	}
	option, ok := r.Option(a.Approval.Options, !open.Parallel)
	if !ok {
		unfit(ErrReplyUnfit)
		return
	}
	s.resolveApproval(action, option, settled)
}

// ActionAsk is what a provider asks a person.
type ActionAsk struct {
	Input       bool // a question; else an approval
	Title       string
	Description string
	Payload     json.RawMessage // an object, of an approval; nil is {}
}

// Pending is an action that waits for its answer.
type Pending struct {
	x  *Execution
	ch chan answer
}

// Answer is what a person said.
type Answer struct {
	Approved bool
	Text     string // of a question; "" when it was declined
}

// Ask puts an action to whoever watches and returns once it is in the log.
func (x *Execution) Ask(a ActionAsk) (*Pending, error) {
	p := &Pending{x: x, ch: make(chan answer, 1)}
	err := x.do(func(open *OpenTurn, done func(error)) {
		switch {
		case a.Title == "" || len(a.Payload) > 0 && (!json.Valid(a.Payload) || a.Payload[0] != '{'):
			x.violate("Provider requested an invalid action", done)
			return
		case open.Cancel != nil:
			done(errCancelled)
			return
		case len(open.Actions) > 0:
			done(errors.New("INVALID_STATE"))
			return
		}
		s := x.run.s
		id := s.all.cfg.IDs.Hex32()
		x.run.answers[id] = p.ch
		var b protocol.Body
		if a.Input {
			q := &protocol.UserQuestionRequested{ToolCallID: id, Question: a.Title}
			q.More.ActionID = id
			b = q
		} else {
			ask := &protocol.ApprovalRequested{ActionID: id, ToolCallID: id, Title: a.Title, Arguments: a.Payload, Options: yesOrNo()}
			if len(ask.Arguments) == 0 {
				ask.Arguments = json.RawMessage("{}")
			}
			ask.More.Description, ask.More.QuestionEventID = a.Description, s.all.cfg.IDs.Hex32()
			b = ask
		}
		s.append(lines(x.Turn, b), func(_ Seq, err error) {
			if err == nil && x.run.answers[id] != nil && x.run.stage == stageRunning { // it waits for a person: another one may run
				x.run.leave()
			}
			done(err)
		})
	})
	return p, err
}

func yesOrNo() []protocol.Option {
	return []protocol.Option{{ID: "allow_once", Label: "Allow once", Kind: "allow_once"}, {ID: "reject_once", Label: "Reject once", Kind: "reject_once"}}
}

// Wait returns the answer, or the cause of ctx.
func (p *Pending) Wait(ctx context.Context) (Answer, error) {
	select {
	case a := <-p.ch:
		return Answer{Approved: a.allowed, Text: a.text}, nil
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
}

// besideEntry is one entry of an execution that runs beside the serial lane.
type besideEntry struct {
	seq  Seq
	time time.Time
	body protocol.Body
}

// beside keeps what executions of parallel providers say until they end: it joins the messages in one piece.
type beside[T any] map[TurnID][]T

// take is told each entry, of which kept is what is kept: it returns what joins the messages before the entry, and whether the entry does now.
func (k beside[T]) take(e *Entry, b protocol.Body, kept T) (before []T, now bool) {
	if acc, ok := b.(*protocol.TurnAccepted); ok && acc.More.Parallel {
		k[e.Turn] = []T{}
		return nil, false
	}
	held, ok := k[e.Turn]
	if !ok || e.Turn == "" {
		return nil, true
	}
	if !e.Kind.Info().Terminal {
		k[e.Turn] = append(held, kept)
		return nil, false
	}
	delete(k, e.Turn)
	return held, true
}
