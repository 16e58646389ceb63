package session

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
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

const (
	letterWait   = 5 * time.Second // a letter not taken up in this time is withdrawn
	letterPoll   = 25 * time.Millisecond
	withdrawWait = time.Second
)

// textBusy refuses what only the process that works in a session can do.
const textBusy = "Session is in use by another process."

func errBusy() error {
	return protocol.Errorf(protocol.SessionBusy, textBusy)
}

// sendLetter asks the owner of the session, and answers with its outcome; SessionBusy when it does not take the letter up.
func (s *Session) sendLetter(l letter, done func(error)) {
	fetch(s, func(ctx context.Context, store Store) (struct{}, error) { return struct{}{}, post(ctx, store, s.ID, l) }, func(_ struct{}, err error) { done(err) })
}

// post sends a letter and waits for what became of it, from when the letter is there on: one that is given up while the store is slow could
// arrive all the same, and be acted on after its sender was told that nobody will.
func post(ctx context.Context, inbox Inbox, to SessionID, l letter) error {
	id, err := inbox.Post(ctx, to, protocol.MustMarshal(l))
	if err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, letterWait)
	defer cancel()
	tick := time.NewTicker(letterPoll)
	defer tick.Stop()
	for {
		if out, err := inbox.Outcome(wait, id); err == nil && out != nil {
			return readReply(out)
		}
		select {
		case <-tick.C:
		case <-wait.Done():
			return withdraw(context.WithoutCancel(ctx), inbox, id)
		}
	}
}

// withdraw takes back a letter that was not taken up; of one that was, just now, it returns the outcome.
func withdraw(ctx context.Context, inbox Inbox, id int64) error {
	ctx, cancel := context.WithTimeout(ctx, withdrawWait)
	defer cancel()
	if gone, err := inbox.Withdraw(ctx, id); err == nil && !gone {
		if out, err := inbox.Outcome(ctx, id); err == nil && out != nil {
			return readReply(out)
		}
	}
	return errBusy()
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

// inbox is what the owner of a session knows of the letters to it. It belongs to the session's goroutine.
type inbox struct {
	reading bool           // the list of open letters is being read
	rung    bool           // there may be more since
	taken   map[int64]bool // letters being worked off; true: settled, and to be forgotten when a list that was read later is without them
}

// readInbox does what other processes ask of this one, the owner.
func (s *Session) readInbox() {
	if s.inbox.reading {
		s.inbox.rung = true
		return
	}
	s.inbox.reading, s.inbox.rung = true, false
	fetch(s, func(ctx context.Context, store Store) ([]Letter, error) { return store.Open(ctx, s.ID) }, func(open []Letter, err error) {
		s.inbox.reading = false
		switch {
		case err != nil:
			s.log().Warn("read inbox", "session", s.ID, "err", err)
		case s.lease.has(): // else they are to whoever has it
			s.takeLetters(open)
		}
		if s.inbox.rung && s.lease.has() {
			s.readInbox()
		}
	})
}

func (s *Session) takeLetters(open []Letter) {
	in := &s.inbox
	maps.DeleteFunc(in.taken, func(id int64, settled bool) bool {
		return settled && !slices.ContainsFunc(open, func(l Letter) bool { return l.ID == id })
	})
	for _, l := range open {
		if _, taken := in.taken[l.ID]; taken {
			continue
		}
		if in.taken == nil {
			in.taken = map[int64]bool{}
		}
		in.taken[l.ID] = false
		s.open(l)
	}
}

// open does what a letter asks, and settles it.
func (s *Session) open(l Letter) {
	settle := func(err error) {
		r := reply{}
		if err != nil {
			r.Kind, r.Message = protocol.KindOf(err), messageOf(err)
		}
		fetch(s, func(ctx context.Context, store Store) (struct{}, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), letterWait) // it is done: also at the end of the runtime
			defer cancel()
			return struct{}{}, store.Settle(ctx, l.ID, protocol.MustMarshal(r))
		}, func(_ struct{}, err error) {
			if err != nil {
				s.log().Warn("settle letter", "session", s.ID, "err", err)
			}
			s.inbox.taken[l.ID] = true
		})
	}
	var what letter
	if err := json.Unmarshal(l.Body, &what); err != nil {
		settle(protocol.Errorf(protocol.InvalidRequest, "letter: %v", err))
		return
	}
	switch what.Op {
	case "cancel":
		s.cancel(CancelRequest{Turn: what.Turn, Reason: what.Reason, Given: what.Given, Surface: what.Surface}, settle)
	case "approval":
		s.resolveApproval(what.Action, what.Option, settle)
	case "question":
		s.answerQuestion(what.Action, what.Answer, settle)
	default:
		settle(protocol.Errorf(protocol.UnsupportedOperation, "unknown letter %q", what.Op))
	}
}
