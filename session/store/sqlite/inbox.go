package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/rind-dev/rind/session"
)

// Post implements session.Inbox.
func (s *Store) Post(ctx context.Context, id session.SessionID, body json.RawMessage) (int64, error) {
	return run(ctx, s, func(w *writer) (letter int64, err error) {
		n, err := w.session(id)
		if err != nil {
			return 0, err
		}
		return letter, w.row("INSERT INTO letters (session, body) VALUES (?, ?) RETURNING id", n, []byte(body)).Scan(&letter)
	})
}

// Open implements session.Inbox.
func (s *Store) Open(ctx context.Context, id session.SessionID) ([]session.Letter, error) {
	out, err := read(ctx, s, func(c *connection) ([]session.Letter, error) {
		return all(c, func(st *sqlite.Stmt) (session.Letter, error) {
			l := session.Letter{Session: id}
			err := scan(st, &l.ID, (*[]byte)(&l.Body))
			return l, err
		}, "SELECT l.id, l.body FROM letters l JOIN sessions s ON s.id = l.session WHERE s.session = +? AND l.outcome IS NULL ORDER BY l.id", string(id))
	})
	return out, s.fault("read inbox", err)
}

// Settle implements session.Inbox.
func (s *Store) Settle(ctx context.Context, letter int64, outcome json.RawMessage) error {
	_, err := run(ctx, s, func(w *writer) (nothing, error) {
		var id int64
		err := w.row("UPDATE letters SET outcome = ? WHERE id = ? AND outcome IS NULL RETURNING id", []byte(outcome), letter).Scan(&id)
		if errors.Is(err, errNoRow) {
			err = fmt.Errorf("open letter %d: %w", letter, session.ErrNotFound)
		}
		return nothing{}, err
	})
	return err
}

// Outcome implements session.Inbox.
func (s *Store) Outcome(ctx context.Context, letter int64) (json.RawMessage, error) {
	var out []byte
	err := s.one(ctx, fmt.Sprintf("letter %d", letter), "SELECT outcome FROM letters WHERE id = ?", []any{letter}, &out)
	return out, err
}

// Withdraw implements session.Inbox.
func (s *Store) Withdraw(ctx context.Context, letter int64) (bool, error) {
	return run(ctx, s, func(w *writer) (bool, error) {
		var id int64
		err := w.row("DELETE FROM letters WHERE id = ? AND outcome IS NULL RETURNING id", letter).Scan(&id)
		if errors.Is(err, errNoRow) {
			return false, nil
		}
		return err == nil, err
	})
}
