package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

func (x *exchange) startExecution() error {
	req, err := portable.ReadStart(x.text)
	if err != nil {
		return err
	}
	meta, err := x.conversation(req.ConversationID)
	if err != nil {
		return err
	}
	p := x.s.provider(req.ProviderID)
	if p == nil {
		return portable.ProviderNotFound(req.ProviderID)
	}
	if err := p.Manifest.Preflight(req.Capabilities); err != nil {
		return err
	}
	ask := x.s.request(p, req.Input, req.Config, req.Capabilities)
	ask.Key = req.Key
	if req.Key != "" {
		if ask.Digest, err = req.Digest(); err != nil {
			return err
		}
	}
	s, err := x.open(meta.ID)
	if err != nil {
		if missing(err) {
			return portable.ConversationNotFound(req.ConversationID)
		}
		return err
	}
	defer s.Close()
	got, err := s.Execute(context.WithoutCancel(x.r.Context()), ask)
	if err != nil {
		if missing(err) {
			return portable.ConversationNotFound(req.ConversationID)
		}
		return err
	}
	at := located{id: portable.ExecutionPrefix + string(got.Turn), turn: got.Turn, session: meta}
	until := func(*session.Entry, protocol.Body) bool { return true } // a new one is shown as it was created
	if got.Replayed {
		until = nil
	}
	rec, err := x.record(at, until)
	if err != nil {
		return err
	}
	return x.answer(http.StatusAccepted, rec.Execution())
}

// open opens the session of a conversation.
func (x *exchange) open(id session.SessionID) (*session.Session, error) {
	return x.s.cfg.Sessions.Open(x.r.Context(), id)
}

// record reads an execution from its log, up to the entry until says, or as it is now.
func (x *exchange) record(at located, until func(*session.Entry, protocol.Body) bool) (*portable.Record, error) {
	rec, err := x.fold(at, until)
	if err != nil || until != nil || rec.Ended() {
		return rec, err
	}
	s, err := x.open(at.session.ID) // a cancel on record has no event
	if err != nil {
		if missing(err) {
			return nil, portable.ExecutionNotFound(at.id)
		}
		return nil, err
	}
	defer s.Close()
	var open session.OpenExecution
	var is bool
	if err := s.InspectNow(x.r.Context(), func(v *session.View) { open, is = v.Execution(at.turn) }); err != nil {
		return nil, err
	}
	switch {
	case !is: // it has just ended
		return x.fold(at, nil)
	case !open.Cancelling.IsZero():
		rec.Cancelling(open.Cancelling)
	}
	return rec, nil
}

func (x *exchange) fold(at located, until func(*session.Entry, protocol.Body) bool) (*portable.Record, error) {
	rec := portable.NewRecord(at.id, at.session.ConversationID, at.session.Workspace)
	for after := int64(0); ; {
		page, err := x.s.cfg.Sessions.Store().ReadTurn(x.r.Context(), at.turn, after, 1024)
		if err != nil {
			if missing(err) {
				return nil, portable.ExecutionNotFound(at.id)
			}
			return nil, stored(err)
		}
		for i := range page {
			e := &page[i]
			after = e.PortableFirst + int64(e.PortableCount) - 1
			if !portable.Matters(e.Kind) {
				continue
			}
			b, err := protocol.Decode(e)
			if err != nil {
				return nil, stored(errors.Join(session.ErrCorrupt, err))
			}
			rec.Apply(e, b)
			if until != nil && until(e, b) {
				return rec, nil
			}
		}
		if len(page) < 1024 {
			return rec, nil
		}
	}
}

func (x *exchange) readExecution() error {
	at, err := x.locate(x.args[0])
	if err != nil {
		return err
	}
	rec, err := x.record(at, nil)
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, rec.Execution())
}

func (x *exchange) listArtifacts() error {
	at, err := x.locate(x.args[0])
	if err != nil {
		return err
	}
	rec, err := x.fold(at, nil)
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, map[string]any{"artifacts": rec.Artifacts()})
}

func (x *exchange) cancelExecution() error {
	if x.args[0] == "" {
		return portable.Invalid("Path parameter suffix is invalid")
	}
	reason, err := portable.ReadCancel(x.text)
	if err != nil {
		return err
	}
	at, err := x.locate(x.args[0])
	if err != nil {
		return err
	}
	rec, err := x.fold(at, nil)
	if err != nil {
		return err
	}
	if rec.Ended() {
		return x.answer(http.StatusOK, rec.Execution())
	}
	s, err := x.open(at.session.ID)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.CancelExecution(context.WithoutCancel(x.r.Context()), at.turn, reason); err != nil { // who leaves undoes nothing
		return err
	}
	if rec, err = x.fold(at, nil); err != nil {
		return err
	}
	return x.answer(http.StatusOK, rec.Execution())
}

func (x *exchange) respondAction() error {
	if x.text == nil {
		return portable.ErrNoBody()
	}
	at, err := x.locate(x.args[0])
	if err != nil {
		return err
	}
	shown := x.args[1]
	action, ok := portable.ActionID(shown)
	if !ok {
		return portable.ActionNotFound(shown)
	}
	s, err := x.open(at.session.ID)
	if err != nil {
		return err
	}
	defer s.Close()
	err = s.RespondAction(context.WithoutCancel(x.r.Context()), at.turn, action, func() (session.ActionReply, error) {
		r, err := portable.ReadResponse(x.text)
		if err != nil {
			return session.ActionReply{}, err
		}
		return session.ActionReply{Words: r.Words(), Option: func(options []protocol.Option) (string, bool) { return pick(&r, options) }}, nil
	})
	switch {
	case err == nil:
	case errors.Is(err, session.ErrReplyUnfit):
		return portable.ErrBadAnswer()
	case protocol.KindOf(err) == protocol.ActionNotFound:
		return portable.ActionNotFound(shown)
	case protocol.KindOf(err) == protocol.ActionAlreadyResolved:
		return portable.ActionAlreadyResolved(shown)
	default:
		return err
	}
	rec, err := x.record(at, func(_ *session.Entry, b protocol.Body) bool { // as it was when the answer was accepted
		switch b := b.(type) {
		case *protocol.ApprovalResolved:
			return b.ActionID == action
		case *protocol.UserQuestionAnswered:
			return b.More.ActionID == action
		}
		return false
	})
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, rec.Execution())
}

// pick finds the option an answer to an approval means (section 12): the one it names, else once, yes or no. An unknown one, or one that
// disagrees with approved, fits not.
func pick(r *portable.ActionResponse, options []protocol.Option) (string, bool) {
	approved := r.Approved != nil && *r.Approved
	if named := r.Choice(); named != "" {
		for _, o := range options {
			if o.ID == named {
				yes := o.Kind == "allow_once" || o.Kind == "allow_always"
				return o.ID, r.Approved == nil || approved == yes
			}
		}
		return "", false
	}
	want := "reject_once"
	if approved {
		want = "allow_once"
	}
	for _, o := range options {
		if o.Kind == want {
			return o.ID, true
		}
	}
	return "", false
}
