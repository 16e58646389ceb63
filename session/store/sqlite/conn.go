package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	"modernc.org/sqlite"

	"github.com/rind-dev/rind/session"
)

// writer is the state of the writer goroutine. Its connection is one of the driver and nobody else's: what database/sql does so that many may
// share one is a sixth of the cost of a small write.
type writer struct {
	s       *Store
	conn    driver.Conn
	stmts   map[string]statement
	args    []driver.NamedValue // of the statement that runs
	full    int                 // 1: synchronous is FULL, 0: NORMAL, -1: unknown
	ids     map[session.SessionID]int64
	turns   map[session.TurnID]int64
	nextID  int64
	touched int64     // the order of activity is a counter, so that lists do not depend on a clock
	counted bool      // the two above are those of the file, if it is as it was
	seen    uint32    // version of the file then
	dirty   bool      // the WAL may hold something
	bounded time.Time // when its size was last looked at
}

// forget drops what was learned in a transaction that is no more.
func (w *writer) forget() {
	w.ids, w.turns, w.counted = map[session.SessionID]int64{}, map[session.TurnID]int64{}, false
}

// version changes with each commit, also with those of other connections once a transaction of this one has begun.
func (w *writer) version() (uint32, error) {
	return w.conn.(sqlite.FileControl).FileControlDataVersion("main")
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
	_, err := retry(ctx, func() (nothing, error) {
		w.close()
		conn, err := new(sqlite.Driver).Open(w.s.dsn(readWrite))
		if err != nil {
			return nothing{}, err
		}
		w.conn, w.full, w.stmts = conn, -1, map[string]statement{}
		return nothing{}, errors.Join(w.pragma("wal_autocheckpoint = 1000"), w.pragma("journal_size_limit = 4194304"))
	})
	if err != nil {
		w.close()
		return w.s.fault("open for writing", err)
	}
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
	w.conn, w.stmts = nil, nil
}

// statement is a prepared statement of the driver.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

func (w *writer) prepare(q string) (statement, error) {
	st, err := w.conn.Prepare(q)
	if err != nil {
		return nil, err
	}
	return st.(statement), nil
}

// stmt prepares a statement once per connection.
func (w *writer) stmt(q string) (statement, error) {
	if st := w.stmts[q]; st != nil {
		return st, nil
	}
	st, err := w.prepare(q)
	if err == nil {
		w.stmts[q] = st
	}
	return st, err
}

// pragma sets what takes effect when the statement is prepared, so that it is prepared each time.
func (w *writer) pragma(q string) error {
	st, err := w.prepare("PRAGMA " + q)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(context.Background(), nil)
	return errors.Join(err, st.Close())
}

// bind makes the arguments of a statement. They hold until the next one.
func (w *writer) bind(args []any) ([]driver.NamedValue, error) {
	w.args = w.args[:0]
	for i, a := range args {
		switch v := a.(type) {
		case int64, string, []byte, nil:
		default:
			var err error
			if a, err = driver.DefaultParameterConverter.ConvertValue(v); err != nil {
				return nil, fmt.Errorf("argument %d: %w", i+1, err)
			}
		}
		w.args = append(w.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return w.args, nil
}

func (w *writer) exec(ctx context.Context, q string, args ...any) error {
	_, err := w.change(ctx, q, args...)
	return err
}

// change runs a statement and says how many rows it changed, and the id of the row it inserted.
func (w *writer) change(ctx context.Context, q string, args ...any) (driver.Result, error) {
	st, err := w.stmt(q)
	if err != nil {
		return nil, err
	}
	values, err := w.bind(args)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(ctx, values)
}

// scanner is a row, or the error that there is none.
type scanner interface{ Scan(dest ...any) error }

// row reads the first row of a query.
func (w *writer) row(ctx context.Context, q string, args ...any) scanner {
	st, err := w.stmt(q)
	if err != nil {
		return firstRow{err: err}
	}
	values, err := w.bind(args)
	if err != nil {
		return firstRow{err: err}
	}
	rows, err := st.QueryContext(ctx, values)
	if err != nil {
		return firstRow{err: err}
	}
	r := firstRow{columns: make([]driver.Value, len(rows.Columns()))}
	if r.err = rows.Next(r.columns); r.err == io.EOF {
		r.err = sql.ErrNoRows
	}
	if err := rows.Close(); r.err == nil {
		r.err = err
	}
	return r
}

// firstRow is a row that was read.
type firstRow struct {
	columns []driver.Value
	err     error
}

// Scan implements scanner for the types of the schema. Bytes are the caller's.
func (r firstRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	for i, d := range dest {
		var ok bool
		switch d := d.(type) {
		case *int64:
			*d, ok = r.columns[i].(int64)
		case *int:
			var n int64
			n, ok = r.columns[i].(int64)
			*d = int(n)
		case *string:
			*d, ok = r.columns[i].(string)
		}
		if !ok {
			return fmt.Errorf("column %d is a %T, not for a %T", i+1, r.columns[i], d)
		}
	}
	return nil
}
