package executions

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

// Run is an execution that exists: where it is, which never changes. Safe for concurrent use.
type Run struct {
	ID      string
	Turn    protocol.TurnID
	Session *Place

	c        *Commands
	provider string
	first    session.Seq // its first entry
	accepted time.Time   // by this process; zero where it did not, or that is long ago
	asked    atomic.Bool // whether it is still there
}

// Place is what never changes of the session of an execution.
type Place struct {
	ID             session.SessionID
	ConversationID string
	Workspace      string // absolute
}

func placeOf(m *session.Meta) *Place { return &Place{m.ID, m.ConversationID, m.Workspace} }

// Answer waits for what was asked for and tells the execution as that left it. It is to be called once.
type Answer func(ctx context.Context) (portable.Execution, error)

// Find finds an execution by its id.
func (c *Commands) Find(ctx context.Context, id string) (*Run, error) {
	turn, ok := portable.TurnID(id)
	if !ok {
		return nil, portable.ExecutionNotFound(id)
	}
	if known := c.found.get(turn); known != nil {
		return known, nil
	}
	store := c.cfg.Sessions.Store()
	sid, err := store.TurnSession(ctx, turn)
	var meta session.Meta
	if err == nil {
		meta, err = store.Session(ctx, sid)
	}
	var first []session.Entry
	if err == nil {
		first, err = store.ReadTurn(ctx, turn, 0, 1, nil)
	}
	switch {
	case missing(err), err == nil && (len(first) == 0 || first[0].Kind != protocol.KindTurnAccepted): // a turn that only compacts is none
		return nil, portable.ExecutionNotFound(id)
	case err != nil:
		return nil, Stored(err)
	}
	b, err := protocol.Decode(&first[0])
	if err != nil {
		return nil, Stored(errors.Join(session.ErrCorrupt, err))
	}
	run := &Run{ID: id, Turn: turn, Session: placeOf(&meta), c: c, first: first[0].Seq, provider: b.(*protocol.TurnAccepted).More.Provider}
	c.remember(run)
	return run, nil
}

// remember keeps where an execution is, in a process that will be asked for it again.
func (c *Commands) remember(r *Run) {
	if c.cfg.Keep {
		c.found.add(r)
	}
}

// Start asks for an execution: the checks of section 6 in their order, then its place in the conversation. The answer waits until it is on disk;
// whoever stops waiting undoes nothing.
func (c *Commands) Start(ctx context.Context, req *portable.StartExecution) (Answer, error) {
	place := c.kept.conversation(req.ConversationID)
	if place == nil {
		meta, err := c.Conversation(ctx, req.ConversationID)
		if err != nil {
			return nil, err
		}
		place = placeOf(&meta)
	}
	p := c.provider(req.ProviderID)
	if p == nil {
		return nil, portable.ProviderNotFound(req.ProviderID)
	}
	now := p.manifest()
	if err := now.Preflight(req.Capabilities); err != nil {
		return nil, err
	}
	ask := c.request(p, req.Input, req.Config, req.Capabilities)
	ask.Key = req.Key
	if req.Key != "" {
		var err error
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
	s, err := c.open(ctx, place)
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
		id := portable.ExecutionPrefix + string(got.Turn)
		if got.Replayed {
			run, err := c.Find(ctx, id)
			if err != nil {
				return portable.Execution{}, err
			}
			return run.Read(ctx)
		}
		c.remember(&Run{ID: id, Turn: got.Turn, Session: place, c: c, provider: ask.Provider, first: got.Seq, accepted: time.Now()})
		acc := &protocol.TurnAccepted{} // a new one is shown as it was created
		acc.More.Provider, acc.More.Input, acc.More.Config, acc.More.Capabilities = ask.Provider, ask.Input, ask.Config, ask.Capabilities
		rec := portable.NewRecord(id, place.ConversationID, place.Workspace)
		rec.Apply(&session.Entry{Time: got.Time, Turn: got.Turn}, acc)
		return rec.Execution(), nil
	}, nil
}

// justAccepted is how long an execution is taken to be there because it was accepted here.
const justAccepted = time.Second

