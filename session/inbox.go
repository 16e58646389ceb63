package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// letter is what one process asks of the owner of a session.
type letter struct {
	Op      string `json:"op"` // cancel, approval, question
	Turn    TurnID `json:"turn,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Given   bool   `json:"given,omitempty"`
	Surface string `json:"surface,omitempty"`
	Action  string `json:"action,omitempty"` // action id, or tool call id of a question
	Option  string `json:"option,omitempty"`
	Answer  string `json:"answer,omitempty"`
}

// reply is what the owner did.
type reply struct {
	Kind    protocol.ErrorKind `json:"kind,omitempty"`
	Message string             `json:"message,omitempty"`
}

// A letter not taken up in this time is withdrawn.
const (
	letterWait = 5 * time.Second
	letterPoll = 25 * time.Millisecond
)

// sendLetter asks the owner of the session, and answers with its outcome; SessionBusy when it does not take the letter up.
func (s *Session) sendLetter(l letter, done func(error)) {
	store := s.all.cfg.Store
	go func() {
		err := func() error {
			ctx, cancel := context.WithTimeout(context.Background(), letterWait)
			defer cancel()
			id, err := store.Post(ctx, s.ID, protocol.MustMarshal(l))
			if err != nil {
				return s.all.storeError(err)
			}
			tick := time.NewTicker(letterPoll)
			defer tick.Stop()
			for {
				out, err := store.Outcome(ctx, id)
				if err == nil && out != nil {
					return readReply(out)
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
					if gone, err := store.Withdraw(context.Background(), id); err == nil && !gone {
						if out, err := store.Outcome(context.Background(), id); err == nil && out != nil {
							return readReply(out)
						}
					}
					return protocol.Errorf(protocol.SessionBusy, "Session is in use by another process.")
				}
			}
		}()
		if !s.post(func() { done(err) }) {
			done(err)
		}
	}()
}

func readReply(out json.RawMessage) error {
	var r reply
	if err := json.Unmarshal(out, &r); err != nil {
		return err
	}
	if r.Kind != "" {
		return &protocol.Error{Kind: r.Kind, Message: r.Message}
	}
	return nil
}

// readInbox does what other processes ask of this one, the owner.
func (s *Session) readInbox() {
	open, err := s.all.cfg.Store.Open(context.Background(), s.ID)
	if err != nil {
		s.log().Warn("read inbox", "session", s.ID, "err", err)
		return
	}
	for _, in := range open {
		if s.reading[in.ID] {
			continue
		}
		s.reading[in.ID] = true
		settle := func(err error) {
			r := reply{}
			if err != nil {
				r.Kind, r.Message = protocol.KindOf(err), messageOf(err)
			}
			if err := s.all.cfg.Store.Settle(context.Background(), in.ID, protocol.MustMarshal(r)); err != nil {
				s.log().Warn("settle letter", "session", s.ID, "err", err)
			}
			delete(s.reading, in.ID)
		}
		var l letter
		if err := json.Unmarshal(in.Body, &l); err != nil {
			settle(protocol.Errorf(protocol.InvalidRequest, "letter: %v", err))
			continue
		}
		switch l.Op {
		case "cancel":
			s.cancel(CancelRequest{Turn: l.Turn, Reason: l.Reason, Given: l.Given, Surface: l.Surface}, settle)
		case "approval":
			s.resolveApproval(l.Action, l.Option, settle)
		case "question":
			s.AnswerQuestion(l.Action, l.Answer, settle)
		default:
			settle(protocol.Errorf(protocol.UnsupportedOperation, "unknown letter %q", l.Op))
		}
	}
}
