package sqlite

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"zombiezen.com/go/sqlite"
)

// mode is how a connection may use the file.
type mode int

const (
	readWrite mode = iota
	readOnly
	immutable // reads a file in a folder where no -shm can be made: without locks, so connections on it are not kept
)

// fileURI names a file for SQLite by its absolute path with slashes.
func fileURI(path string, m mode) string {
	if path[0] != '/' {
		path = "/" + path // it begins with the letter of a drive
	}
	u := url.URL{Scheme: "file", Path: path}
	if m == immutable {
		u.RawQuery = "immutable=1"
	}
	return u.String()
}

// connection is one of SQLite's, for one goroutine at a time. Its statements are prepared once. That is why some parameters are written as +?:
// where SQLite takes the value of a bare one into its plan, of a limit for one, it plans anew for each value, which takes longer than to read a page.
type connection struct{ *sqlite.Conn }

// cacheSize is how many KiB of the file a connection keeps in memory.
const cacheSize = "PRAGMA cache_size = -4096"

// connect opens the file, which is there. It waits for nobody: see retry.
func (s *Store) connect(m mode) (*connection, error) {
	flags := sqlite.OpenURI | sqlite.OpenReadOnly
	if m == readWrite {
		flags = sqlite.OpenURI | sqlite.OpenReadWrite
	}
	lite, err := sqlite.OpenConn(fileURI(filepath.ToSlash(s.path), m), flags)
	if gone := s.moved(); gone != nil {
		if err == nil {
			_ = lite.Close()
		}
		return nil, gone
	}
	if err != nil {
		return nil, err
	}
	c := &connection{lite}
	c.SetBusyTimeout(0)
	for _, p := range []string{"PRAGMA foreign_keys = 0", "PRAGMA secure_delete = 1", "PRAGMA trusted_schema = 0", "PRAGMA temp_store = 2", cacheSize} {
		if err := c.script(p); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

func (c *connection) close() { _ = c.Close() }

// script runs statements that are not kept.
func (c *connection) script(q string) error {
	for q = strings.TrimSpace(q); q != ""; {
		st, rest, err := c.PrepareTransient(q)
		if err != nil {
			return err
		}
		err = finish(st)
		if end := st.Finalize(); err == nil {
			err = end
		}
		if err != nil {
			return err
		}
		q = strings.TrimSpace(q[len(q)-rest:])
	}
	return nil
}

// finish steps a statement to its end and makes it ready for the next time.
func finish(st *sqlite.Stmt) error {
	for {
		more, err := st.Step()
		if err != nil {
			return err // and Step has reset it
		}
		if !more {
			return st.Reset()
		}
	}
}

// stmt is a statement with its arguments.
func (c *connection) stmt(q string, args []any) (*sqlite.Stmt, error) {
	st, err := c.Prepare(q)
	if err != nil {
		return nil, err
	}
	for i, a := range args {
		switch a := a.(type) {
		case nil:
			st.BindNull(i + 1)
		case int64:
			st.BindInt64(i+1, a)
		case int:
			st.BindInt64(i+1, int64(a))
		case bool:
			st.BindBool(i+1, a)
		case string:
			st.BindText(i+1, a)
		case []byte:
			bindBlob(st, i+1, a)
		default:
			return nil, fmt.Errorf("argument %d is a %T", i+1, a)
		}
	}
	return st, nil
}

// bindBlob binds bytes; nil is NULL.
func bindBlob(st *sqlite.Stmt, param int, b []byte) {
	if b == nil {
		st.BindNull(param)
		return
	}
	st.BindBytes(param, b)
}

// exec runs a statement to its end.
func (c *connection) exec(q string, args ...any) error {
	st, err := c.stmt(q, args)
	if err != nil {
		return err
	}
	return finish(st)
}

// change is exec for a statement that changes rows; it says how many.
func (c *connection) change(q string, args ...any) (int, error) {
	err := c.exec(q, args...)
	return c.Changes(), err
}

// errNoRow says that a query for a row found none.
var errNoRow = errors.New("no row")

// row is a query for one row, which runs with Scan.
type row struct {
	c    *connection
	q    string
	args []any
}

func (c *connection) row(q string, args ...any) row { return row{c, q, args} }

// Scan reads the row into dest; see scan. The error is errNoRow when there is none.
func (r row) Scan(dest ...any) error {
	return r.c.first(func(st *sqlite.Stmt) error { return scan(st, dest...) }, r.q, r.args...)
}

// first calls f with the first row of a query. The error is errNoRow when there is none.
func (c *connection) first(f func(*sqlite.Stmt) error, q string, args ...any) error {
	st, err := c.stmt(q, args)
	if err != nil {
		return err
	}
	found, err := st.Step()
	if err != nil {
		return err
	}
	if found {
		err = f(st)
	} else {
		err = errNoRow
	}
	if end := st.Reset(); err == nil {
		err = end
	}
	return err
}

// all makes one of each row of a query.
func all[T any](c *connection, of func(*sqlite.Stmt) (T, error), q string, args ...any) (out []T, err error) {
	err = c.each(func(st *sqlite.Stmt) error {
		v, err := of(st)
		out = append(out, v)
		return err
	}, q, args...)
	return out, err
}

// each calls f with each row of a query.
func (c *connection) each(f func(*sqlite.Stmt) error, q string, args ...any) error {
	st, err := c.stmt(q, args)
	if err != nil {
		return err
	}
	for {
		more, err := st.Step()
		if err != nil {
			return err
		}
		if !more {
			return st.Reset()
		}
		if err := f(st); err != nil {
			_ = st.Reset()
			return err
		}
	}
}

// within runs f in a transaction that only reads: all it sees is of one moment.
func (c *connection) within(f func() error) error {
	if err := c.exec("BEGIN"); err != nil {
		return err
	}
	err := f()
	if end := c.exec("ROLLBACK"); err == nil {
		err = end
	}
	return err
}

// scan reads the columns of a row, from the first one on. A column that holds something else than the schema says is an error; bytes may be NULL.
func scan(st *sqlite.Stmt, dest ...any) error {
	for i, d := range dest {
		is, ok := st.ColumnType(i), false
		switch d := d.(type) {
		case *int64:
			*d, ok = st.ColumnInt64(i), is == sqlite.TypeInteger
		case *int:
			*d, ok = st.ColumnInt(i), is == sqlite.TypeInteger
		case *bool:
			*d, ok = st.ColumnBool(i), is == sqlite.TypeInteger
		case *string:
			*d, ok = st.ColumnText(i), is == sqlite.TypeText
		case *[]byte:
			*d, ok = nil, is == sqlite.TypeNull || is == sqlite.TypeBlob || is == sqlite.TypeText
			if n := st.ColumnLen(i); n > 0 {
				*d = make([]byte, n)
				st.ColumnBytes(i, *d)
			}
		}
		if !ok {
			return fmt.Errorf("column %d holds %s, not what belongs into a %T", i+1, is, d)
		}
	}
	return nil
}