// There returns ExecutionNotFound where another process has deleted the conversation, of which a session that is open here may not have heard
// yet. It reads the store, but for the first who asks about an execution that this process has just accepted: starting one and following it at
// once is what is to be fast, and nobody can have been told of a deletion that came before.
func (r *Run) There(ctx context.Context) error {
	if !r.asked.Swap(true) && time.Since(r.accepted) < justAccepted {
		return nil
	}
	_, err := r.c.cfg.Sessions.Store().TurnSession(ctx, r.Turn)
	if missing(err) {
		return portable.ExecutionNotFound(r.ID)
	}
	return Stored(err)
}

// Read tells the execution as it is now.
func (r *Run) Read(ctx context.Context) (portable.Execution, error) { return told(r.fold(ctx, nil)) }

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
		return session.ActionReply{Words: reply.Words(), Option: func(options []protocol.Option, shown bool) (string, bool) {
			return pick(&reply, options, shown)
		}}, nil
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
// disagrees with approved, fits not. Where no options were shown a value names none.
func pick(r *portable.ActionResponse, options []protocol.Option, shown bool) (string, bool) {
	approved := r.Approved != nil && *r.Approved
	if named := r.Choice(); named != "" && shown {
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
	fallback := ""
	for _, o := range options {
		if o.Kind == want {
			return o.ID, true
		}
		if o.Kind == "reject_always" {
			fallback = o.ID
		}
	}
	return fallback, !approved // a hosted agent's options may lack one: without any that rejects, its request is closed as cancelled
}

// Open opens the session of the execution. The caller holds a reference (Close).
func (r *Run) Open(ctx context.Context) (*session.Session, error) {
	s, err := r.c.open(ctx, r.Session)
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
	err := r.facts(ctx, func(e *session.Entry, b protocol.Body) bool {
		if e.Kind == protocol.KindCancelRequested { // it has no event, but a state
			rec.Cancelling(e.Time)
		} else if e.PortableCount > 0 {
			rec.Apply(e, b)
		}
		return stop != nil && stop(e, b)
	})
	return rec, err
}

// facts hands over the facts of the execution that its objects are made of, in order, until see has enough or the execution has ended. Between
// them may lie a million pieces of text, which are not read.
func (r *Run) facts(ctx context.Context, see func(*session.Entry, protocol.Body) bool) error {
	after := r.first - 1
	for n := 8; ; n = min(4*n, 512) { // most executions are short
		page, err := r.c.cfg.Sessions.Store().Read(ctx, r.Session.ID, after, n, protocol.ViewFacts)
		if missing(err) {
			return portable.ExecutionNotFound(r.ID)
		}
		if err != nil {
			return Stored(err)
		}
		for i := range page {
			e := &page[i]
			after = e.Seq
			if e.Turn != r.Turn || !portable.Matters(e.Kind) && e.Kind != protocol.KindCancelRequested {
				continue
			}
			b, err := protocol.Decode(e)
			if err != nil {
				return Stored(errors.Join(session.ErrCorrupt, err))
			}
			if see(e, b) || e.Kind.Info().Terminal {
				return nil
			}
		}
		if len(page) < n {
			return nil
		}
	}
}

// ChangedFile finds the file behind an artifact that is a change of a file: its absolute path and its media type; "" for any other artifact.
// What a provider says of its own artifacts names no file.
func (r *Run) ChangedFile(ctx context.Context, artifact string) (path, media string, err error) {
	rec := portable.NewRecord(r.ID, r.Session.ConversationID, r.Session.Workspace)
	err = r.facts(ctx, func(e *session.Entry, b protocol.Body) bool {
		rec.Apply(e, b)
		if change, ok := b.(*protocol.FileChange); ok && change.More.First {
			all := rec.Artifacts()
			if made := all[len(all)-1]; made.ID == artifact {
				path, media = change.FilePath, made.MediaType
			}
		}
		return path != ""
	})
	return path, media, err
}

// Provider names the provider that answers the execution.
func (r *Run) Provider() string { return r.provider }

func (r *Run) entries(ctx context.Context, after int64, n int, into *session.Page) ([]session.Entry, error) {
	page, err := r.c.cfg.Sessions.Store().ReadTurn(ctx, r.Turn, after, n, into)
	if missing(err) {
		return nil, portable.ExecutionNotFound(r.ID)
	}
	return page, Stored(err)
}
