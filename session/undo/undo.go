// Package undo puts back files that tools wrote, a turn at a time, and shows what a turn changed (docs/protocol/rind-v2.md section 8). What
// a turn did is read from its log, the contents from before are session.Images, files are touched through session/roots only.
//
// It promises: a file is put back whole or not at all, and only if it still is what the turn left, so that nobody's later work is lost;
// what is overwritten or removed is kept first; the report names every file of the turn. Nothing is written to the log. A call holds one
// file's content and a page of the log in memory. It owns no goroutine.
package undo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

// Config is what undo works on.
type Config struct {
	Store  session.Store
	Images session.Images
	Roots  func(workspace string) []string // the folders tools may touch; nil: the workspace alone
	Keep   bool                            // keep what undo overwrites or removes
	Secret func(path string) bool          // whether a file holds credentials, by its absolute path; nil: none does
	// Lease: take the session's lease for the time of the work, so that no turn starts meanwhile. For a process that does not have the
	// session open itself.
	Lease bool
}

// Undo puts files back.
type Undo struct{ cfg Config }

var _ session.Undo = (*Undo)(nil)

// New makes an Undo.
func New(cfg Config) *Undo {
	if cfg.Roots == nil {
		cfg.Roots = func(workspace string) []string { return []string{workspace} }
	}
	if cfg.Secret == nil {
		cfg.Secret = func(string) bool { return false }
	}
	return &Undo{cfg}
}

// Undo implements session.Undo. A turn is named by its id or by at least four leading characters of it that no other turn has. Beside the
// errors of session.Undo: SessionNotFound, InvalidRequest for a name that is too short or names several turns, RequestFailed for a
// workspace that cannot be opened, PersistenceError for a store that cannot be read.
func (u *Undo) Undo(ctx context.Context, id session.SessionID, turn session.TurnID) (session.Undone, error) {
	return u.run(ctx, id, turn, true)
}

// Plan tells what Undo would do now, and does nothing.
func (u *Undo) Plan(ctx context.Context, id session.SessionID, turn session.TurnID) (session.Undone, error) {
	return u.run(ctx, id, turn, false)
}

func (u *Undo) run(ctx context.Context, id session.SessionID, name session.TurnID, act bool) (session.Undone, error) {
	meta, release, err := u.quiet(ctx, id, act)
	if err != nil {
		return session.Undone{}, err
	}
	defer release()
	w, err := u.open(id, meta.Workspace)
	if err != nil {
		return session.Undone{}, err
	}
	defer w.close()
	t, err := u.pick(ctx, w, name)
	if err != nil || t == nil {
		return session.Undone{}, err
	}
	done := session.Undone{Turn: t.id, Files: []session.FileUndo{}}
	w.allow(t)
	if act && w.keep {
		w.secure(ctx, t)
	}
	restored, failed := false, false
	for _, c := range t.list() {
		fate, err := w.restore(ctx, c, t.blind, act)
		if err != nil {
			return done, err
		}
		restored = restored || fate.Status == session.FileRestored
		failed = failed || fate.failed
		done.Files = append(done.Files, fate.FileUndo)
	}
	if act && restored && !failed {
		w.note(ctx, t.id)
	}
	return done, nil
}

// pick finds the turn to undo, nil for none. A turn that is open, here or where a process died, is finished or closed first.
func (u *Undo) pick(ctx context.Context, w *workplace, name session.TurnID) (*turn, error) {
	is, err := names(name)
	if err != nil {
		return nil, err
	}
	var found *turn
	err = u.turns(ctx, w.session, func(t *turn) (bool, error) {
		if t.open {
			switch parallel, err := u.parallel(ctx, t.id); {
			case err != nil:
				return false, err
			case !parallel:
				return false, protocol.Errorf(protocol.SessionBusy, "A turn of this session is not finished: finish or cancel it, then undo.")
			}
		}
		if name != "" {
			return u.match(is, name, t, &found)
		}
		if len(t.files) == 0 || w.noted(ctx, t.id) {
			return true, nil
		}
		w.allow(t)
		for _, c := range t.list() {
			before, err := w.asBefore(ctx, c)
			if err != nil {
				return false, err
			}
			if !before {
				found = t
				return false, nil
			}
		}
		return true, nil
	})
	if err == nil && name != "" && found == nil {
		err = protocol.Errorf(protocol.NotFound, "Turn not found: %s", protocol.Prefix(string(name), 64))
	}
	return found, err
}

