package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/rind-dev/rind/session"
)

// Create implements session.Log.
func (s *Store) Create(ctx context.Context, m session.Meta) error {
	_, err := run(ctx, s, func(w *writer) (nothing, error) {
		if _, err := w.session(m.ID); err == nil {
			return nothing{}, fmt.Errorf("session %s: %w", m.ID, session.ErrExists)
		} else if !errors.Is(err, session.ErrNotFound) {
			return nothing{}, err
		}
		var taken int
		if err := w.row("SELECT count(*) FROM sessions WHERE conversation = ?", m.ConversationID).Scan(&taken); err != nil {
			return nothing{}, err
		}
		if taken > 0 {
			return nothing{}, fmt.Errorf("conversation %s: %w", m.ConversationID, session.ErrExists)
		}
		w.touched++
		activity := m.Activity
		if activity.IsZero() {
			activity = s.opt.Now()
		}
		return nothing{}, w.exec(`INSERT INTO sessions (session, conversation, workspace, parent, created, touched, activity, title, preview, messages, tool_calls, user_prompt, metadata, fold, fold_seq)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, string(m.ID), m.ConversationID, m.Workspace, string(m.Parent), m.Created.UnixMicro(), w.touched,
			activity.UnixMicro(), m.Title, m.Preview, m.Messages, m.ToolCalls, m.UserPrompt, blob(m.Metadata), blob(m.Fold), int64(m.FoldSeq))
	})
	return err
}

// Acquire implements session.Log.
func (s *Store) Acquire(ctx context.Context, id session.SessionID) (session.Lease, error) {
	if !s.opt.ReadOnly {
		if err := s.inst.hold(); err != nil { // before others can see us as the owner
			return session.Lease{}, s.fault("instance lock", err)
		}
	}
	return run(ctx, s, func(w *writer) (session.Lease, error) {
		l := session.Lease{Session: id}
		n, err := w.session(id)
		if err != nil {
			return l, err
		}
		var owner string
		var head int64
		if err := w.row("SELECT owner, epoch, head FROM sessions WHERE id = ?", n).Scan(&owner, &l.Epoch, &head); err != nil {
			return l, err
		}
		l.Head = session.Seq(head)
		if owner == s.inst.id {
			return l, nil
		}
		if s.inst.alive(owner) {
			return l, fmt.Errorf("session %s: %w", id, session.ErrBusy)
		}
		l.Epoch++
		return l, w.exec("UPDATE sessions SET owner = ?, epoch = ? WHERE id = ?", s.inst.id, l.Epoch, n)
	})
}

// Release implements session.Log.
func (s *Store) Release(ctx context.Context, l session.Lease) error {
	_, err := run(ctx, s, func(w *writer) (nothing, error) {
		return nothing{}, w.exec("UPDATE sessions SET owner = '' WHERE session = ? AND owner = ? AND epoch = ?", string(l.Session), s.inst.id, l.Epoch)
	})
	if errors.Is(err, session.ErrClosed) {
		return nil // the lock file goes with the store, and the lease with it
	}
	return err
}
