package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// stmt prepares a reading statement once; database/sql repeats that for each connection it comes to run on. Close of the connections ends them.
func (s *Store) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	db, err := s.db(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	st := s.stmts[query]
	s.mu.Unlock()
	if st != nil {
		return st, nil
	}
	if st, err = retry(ctx, func() (*sql.Stmt, error) { return db.PrepareContext(context.WithoutCancel(ctx), query) }); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.stmts[query]; other != nil { // somebody was first; both run
		defer st.Close()
		return other, nil
	}
	if s.stmts == nil {
		s.stmts = map[string]*sql.Stmt{}
	}
	s.stmts[query] = st
	return st, nil
}

// bounded is the context of a read that is short: without a way to interrupt it, which costs more than the read.
func bounded(ctx context.Context) (context.Context, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return context.WithoutCancel(ctx), nil
}

// entries runs a query over turnColumn and entryColumns. All rows are read, and the transaction is over, before it returns.
func (s *Store) entries(ctx context.Context, what string, limit int, query string, args ...any) ([]session.Entry, error) {
	out, err := s.readPage(ctx, query, func(ctx context.Context, st *sql.Stmt) ([]session.Entry, error) {
		db, err := s.db(ctx)
		if err != nil {
			return nil, err
		}
		tx, err := db.BeginTx(ctx, nil) // rows and their turns are of one moment
		if err != nil {
			return nil, err
		}
		defer tx.Rollback()
		rows, err := tx.StmtContext(ctx, st).QueryContext(ctx, args...)
		if err != nil {
			return nil, err
		}
		out, spans, err := s.page(rows, true, what, limit)
		if err != nil {
			return nil, err
		}
		return out, nameTurns(ctx, tx, spans, out)
	})
	return out, s.fault("read", err)
}

// readPage prepares a query and tries f until the file is not locked.
func (s *Store) readPage(ctx context.Context, query string, f func(context.Context, *sql.Stmt) ([]session.Entry, error)) ([]session.Entry, error) {
	short, err := bounded(ctx)
	if err != nil {
		return nil, err
	}
	st, err := s.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return retry(ctx, func() ([]session.Entry, error) { return f(short, st) })
}

// inView returns where the entries of a view are found and the condition. Facts have an index of their own, so that a page costs the same
// however many increments lie between; SQLite would not choose it by itself, and refuses the query should it ever not fit.
func inView(v protocol.View) (table, condition string) {
	const facts = "entries e INDEXED BY entries_facts"
	switch v {
	case protocol.ViewFacts:
		return facts, " AND e.class = 0"
	case protocol.ViewDurable:
		return facts, " AND e.class = 0 AND e.view = " + strconv.Itoa(int(protocol.Durable))
	case protocol.ViewTasks:
		return facts, " AND e.class = 0 AND e.view = " + strconv.Itoa(int(protocol.DurableTask))
	default:
		return "entries e", ""
	}
}

func (s *Store) exists(ctx context.Context, id session.SessionID, n int) error {
	if n > 0 {
		return nil
	}
	_, err := s.Session(ctx, id)
	return err
}

// Read implements session.Log.
func (s *Store) Read(ctx context.Context, id session.SessionID, after session.Seq, limit int, v protocol.View) ([]session.Entry, error) {
	table, condition := inView(v)
	out, err := s.entries(ctx, "session "+string(id), limit, "SELECT "+turnColumn+entryColumns+" FROM "+table+" WHERE e.session = (SELECT id FROM sessions WHERE session = ? AND "+notGone+") AND e.seq > ?"+
		condition+" ORDER BY e.seq LIMIT ?", string(id), int64(after), limit)
	if err != nil {
		return nil, err
	}
	return out, s.exists(ctx, id, len(out))
}

// ReadBack implements session.Log.
func (s *Store) ReadBack(ctx context.Context, id session.SessionID, before session.Seq, limit int, v protocol.View) ([]session.Entry, error) {
	if before == 0 {
		before = 1 << 62
	}
	table, condition := inView(v)
	out, err := s.entries(ctx, "session "+string(id), limit, "SELECT "+turnColumn+entryColumns+" FROM "+table+" WHERE e.session = (SELECT id FROM sessions WHERE session = ? AND "+notGone+") AND e.seq < ?"+
		condition+" ORDER BY e.seq DESC LIMIT ?", string(id), int64(before), limit)
	if err != nil {
		return nil, err
	}
	return out, s.exists(ctx, id, len(out))
}

// ReadTurn implements session.Log.
func (s *Store) ReadTurn(ctx context.Context, turn session.TurnID, after int64, limit int) ([]session.Entry, error) {
	const query = "SELECT " + entryColumns + " FROM entries e WHERE e.turn = (SELECT t.id FROM turns t JOIN sessions s ON s.id = t.session WHERE t.turn = ? AND s." + notGone +
		") AND e.count > 0 AND e.number >= ? AND e.number + e.count - 1 > ? ORDER BY e.number LIMIT ?"
	out, err := s.readPage(ctx, query, func(ctx context.Context, st *sql.Stmt) ([]session.Entry, error) {
		rows, err := st.QueryContext(ctx, string(turn), after-1, after, limit)
		if err != nil {
			return nil, err
		}
		out, _, err := s.page(rows, false, "turn "+string(turn), limit)
		for i := range out {
			out[i].Turn = turn
		}
		return out, err
	})
	if err != nil || len(out) > 0 {
		return out, s.fault("read", err)
	}
	_, err = s.TurnSession(ctx, turn)
	return out, err
}

