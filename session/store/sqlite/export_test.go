package sqlite

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
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
	if err := s.alone(ctx, func(w *writer) error { look(w.connection); return nil }); err != nil {
		panic(err)
	}
	s.read.mu.Lock()
	defer s.read.mu.Unlock()
	for _, c := range s.read.idle {
		look(c.connection)
	}
	return found
}