// parallel reports whether a turn is one of a provider that has no tools, which may stay open for long.
func (u *Undo) parallel(ctx context.Context, id session.TurnID) (bool, error) {
	first, err := u.cfg.Store.ReadTurn(ctx, id, 0, 1, nil)
	if err != nil {
		return false, storeError(err)
	}
	if len(first) == 0 || first[0].Kind != protocol.KindTurnAccepted {
		return false, nil
	}
	b, err := protocol.Decode(&first[0])
	if err != nil {
		return false, storeError(fmt.Errorf("%w: %w", session.ErrCorrupt, err))
	}
	return b.(*protocol.TurnAccepted).More.Parallel, nil
}

// match takes t as the turn that was named, and says whether to look further: only a beginning may name a second one.
func (u *Undo) match(is func(session.TurnID) bool, name session.TurnID, t *turn, found **turn) (bool, error) {
	switch {
	case !is(t.id):
		return true, nil
	case *found != nil:
		return false, protocol.Errorf(protocol.InvalidRequest, "Several turns begin with %s; give more of the id.", name)
	}
	*found = t
	return !is(""), nil
}

// names gives the test for turns that a name means. It answers "" with true when the name is a whole id.
func names(name session.TurnID) (func(session.TurnID) bool, error) {
	text := strings.TrimPrefix(string(name), "exec_")
	switch {
	case name == "":
		return nil, nil
	case len(text) < 4:
		return nil, protocol.Errorf(protocol.InvalidRequest, "A turn is named by its id, or by at least the first 4 characters of it.")
	}
	whole := len(text) == 32
	return func(id session.TurnID) bool {
		if id == "" {
			return whole
		}
		return strings.HasPrefix(string(id), text)
	}, nil
}

// patience is how long an owner of the session may take to let go of it: this process's own does so right after a turn.
const patience = 300 * time.Millisecond

// quiet makes sure that nobody works in the session. release is called when the work is done.
func (u *Undo) quiet(ctx context.Context, id session.SessionID, act bool) (meta session.Meta, release func(), err error) {
	release = func() {}
	for deadline := time.Now().Add(patience); ; {
		if meta, err = u.meta(ctx, id); err != nil {
			return meta, release, err
		}
		if !act || !meta.OwnerAlive || time.Now().After(deadline) {
			break
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return meta, release, context.Cause(ctx)
		}
	}
	if !act || !meta.OwnerAlive && !u.cfg.Lease {
		return meta, release, nil
	}
	// Who the owner is only the store knows: it gives an instance that has the lease the same one again. Then it is not for us to release.
	lease, err := u.cfg.Store.Acquire(ctx, id)
	if err != nil {
		return meta, release, storeError(err)
	}
	if !meta.OwnerAlive {
		release = func() { _ = u.cfg.Store.Release(context.WithoutCancel(ctx), lease) }
	}
	return meta, release, nil
}

func (u *Undo) meta(ctx context.Context, id session.SessionID) (session.Meta, error) {
	meta, err := u.cfg.Store.Session(ctx, id)
	if errors.Is(err, session.ErrNotFound) {
		return meta, protocol.Errorf(protocol.SessionNotFound, "Session not found: %s", id)
	}
	return meta, storeError(err)
}

func storeError(err error) error {
	switch {
	case err == nil, errors.As(err, new(*protocol.Error)):
		return err
	case errors.Is(err, session.ErrBusy):
		return &protocol.Error{Kind: protocol.SessionBusy, Message: "Session is in use by another process.", Cause: err}
	case errors.Is(err, session.ErrNotFound):
		return &protocol.Error{Kind: protocol.SessionNotFound, Message: "Session not found.", Cause: err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &protocol.Error{Kind: protocol.PersistenceError, Message: err.Error(), Cause: err}
}

// open opens the folders of a session's workspace.
func (u *Undo) open(id session.SessionID, workspace string) (*workplace, error) {
	r, err := roots.Open(u.cfg.Roots(workspace)...)
	if e, ok := errors.AsType[*roots.PathError](err); ok {
		return nil, &protocol.Error{Kind: protocol.RequestFailed, Message: e.Text, Cause: err}
	}
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	return &workplace{session: id, base: workspace, roots: r, images: u.cfg.Images, keep: u.cfg.Keep, secret: u.cfg.Secret}, nil
}
