package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// watchEvery is how often other processes' commits are looked for.
const watchEvery = 100 * time.Millisecond

// Watch implements session.Log. Its goroutine ends with ctx or the store.
func (s *Store) Watch(ctx context.Context) (<-chan session.SessionID, error) {
	out := make(chan session.SessionID)
	go func() {
		defer close(out)
		v := &watcher{s: s}
		defer v.close()
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			ids, err := v.changed(ctx)
			if errors.Is(err, session.ErrClosed) {
				return
			}
			for _, id := range ids {
				select {
				case out <- id:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out, nil
}

// watcher finds sessions that changed since it last looked. It never makes the file: nobody else can have written before it is there.
type watcher struct {
	s       *Store
	db      *sql.DB
	conn    *sql.Conn
	version int64
	touched int64
	letter  int64
	started bool
}

func (v *watcher) close() {
	if v.conn != nil {
		_ = v.conn.Close()
		_ = v.db.Close()
	}
	v.conn, v.db = nil, nil
}

func (v *watcher) changed(ctx context.Context) ([]session.SessionID, error) {
	v.s.mu.Lock()
	closed, opened := v.s.closed, v.s.opened
	v.s.mu.Unlock()
	if closed {
		return nil, session.ErrClosed
	}
	if v.conn == nil {
		if info, err := os.Stat(v.s.path); !opened && (err != nil || info.Size() == 0) {
			return nil, nil
		}
		if _, err := v.s.db(); err != nil {
			return nil, err
		}
		db, err := sql.Open("sqlite", v.s.dsn(false))
		if err != nil {
			return nil, err
		}
		conn, err := db.Conn(ctx)
		if err != nil {
			_ = db.Close()
			return nil, err
		}
		v.db, v.conn = db, conn
	}
	var version int64
	if err := v.conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version); err != nil {
		return nil, err
	}
	if v.started && version == v.version {
		return nil, nil
	}
	ids, err := v.news(ctx)
	if err == nil {
		v.version = version
	}
	return ids, err
}

// news lists the sessions touched, and those with a letter, since the last look. The first look lists only open letters.
func (v *watcher) news(ctx context.Context) ([]session.SessionID, error) {
	rows, err := v.conn.QueryContext(ctx, `SELECT session, touched, 0 FROM sessions WHERE touched > ?1
		UNION ALL SELECT s.session, 0, l.id FROM letters l JOIN sessions s ON s.id = l.session WHERE l.id > ?2 OR l.outcome IS NULL`, v.touched, v.letter)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	seen := map[string]bool{}
	var ids []session.SessionID
	touched, letter := v.touched, v.letter
	for rows.Next() {
		var id string
		var t, l int64
		if err := rows.Scan(&id, &t, &l); err != nil {
			return nil, err
		}
		touched, letter = max(touched, t), max(letter, l)
		if (v.started || l > 0) && !seen[id] {
			seen[id] = true
			ids = append(ids, session.SessionID(id))
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	v.touched, v.letter, v.started = touched, letter, true
	return ids, nil
}

// Post implements session.Inbox.
func (s *Store) Post(ctx context.Context, id session.SessionID, body json.RawMessage) (int64, error) {
	var letter int64
	err := s.run(ctx, func(ctx context.Context, w *writer) error {
		n, err := w.session(ctx, id)
		if err != nil {
			return err
		}
		return w.row(ctx, "INSERT INTO letters (session, body) VALUES (?, ?) RETURNING id", n, []byte(body)).Scan(&letter)
	})
	return letter, err
}

// Open implements session.Inbox.
func (s *Store) Open(ctx context.Context, id session.SessionID) ([]session.Letter, error) {
	db, err := s.db()
	if err != nil {
		return nil, err
	}
	out, err := retry(ctx, func() ([]session.Letter, error) {
		rows, err := db.QueryContext(ctx, "SELECT l.id, l.body FROM letters l JOIN sessions s ON s.id = l.session WHERE s.session = ? AND l.outcome IS NULL ORDER BY l.id", string(id))
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var out []session.Letter
		for rows.Next() {
			l := session.Letter{Session: id}
			var body []byte
			if err := rows.Scan(&l.ID, &body); err != nil {
				return nil, err
			}
			l.Body = body
			out = append(out, l)
		}
		return out, rows.Err()
	})
	return out, s.fault("read inbox", err)
}

// Settle implements session.Inbox.
func (s *Store) Settle(ctx context.Context, letter int64, outcome json.RawMessage) error {
	return s.run(ctx, func(ctx context.Context, w *writer) error {
		var id int64
		err := w.row(ctx, "UPDATE letters SET outcome = ? WHERE id = ? AND outcome IS NULL RETURNING id", []byte(outcome), letter).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("letter %d: %w", letter, session.ErrNotFound)
		}
		return err
	})
}

// Outcome implements session.Inbox.
func (s *Store) Outcome(ctx context.Context, letter int64) (json.RawMessage, error) {
	var out []byte
	err := s.one(ctx, fmt.Sprintf("letter %d", letter), "SELECT outcome FROM letters WHERE id = ?", []any{letter}, &out)
	return out, err
}

// Withdraw implements session.Inbox.
func (s *Store) Withdraw(ctx context.Context, letter int64) (bool, error) {
	gone := false
	err := s.run(ctx, func(ctx context.Context, w *writer) error {
		var id int64
		err := w.row(ctx, "DELETE FROM letters WHERE id = ? AND outcome IS NULL RETURNING id", letter).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		gone = err == nil
		return err
	})
	return gone, err
}

// Prune implements session.Log, some thousand rows a transaction so that it holds nobody up.
func (s *Store) Prune(ctx context.Context, before time.Time) (int, error) {
	var always, editor, older []protocol.Kind
	for k := range protocol.Catalogue {
		switch kind := protocol.Kind(k); protocol.Catalogue[k].Prune {
		case protocol.PruneAll:
			always = append(always, kind)
		case protocol.PruneEditor:
			editor = append(editor, kind)
		case protocol.PruneOlder:
			older = append(older, kind)
		case protocol.Keep:
		}
	}
	ended := fmt.Sprintf("CASE WHEN e.turn IS NULL THEN e.time ELSE t.ended END < %d", before.UnixMicro())
	from := "SELECT e.id FROM entries e LEFT JOIN turns t ON t.id = e.turn WHERE "
	queries := []string{
		from + "e.kind IN " + list(always) + " AND " + ended,
		from + "e.kind IN " + list(editor) + " AND coalesce(t.portable, 0) = 0 AND " + ended,
		from + "e.kind IN " + list(older) + " AND " + ended + " AND e.seq < (SELECT max(n.seq) FROM entries n WHERE n.session = e.session AND n.kind = e.kind)",
	}
	total := 0
	for _, q := range queries {
		for {
			var n int64
			err := s.run(ctx, func(ctx context.Context, w *writer) error {
				if err := w.exec(ctx, "INSERT INTO meta (name, value) VALUES ('last_id', ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)", w.nextID); err != nil {
					return err
				}
				res, err := w.conn.ExecContext(ctx, "DELETE FROM entries WHERE id IN ("+q+" LIMIT 4000)")
				if err == nil {
					n, err = res.RowsAffected()
				}
				return err
			})
			if err != nil {
				return total, err
			}
			total += int(n)
			if n < 4000 {
				break
			}
		}
	}
	if total == 0 {
		return 0, nil
	}
	return total, s.alone(ctx, shrink)
}

func list(kinds []protocol.Kind) string {
	out := "("
	for i, k := range kinds {
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprint(int(k))
	}
	return out + ")"
}

// Health implements session.Log.
func (s *Store) Health(ctx context.Context) (session.Health, error) {
	h := session.Health{Path: s.path}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(s.path + suffix); err == nil {
			h.Bytes += info.Size()
		}
	}
	if err := s.one(ctx, "store", "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM entries), (SELECT value FROM meta WHERE name = 'written_by'), (SELECT value FROM meta WHERE name = 'readable_from')",
		nil, &h.Sessions, &h.Entries, &h.WrittenBy, &h.ReadableFrom); err != nil {
		return h, err
	}
	return h, s.one(ctx, "store", "SELECT group_concat(integrity_check, '; ') FROM (SELECT integrity_check FROM pragma_integrity_check LIMIT 5)", nil, &h.Integrity)
}