// one reads a single row.
func (s *Store) one(ctx context.Context, what, query string, args []any, dest ...any) error {
	short, err := bounded(ctx)
	if err != nil {
		return err
	}
	st, err := s.stmt(ctx, query)
	if err == nil {
		_, err = retry(ctx, func() (struct{}, error) { return struct{}{}, st.QueryRowContext(short, args...).Scan(dest...) })
	}
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%s: %w", what, session.ErrNotFound)
	}
	return s.fault("read", err)
}

// TurnSession implements session.Log.
func (s *Store) TurnSession(ctx context.Context, turn session.TurnID) (session.SessionID, error) {
	var id string
	err := s.one(ctx, "turn "+string(turn), "SELECT s.session FROM turns t JOIN sessions s ON s.id = t.session WHERE t.turn = ? AND s."+notGone, []any{string(turn)}, &id)
	return session.SessionID(id), err
}

const metaColumns = "session, conversation, workspace, parent, created, head, owner, activity, title, preview, messages, tool_calls, user_prompt, metadata, touched"

func (s *Store) scanMeta(row scanner) (session.Meta, int64, error) {
	var m session.Meta
	var id, parent string
	var created, head, activity, touched int64
	var metadata []byte
	if err := row.Scan(&id, &m.ConversationID, &m.Workspace, &parent, &created, &head, &m.Owner, &activity, &m.Title, &m.Preview, &m.Messages, &m.ToolCalls, &m.UserPrompt, &metadata, &touched); err != nil {
		return m, 0, err
	}
	m.ID, m.Parent, m.Created, m.Head = session.SessionID(id), session.SessionID(parent), time.UnixMicro(created).UTC(), session.Seq(head)
	m.Activity, m.Metadata = time.UnixMicro(activity).UTC(), metadata
	return m, touched, nil
}

func (s *Store) meta(ctx context.Context, what, where string, arg any) (session.Meta, error) {
	short, err := bounded(ctx)
	if err != nil {
		return session.Meta{}, err
	}
	st, err := s.stmt(ctx, "SELECT "+metaColumns+" FROM sessions WHERE "+notGone+" AND "+where)
	if err != nil {
		return session.Meta{}, s.fault("read", err)
	}
	m, err := retry(ctx, func() (session.Meta, error) {
		m, _, err := s.scanMeta(st.QueryRowContext(short, arg))
		return m, err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return m, fmt.Errorf("%s: %w", what, session.ErrNotFound)
	}
	m.OwnerAlive = s.inst.alive(m.Owner)
	return m, s.fault("read", err)
}

// Session implements session.Log.
func (s *Store) Session(ctx context.Context, id session.SessionID) (session.Meta, error) {
	return s.meta(ctx, "session "+string(id), "session = ?", string(id))
}

// Conversation implements session.Log.
func (s *Store) Conversation(ctx context.Context, conv string) (session.Meta, error) {
	return s.meta(ctx, "conversation "+conv, "conversation = ?", conv)
}

// Fold implements session.Log.
func (s *Store) Fold(ctx context.Context, id session.SessionID) ([]byte, session.Seq, error) {
	var fold []byte
	var seq int64
	err := s.one(ctx, "session "+string(id), "SELECT fold, fold_seq FROM sessions WHERE session = ?", []any{string(id)}, &fold, &seq)
	return fold, session.Seq(seq), err
}

// Key implements session.Log.
func (s *Store) Key(ctx context.Context, id session.SessionID, surface, key string) (session.Key, error) {
	k := session.Key{Surface: surface, Key: key}
	var turn string
	err := s.one(ctx, "key", "SELECT digest, turn FROM keys WHERE session = (SELECT id FROM sessions WHERE session = ? AND "+notGone+") AND surface = ? AND key = ?",
		[]any{string(id), surface, key}, &k.Digest, &turn)
	k.Turn = session.TurnID(turn)
	return k, err
}

// Health implements session.Log.
func (s *Store) Health(ctx context.Context) (session.Health, error) {
	h := session.Health{Path: s.path}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(s.path + suffix); err == nil {
			h.Bytes += info.Size()
		}
	}
	if err := s.one(ctx, "store", "SELECT (SELECT count(*) FROM sessions WHERE "+notGone+"), (SELECT count(*) FROM entries), (SELECT value FROM meta WHERE name = 'written_by'), (SELECT value FROM meta WHERE name = 'readable_from')",
		nil, &h.Sessions, &h.Entries, &h.WrittenBy, &h.ReadableFrom); err != nil {
		return h, err
	}
	return h, s.one(ctx, "store", "SELECT group_concat(integrity_check, '; ') FROM (SELECT integrity_check FROM pragma_integrity_check LIMIT 5)", nil, &h.Integrity)
}
