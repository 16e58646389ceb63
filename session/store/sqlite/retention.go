package sqlite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Delete implements session.Log. The session is gone with its first transaction; its entries go in steps, so that a long one holds nobody
// up. The bytes leave the file too: secure_delete, then the free pages and the WAL are given back. What a process that died in the middle
// left is removed by the next that writes.
func (s *Store) Delete(ctx context.Context, id session.SessionID) error {
	_, err := run(ctx, s, func(w *writer) (nothing, error) {
		n, err := w.session(id)
		if err != nil {
			return nothing{}, err
		}
		var owner string
		if err := w.row("SELECT owner FROM sessions WHERE id = ?", n).Scan(&owner); err != nil {
			return nothing{}, err
		}
		if owner != s.inst.id && s.inst.alive(owner) {
			return nothing{}, fmt.Errorf("session %s: %w", id, session.ErrBusy)
		}
		for _, q := range []string{
			"DELETE FROM keys WHERE session = ?", "DELETE FROM letters WHERE session = ?", "DELETE FROM samples WHERE session = ?",
			// The row stays until the last entry is gone: an id of ours is the key of its entries, and must not be given again before.
			`UPDATE sessions SET session = '` + goneMark + `' || id, conversation = '` + goneMark + `' || id, workspace = '', parent = '', owner = '', epoch = epoch + 1,
				title = '', preview = '', user_prompt = 0, metadata = NULL, fold = NULL, fold_seq = 0 WHERE id = ?`,
		} {
			if err := w.exec(q, n); err != nil {
				return nothing{}, err
			}
		}
		if err := w.exec("INSERT INTO meta (name, value) VALUES ('" + deletions + "', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"); err != nil {
			return nothing{}, err
		}
		w.forget()
		return nothing{}, nil
	})
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // it is gone: there is no way back
	for more := true; more; {
		if more, err = run(ctx, s, (*writer).erase); err != nil {
			s.opt.Log.Warn("rest of a deleted session: left to the next process", "path", s.path, "err", err)
			return nil
		}
	}
	if err := s.shrink(ctx); err != nil {
		s.opt.Log.Warn("bytes of a deleted session: given back with the next deletion", "path", s.path, "err", err)
	}
	return nil
}

// deletions is the name of the number of sessions that were deleted: it tells those who watch that one was. Versions that do not count are
// noticed later, by who asks for the session.
const deletions = "deletions"

// goneMark begins the names of sessions that are deleted and have entries still. No other id begins so.
const goneMark = "!"

// notGone is the condition that a row of sessions is not of a deleted one.
const notGone = "session NOT GLOB '" + goneMark + "*'"

// erase removes a step of what deleted sessions left, and reports whether there is more.
func (w *writer) erase() (more bool, err error) {
	id, err := w.gone()
	if err != nil || id == 0 {
		return false, err
	}
	if err := w.keepCursors(); err != nil {
		return false, err
	}
	for _, q := range []string{
		"DELETE FROM entries WHERE id IN (SELECT id FROM entries WHERE session = ? ORDER BY seq LIMIT +?)",
		"DELETE FROM turns WHERE id IN (SELECT id FROM turns WHERE session = ? LIMIT +?)",
	} {
		if n, err := w.change(q, id, pruneStep); err != nil || n == pruneStep {
			return true, err
		}
	}
	w.forget()
	return true, w.exec("DELETE FROM sessions WHERE id = ?", id)
}

// gone finds a deleted session that has entries still; 0 for none.
func (w *writer) gone() (id int64, err error) {
	err = w.row("SELECT coalesce(min(id), 0) FROM sessions WHERE session >= '" + goneMark + "' AND session < '\"'").Scan(&id)
	return id, err
}

// sweep removes a step of what processes that died left of deleted sessions, and reports whether there is more.
func (w *writer) sweep() (more bool) {
	if w.connection == nil {
		return false
	}
	if id, err := w.gone(); err != nil || id == 0 {
		return false
	}
	w.commit([]*op{{
		ctx: context.Background(), entries: 1,
		do:   func(w *writer) (err error) { more, err = w.erase(); return err },
		done: func(err error) { more = more && err == nil },
	}})
	return more
}

