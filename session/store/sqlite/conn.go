package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/rind-dev/rind/session"
)

// writer is the state of the writer goroutine.
type writer struct {
	s       *Store
	db      *sql.DB
	conn    *sql.Conn
	stmts   map[string]*sql.Stmt
	full    int // 1: synchronous is FULL, 0: NORMAL, -1: unknown
	ids     map[session.SessionID]int64
	turns   map[session.TurnID]int64
	nextID  int64
	touched int64     // the order of activity is a counter, so that lists do not depend on a clock
	dirty   bool      // the WAL may hold something
	bounded time.Time // when its size was last looked at
}

// forget drops what was learned in a transaction that is no more.
func (w *writer) forget() {
	w.ids, w.turns = map[session.SessionID]int64{}, map[session.TurnID]int64{}
}

// open gets the write connection.
func (w *writer) open() error {
	if w.conn != nil {
		return nil
	}
	ctx := context.Background()
	w.s.mu.Lock()
	if _, err := w.s.opened(ctx); err != nil {
		return err
	}
	w.s.mu.Lock()
	why := w.s.readOnly
	w.s.mu.Unlock()
	if why != nil {
		return why
	}
	conn, err := retry(ctx, func() (*sql.Conn, error) {
		w.close()
		db, err := sql.Open("sqlite", w.s.dsn(readWrite))
		if err != nil {
			return nil, err
		}
		w.db = db
		db.SetMaxOpenConns(1)
		conn, err := db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		w.conn = conn
		for _, q := range []string{"PRAGMA wal_autocheckpoint = 1000", "PRAGMA journal_size_limit = 4194304"} {
			if _, err := conn.ExecContext(ctx, q); err != nil {
				return nil, err
			}
		}
		return conn, nil
	})
	if err != nil {
		w.close()
		return w.s.fault("open for writing", err)
	}
	w.conn, w.full, w.stmts = conn, -1, map[string]*sql.Stmt{}
	w.forget()
	return nil
}

func (w *writer) close() {
	for _, st := range w.stmts {
		_ = st.Close()
	}
	if w.conn != nil {
		_ = w.conn.Close()
	}
	if w.db != nil {
		_ = w.db.Close()
	}
	w.conn, w.db, w.stmts = nil, nil, nil
}

// stmt prepares a statement once per connection.
func (w *writer) stmt(ctx context.Context, q string) (*sql.Stmt, error) {
	if st := w.stmts[q]; st != nil {
		return st, nil
	}
	st, err := w.conn.PrepareContext(ctx, q)
	if err == nil {
		w.stmts[q] = st
	}
	return st, err
}

func (w *writer) exec(ctx context.Context, q string, args ...any) error {
	st, err := w.stmt(ctx, q)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(ctx, args...)
	return err
}

// scanner is a row, or the error that there is none.
type scanner interface{ Scan(dest ...any) error }

type failedRow struct{ err error }

func (f failedRow) Scan(...any) error { return f.err }

func (w *writer) row(ctx context.Context, q string, args ...any) scanner {
	st, err := w.stmt(ctx, q)
	if err != nil {
		return failedRow{err}
	}
	return st.QueryRowContext(ctx, args...)
}
