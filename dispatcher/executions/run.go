package executions

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

// Run is an execution that exists. Not safe for concurrent use.
type Run struct {
	ID      string
	Turn    protocol.TurnID
	Session session.Meta

	all  *session.Sessions
	told *portable.Context // of its events, once they were asked for
}

// Answer waits for what was asked for and tells the execution as that left it. It is to be called once.
type Answer func(ctx context.Context) (portable.Execution, error)

// Find finds an execution by its id.
func (c *Commands) Find(ctx context.Context, id string) (*Run, error) {
	run := &Run{ID: id, all: c.cfg.Sessions}
	turn, ok := portable.TurnID(id)
	if !ok {
		return nil, portable.ExecutionNotFound(id)
	}
	run.Turn = turn
	store := c.cfg.Sessions.Store()
	sid, err := store.TurnSession(ctx, turn)
	if err == nil {
		run.Session, err = store.Session(ctx, sid)
	}
	var first []session.Entry
	if err == nil {
		first, err = store.ReadTurn(ctx, turn, 0, 1)
	}
	switch {
	case missing(err), err == nil && (len(first) == 0 || first[0].Kind != protocol.KindTurnAccepted): // a turn that only compacts is none
		return nil, portable.ExecutionNotFound(id)
	case err != nil:
		return nil, stored(err)
	}
	return run, nil
}

// Start asks for an execution: the checks of section 6 in their order, then its place in the conversation. The answer waits until it is on disk;
// whoever stops waiting undoes nothing.
func (c *Commands) Start(ctx context.Context, req *portable.StartExecution) (Answer, error) {
	meta, err := c.Conversation(ctx, req.ConversationID)
	if err != nil {
		return nil, err
	}
	p := c.provider(req.ProviderID)
	if p == nil {
		return nil, portable.ProviderNotFound(req.ProviderID)
	}
	if err := p.Manifest.Preflight(req.Capabilities); err != nil {
		return nil, err
	}
	ask := c.request(p, req.Input, req.Config, req.Capabilities)
	ask.Key = req.Key
	if req.Key != "" {
		if ask.Digest, err = req.Digest(); err != nil {
			return nil, err
		}
	}
	gone := func(err error) error {
		if missing(err) {
			return portable.ConversationNotFound(req.ConversationID)
		}
		return err
	}
	s, err := c.cfg.Sessions.Open(ctx, meta.ID)
	if err != nil {
		return nil, gone(err)
	}
	wait := s.SubmitExecution(ask)
	return func(ctx context.Context) (portable.Execution, error) {
		defer s.Close()
		got, err := wait(context.WithoutCancel(ctx))
		if err != nil {
			return portable.Execution{}, gone(err)
		}
		run := &Run{ID: portable.ExecutionPrefix + string(got.Turn), Turn: got.Turn, Session: meta, all: c.cfg.Sessions}
		if got.Replayed {
			return run.Read(ctx)
		}
		return run.until(ctx, func(*session.Entry, protocol.Body) bool { return true }) // a new one is shown as it was created
	}, nil
}

// Read tells the execution as it is now.
func (r *Run) Read(ctx context.Context) (portable.Execution, error) {
	rec, err := r.fold(ctx, nil)
	if err != nil || rec.Ended() {
		return told(rec, err)
	}
	s, err := r.Open(ctx) // a cancel on record has no event
	if err != nil {
		return portable.Execution{}, err
	}
	defer s.Close()
	var open session.OpenExecution
	var is bool
	if err := s.InspectNow(ctx, func(v *session.View) { open, is = v.Execution(r.Turn) }); err != nil {
		return portable.Execution{}, err
	}
	switch {
	case !is: // it has just ended
		return told(r.fold(ctx, nil))
	case !open.Cancelling.IsZero():
		rec.Cancelling(open.Cancelling)
	}
	return rec.Execution(), nil
}

// Artifacts lists what the execution made, in order.
func (r *Run) Artifacts(ctx context.Context) ([]portable.Artifact, error) {
	rec, err := r.fold(ctx, nil)
	if err != nil {
		return nil, err
	}
	return rec.Artifacts(), nil
}

