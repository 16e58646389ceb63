package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/rind-dev/rind/session"
)

// Create implements session.Log.
func (s *Store) Create(ctx context.Context, m session.Meta) error {
	return s.run(ctx, func(ctx context.Context, w *writer) error {
		if _, err := w.session(ctx, m.ID); err == nil {
			return fmt.Errorf("session %s: %w", m.ID, session.ErrExists)
		} else if !errors.Is(err, session.ErrNotFound) {
			return err
		}
		w.touched++
		now := m.Activity
		if now.IsZero() {
			now = s.opt.Now()
		}
		return w.exec(ctx, `INSERT INTO sessions (session, conversation, workspace, parent, created, touched, activity, title, preview, messages, tool_calls, user_prompt, metadata, fold, fold_seq)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, string(m.ID), m.ConversationID, m.Workspace, string(m.Parent), m.Created.UnixMicro(), w.touched,
			now.UnixMicro(), m.Title, m.Preview, m.Messages, m.ToolCalls, m.UserPrompt, blob(m.Metadata), blob(m.Fold), int64(m.FoldSeq))
	})
}

// Acquire implements session.Log.
func (s *Store) Acquire(ctx context.Context, id session.SessionID) (session.Lease, error) {
	if err := s.inst.hold(); err != nil {
		return session.Lease{}, s.fault("instance lock", err)
	}
	l := session.Lease{Session: id}
	err := s.run(ctx, func(ctx context.Context, w *writer) error {
		n, err := w.session(ctx, id)
		if err != nil {
			return err
		}
		var owner string
		var head int64
		if err := w.row(ctx, "SELECT owner, epoch, head FROM sessions WHERE id = ?", n).Scan(&owner, &l.Epoch, &head); err != nil {
			return err
		}
		l.Head = session.Seq(head)
		if owner == s.inst.id {
			return nil
		}
		if s.inst.alive(owner) {
			return fmt.Errorf("session %s: %w", id, session.ErrBusy)
		}
		l.Epoch++
		return w.exec(ctx, "UPDATE sessions SET owner = ?, epoch = ? WHERE id = ?", s.inst.id, l.Epoch, n)
	})
	if err != nil {
		return session.Lease{}, err
	}
	return l, nil
}

// Release implements session.Log.
func (s *Store) Release(ctx context.Context, l session.Lease) error {
	err := s.run(ctx, func(ctx context.Context, w *writer) error {
		return w.exec(ctx, "UPDATE sessions SET owner = '' WHERE session = ? AND owner = ? AND epoch = ?", string(l.Session), s.inst.id, l.Epoch)
	})
	if errors.Is(err, session.ErrClosed) {
		return nil // the lock file goes with the store, and the lease with it
	}
	return err
}

// Delete implements session.Log. The bytes leave the file too: secure_delete, then the free pages and the WAL are given back.
func (s *Store) Delete(ctx context.Context, id session.SessionID) error {
	err := s.run(ctx, func(ctx context.Context, w *writer) error {
		n, err := w.session(ctx, id)
		if err != nil {
			return err
		}
		var owner string
		if err := w.row(ctx, "SELECT owner FROM sessions WHERE id = ?", n).Scan(&owner); err != nil {
			return err
		}
		if owner != s.inst.id && s.inst.alive(owner) {
			return fmt.Errorf("session %s: %w", id, session.ErrBusy)
		}
		if err := w.exec(ctx, "INSERT INTO meta (name, value) VALUES ('last_id', ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)", w.nextID); err != nil {
			return err
		}
		for _, q := range []string{
			"DELETE FROM entries WHERE session = ?", "DELETE FROM turns WHERE session = ?", "DELETE FROM keys WHERE session = ?",
			"DELETE FROM letters WHERE session = ?", "DELETE FROM samples WHERE session = ?", "DELETE FROM sessions WHERE id = ?",
		} {
			if err := w.exec(ctx, q, n); err != nil {
				return err
			}
		}
		delete(w.ids, id)
		clear(w.turns)
		return nil
	})
	if err != nil {
		return err
	}
	return s.alone(ctx, shrink)
}

// alone runs f on the write connection outside a transaction.
func (s *Store) alone(ctx context.Context, f func(context.Context, *writer) error) error {
	ch := make(chan error, 1)
	s.submit(&op{solo: f, done: func(err error) { ch <- err }})
	select {
	case err := <-ch:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// shrink gives free pages back and empties the WAL, so that deleted bytes are in no file of ours. Readers of an old part of the WAL
// are waited for a moment; what they hold goes with the next checkpoint.
func shrink(ctx context.Context, w *writer) error {
	_, err := retry(ctx, func() (struct{}, error) {
		rows, err := w.conn.QueryContext(ctx, "PRAGMA incremental_vacuum")
		if err != nil {
			return struct{}{}, err
		}
		for rows.Next() { // one row a page; the work is done while they are read
		}
		return struct{}{}, errors.Join(rows.Err(), rows.Close())
	})
	if err != nil {
		return err
	}
	for range 50 {
		var busy, log, done int
		if err := w.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &done); err != nil && !isBusy(err) {
			return err
		} else if err == nil && busy == 0 {
			return nil
		}
		jitter()
	}
	return nil
}
