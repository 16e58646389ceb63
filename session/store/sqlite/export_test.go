package sqlite

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
	"zombiezen.com/go/sqlite"
)

// LimitPages makes the file full at n pages, until the write connection is made anew.
func (s *Store) LimitPages(ctx context.Context, n int) {
	if err := s.alone(ctx, func(w *writer) error {
		return w.script(fmt.Sprintf("PRAGMA max_page_count = %d", n))
	}); err != nil {
		panic(err)
	}
}

// Synchronous returns the level of the write connection: 1 NORMAL, 2 FULL.
func (s *Store) Synchronous(ctx context.Context) (level int, err error) {
	err = s.alone(ctx, func(w *writer) error {
		return w.row("PRAGMA synchronous").Scan(&level)
	})
	return level, err
}

// Alive asks whether an instance lives, as another process would.
func Alive(locks, id string) bool { return (&instance{dir: locks, id: "asker"}).alive(id) }

// ShortenWaits makes the limits of waiting short and returns how to put them back.
func ShortenWaits(busy, idle time.Duration) (restore func()) {
	b, i := busyLimit, checkpointIdle
	busyLimit, checkpointIdle = busy, idle
	return func() { busyLimit, checkpointIdle = b, i }
}

// NextSchema makes this the version after ours, whose migration adds a column and a table.
func NextSchema(breaking bool) (restore func()) {
	m, n, r := migrations, schemaNumber, schemaReadable
	migrations = append(migrations[:len(migrations):len(migrations)], migration{
		sql:      "ALTER TABLE sessions ADD COLUMN of_tomorrow TEXT; CREATE TABLE tomorrow (id INTEGER PRIMARY KEY, x TEXT);",
		breaking: breaking,
	})
	schemaNumber++
	if breaking {
		schemaReadable = schemaNumber
	}
	return func() { migrations, schemaNumber, schemaReadable = m, n, r }
}

// FirstSchema makes this the version before ours.
func FirstSchema() (restore func()) {
	m, n := migrations, schemaNumber
	migrations, schemaNumber = migrations[:1:1], 1
	return func() { migrations, schemaNumber = m, n }
}

// PreparedAnew says of each statement that was prepared on the connections of the store how often SQLite prepared it again.
func (s *Store) PreparedAnew(ctx context.Context) map[string]int {
	found := map[string]int{}
	look := func(c *connection) {
		tls := libc.NewTLS()
		defer tls.Close()
		db := uintptr(reflect.ValueOf(c.Conn).Elem().FieldByName("conn").Uint())
		for st := lib.Xsqlite3_next_stmt(tls, db, 0); st != 0; st = lib.Xsqlite3_next_stmt(tls, db, st) {
			found[libc.GoString(lib.Xsqlite3_sql(tls, st))] += int(lib.Xsqlite3_stmt_status(tls, st, lib.SQLITE_STMTSTATUS_REPREPARE, 0))
		}
	}
	s.everyConnection(ctx, look)
	return found
}

// FileURI is how a file is named for SQLite.
func FileURI(path string) string { return fileURI(path, readWrite) }

// BorrowBehindClose asks for a reading connection after the store was closed, as a read may that was under way.
func (s *Store) BorrowBehindClose(ctx context.Context) error {
	r, err := s.db(ctx)
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	c, err := r.borrow(ctx)
	if err == nil {
		r.back(c, true)
	}
	return err
}

// Each reads a number of each row of a query and calls f with it.
func (s *Store) Each(ctx context.Context, f func(int64) error, q string) error {
	_, err := read(ctx, s, func(c *connection) (nothing, error) {
		return nothing{}, c.each(func(st *sqlite.Stmt) error { return f(st.ColumnInt64(0)) }, q)
	})
	return err
}

// EachShort is Each by a read that cannot be interrupted.
func (s *Store) EachShort(ctx context.Context, f func(int64) error, q string) error {
	_, err := readShort(ctx, s, func(c *connection) (nothing, error) {
		return nothing{}, c.each(func(st *sqlite.Stmt) error { return f(st.ColumnInt64(0)) }, q)
	})
	return err
}

// LeftOpen names the statements that have begun and not ended on the connections that are not in use, and those that have a transaction open.
func (s *Store) LeftOpen(ctx context.Context) (found []string) {
	look := func(c *connection) {
		tls := libc.NewTLS()
		defer tls.Close()
		db := uintptr(reflect.ValueOf(c.Conn).Elem().FieldByName("conn").Uint())
		for st := lib.Xsqlite3_next_stmt(tls, db, 0); st != 0; st = lib.Xsqlite3_next_stmt(tls, db, st) {
			if lib.Xsqlite3_stmt_busy(tls, st) != 0 {
				found = append(found, libc.GoString(lib.Xsqlite3_sql(tls, st)))
			}
		}
		if !c.AutocommitEnabled() {
			found = append(found, "a transaction")
		}
	}
	s.everyConnection(ctx, look)
	return found
}

// everyConnection calls f with the write connection and those for reading that are not in use.
func (s *Store) everyConnection(ctx context.Context, f func(*connection)) {
	if err := s.alone(ctx, func(w *writer) error { f(w.connection); return nil }); err != nil {
		panic(err)
	}
	s.read.mu.Lock()
	defer s.read.mu.Unlock()
	for _, c := range s.read.idle {
		f(c.connection)
	}
}

// Idle is how many reading connections wait to be used.
func (s *Store) Idle() int {
	s.read.mu.Lock()
	defer s.read.mu.Unlock()
	return len(s.read.idle)
}

// Checkpoint empties the WAL as far as nobody reads it.
func (s *Store) Checkpoint(ctx context.Context) {
	if err := s.alone(ctx, func(w *writer) error { w.checkpoint(); return nil }); err != nil {
		panic(err)
	}
}

// DropReaders closes the reading connections that nobody uses.
func (s *Store) DropReaders() {
	s.read.mu.Lock()
	defer s.read.mu.Unlock()
	for _, c := range s.read.idle {
		c.close()
	}
	s.read.idle = nil
}

// ShortenIdle makes short how long a reading connection is kept that nobody uses.
func ShortenIdle(d time.Duration) (restore func()) {
	was := readerIdle
	readerIdle = d
	return func() { readerIdle = was }
}

// Pause lets the writer do nothing until resume is called: what is handed over meanwhile is written together.
func (s *Store) Pause(ctx context.Context) (resume func()) {
	began, end := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.alone(ctx, func(*writer) error {
			close(began)
			<-end
			return nil
		})
	}()
	<-began
	return func() { close(end) }
}