// Sizes of the steps of Prune: rows looked at in one read, rows deleted in one transaction, so that it holds nobody up.
const (
	pruneLook = 50_000
	pruneStep = 500
)

// Prune implements session.Log. What may go is found by reading, window after window of global ids, and deleted by id: an entry that may
// go may go for good, and an id is never given again.
func (s *Store) Prune(ctx context.Context, before time.Time) (int, error) {
	removed := 0
	var end int64
	if err := s.one(ctx, "store", "SELECT coalesce(max(id), 0) FROM entries", nil, &end); err != nil {
		return 0, err
	}
	for from := int64(0); from <= end; from += pruneLook {
		ids, err := s.prunable(ctx, from, from+pruneLook, before)
		if err != nil {
			return removed, err
		}
		for len(ids) > 0 {
			n := min(len(ids), pruneStep)
			if err := s.drop(ctx, ids[:n]); err != nil {
				return removed, err
			}
			removed += n
			ids = ids[n:]
		}
	}
	if err := s.dropLetters(ctx); err != nil {
		return removed, err
	}
	if removed == 0 {
		return 0, nil
	}
	return removed, s.shrink(ctx)
}

// prunable lists the entries with from <= id < to that the catalogue lets go. An entry of no turn goes by its own time, and an
// older one of its kind is one with a newer in the same session.
func (s *Store) prunable(ctx context.Context, from, to int64, before time.Time) ([]int64, error) {
	ids, err := read(ctx, s, func(c *connection) ([]int64, error) {
		return all(c, func(st *sqlite.Stmt) (id int64, err error) {
			err = scan(st, &id)
			return id, err
		}, `SELECT e.id FROM entries e LEFT JOIN turns t ON t.id = e.turn
			WHERE e.id >= ?1 AND e.id < ?2 AND CASE WHEN e.turn IS NULL THEN e.time ELSE t.ended END < ?3
			AND (e.kind IN `+kinds(protocol.PruneAll)+` OR e.kind IN `+kinds(protocol.PruneEditor)+` AND coalesce(t.portable, 0) = 0
			OR e.kind IN `+kinds(protocol.PruneOlder)+` AND EXISTS (SELECT 1 FROM entries n WHERE n.session = e.session AND n.seq > e.seq AND n.kind = e.kind))`,
			from, to, before.UnixMicro())
	})
	return ids, s.fault("prune", err)
}

func (s *Store) drop(ctx context.Context, ids []int64) error {
	_, err := run(ctx, s, func(w *writer) (nothing, error) {
		if err := w.keepCursors(); err != nil {
			return nothing{}, err
		}
		for _, id := range ids {
			if err := w.exec("DELETE FROM entries WHERE id = ?", id); err != nil {
				return nothing{}, err
			}
		}
		return nothing{}, nil
	})
	return err
}

// dropLetters removes letters that were settled before the last time this was done: whoever sent one has read its outcome by now.
func (s *Store) dropLetters(ctx context.Context) error {
	_, err := run(ctx, s, func(w *writer) (nothing, error) {
		if err := w.exec("DELETE FROM letters WHERE outcome IS NOT NULL AND id <= (SELECT value FROM meta WHERE name = 'letters_seen')"); err != nil {
			return nothing{}, err
		}
		return nothing{}, w.exec("INSERT INTO meta (name, value) SELECT 'letters_seen', coalesce(max(id), 0) FROM letters WHERE true ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)")
	})
	return err
}

// kinds lists the kinds of a retention rule for SQL.
func kinds(p protocol.Prune) string {
	var out []string
	for k := range protocol.Catalogue {
		if kind := protocol.Kind(k); kind.Known() && kind.Info().Prune == p {
			out = append(out, fmt.Sprint(k))
		}
	}
	return "(" + strings.Join(out, ", ") + ")"
}