// Cancel ends the execution; the answer waits for its end. One that has ended stays as it is.
func (r *Run) Cancel(ctx context.Context, reason *string) (Answer, error) {
	s, err := r.Open(ctx)
	if err != nil {
		return nil, err
	}
	wait := s.SubmitCancel(r.Turn, reason)
	return func(ctx context.Context) (portable.Execution, error) {
		defer s.Close()
		if err := wait(context.WithoutCancel(ctx)); err != nil { // who leaves undoes nothing
			return portable.Execution{}, err
		}
		return told(r.fold(ctx, nil))
	}, nil
}

// Respond answers an action of the execution with the JSON text of an answer (section 8).
func (r *Run) Respond(ctx context.Context, shown string, text json.RawMessage) (Answer, error) {
	action, ok := portable.ActionID(shown)
	if !ok {
		return nil, portable.ActionNotFound(shown)
	}
	s, err := r.Open(ctx)
	if err != nil {
		return nil, err
	}
	wait := s.SubmitAnswer(r.Turn, action, func() (session.ActionReply, error) {
		reply, err := portable.ReadResponse(text)
		if err != nil {
			return session.ActionReply{}, err
		}
		return session.ActionReply{Words: reply.Words(), Option: func(options []protocol.Option) (string, bool) { return pick(&reply, options) }}, nil
	})
	return func(ctx context.Context) (portable.Execution, error) {
		defer s.Close()
		err := wait(context.WithoutCancel(ctx))
		switch {
		case err == nil:
		case errors.Is(err, session.ErrReplyUnfit):
			return portable.Execution{}, portable.ErrBadAnswer()
		case protocol.KindOf(err) == protocol.ActionNotFound:
			return portable.Execution{}, portable.ActionNotFound(shown)
		case protocol.KindOf(err) == protocol.ActionAlreadyResolved:
			return portable.Execution{}, portable.ActionAlreadyResolved(shown)
		default:
			return portable.Execution{}, err
		}
		return r.until(ctx, func(_ *session.Entry, b protocol.Body) bool { // as it was when the answer was accepted
			switch b := b.(type) {
			case *protocol.ApprovalResolved:
				return b.ActionID == action
			case *protocol.UserQuestionAnswered:
				return b.More.ActionID == action
			}
			return false
		})
	}, nil
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

// Open opens the session of the execution. The caller holds a reference (Close).
func (r *Run) Open(ctx context.Context) (*session.Session, error) {
	s, err := r.all.Open(ctx, r.Session.ID)
	if missing(err) {
		return nil, portable.ExecutionNotFound(r.ID)
	}
	return s, err
}

func told(rec *portable.Record, err error) (portable.Execution, error) {
	if err != nil {
		return portable.Execution{}, err
	}
	return rec.Execution(), nil
}

// until tells the execution as it was at the entry that stop is true for.
func (r *Run) until(ctx context.Context, stop func(*session.Entry, protocol.Body) bool) (portable.Execution, error) {
	return told(r.fold(ctx, stop))
}

// fold reads the execution from its log, up to the entry that stop is true for; nil reads all of it.
func (r *Run) fold(ctx context.Context, stop func(*session.Entry, protocol.Body) bool) (*portable.Record, error) {
	rec := portable.NewRecord(r.ID, r.Session.ConversationID, r.Session.Workspace)
	for after := int64(0); ; {
		page, err := r.entries(ctx, after, 1024)
		if err != nil {
			return nil, err
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
			if stop != nil && stop(e, b) {
				return rec, nil
			}
		}
		if len(page) < 1024 {
			return rec, nil
		}
	}
}

func (r *Run) entries(ctx context.Context, after int64, n int) ([]session.Entry, error) {
	page, err := r.all.Store().ReadTurn(ctx, r.Turn, after, n)
	if missing(err) {
		return nil, portable.ExecutionNotFound(r.ID)
	}
	return page, stored(err)
}
