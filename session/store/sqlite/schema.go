package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/rind-dev/rind/session"
)

// Schema numbers. A file says which schema its last writer had ("written_by", also PRAGMA user_version) and which is the oldest that
// may work on it ("readable_from"): additive migrations leave the latter, so that two versions of ours work on one file. Tests play the
// next version.
var (
	schemaNumber   = 2
	schemaReadable = 1
)

// migration is one step of the schema. A breaking one is not readable for older versions, and the file is copied before it.
type migration struct {
	sql      string
	breaking bool
}

// migrations[n] brings a file from schema n to n+1. All that are missing are one transaction.
//
// Files of earlier versions keep what they were made with: UNIQUE (session, seq) in the table, which is an index of its own, and entries_facts over
// (session, seq, view) of facts alone; and an index of when turns ended, which nobody asks. What is written to a new file has one index less to go
// through, a third of the cost; every statement, of this version and of those, runs on both. That no place in a log is given twice is seen to by the session's row, whose head each batch moves.
var migrations = []migration{{sql: `
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  session TEXT NOT NULL UNIQUE,
  conversation TEXT NOT NULL,
  workspace TEXT NOT NULL,
  parent TEXT NOT NULL,
  created INTEGER NOT NULL,
  head INTEGER NOT NULL DEFAULT 0,
  owner TEXT NOT NULL DEFAULT '',
  epoch INTEGER NOT NULL DEFAULT 0,
  touched INTEGER NOT NULL,
  activity INTEGER NOT NULL,
  title TEXT NOT NULL DEFAULT '',
  preview TEXT NOT NULL DEFAULT '',
  messages INTEGER NOT NULL DEFAULT 0,
  tool_calls INTEGER NOT NULL DEFAULT 0,
  user_prompt INTEGER NOT NULL DEFAULT 0,
  metadata BLOB,
  fold BLOB,
  fold_seq INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX sessions_conversation ON sessions (conversation);
CREATE INDEX sessions_touched ON sessions (touched);
CREATE TABLE turns (
  id INTEGER PRIMARY KEY,
  turn TEXT NOT NULL UNIQUE,
  session INTEGER NOT NULL,
  portable INTEGER NOT NULL DEFAULT 0,
  ended INTEGER
);
CREATE INDEX turns_session ON turns (session);
CREATE TABLE entries (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  turn INTEGER,
  number INTEGER NOT NULL,
  count INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  class INTEGER NOT NULL,
  view INTEGER NOT NULL,
  time INTEGER NOT NULL,
  event BLOB,
  more BLOB
);
CREATE INDEX entries_facts ON entries (session, seq, class, view);
CREATE INDEX entries_portable ON entries (turn, number) WHERE count > 0;
CREATE TABLE keys (
  session INTEGER NOT NULL, surface TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, turn TEXT NOT NULL,
  PRIMARY KEY (session, surface, key)
) WITHOUT ROWID;
CREATE TABLE letters (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, body BLOB NOT NULL, outcome BLOB
);
CREATE INDEX letters_session ON letters (session);
CREATE TABLE samples (
  id INTEGER PRIMARY KEY, session INTEGER NOT NULL, time INTEGER NOT NULL, model TEXT NOT NULL,
  input INTEGER NOT NULL, cached INTEGER NOT NULL, output INTEGER NOT NULL, reasoning INTEGER NOT NULL, compaction INTEGER NOT NULL
);
CREATE INDEX samples_time ON samples (time);
`}, {sql: `
CREATE TABLE rules (
  id INTEGER PRIMARY KEY AUTOINCREMENT, workspace TEXT NOT NULL, tool TEXT NOT NULL, pattern TEXT NOT NULL, allow INTEGER NOT NULL, created INTEGER NOT NULL,
  UNIQUE (workspace, tool, pattern)
);
`}}

// migrate brings the file to our schema, or says why it cannot be worked on. A file that is current, or of a newer version, is only read.
func (s *Store) migrate() error {
	at := 0
	if info, err := os.Stat(s.path); err == nil && info.Size() > 0 {
		// Not as a writer: the last writer to leave moves the WAL into the file, and a file that is refused must stay as it is.
		at, err = s.peek(readOnly)
		if errors.Is(err, session.ErrReadOnly) {
			at, err = s.peek(readWrite) // a process that died while it made the file left something to be rolled back
		}
		if err != nil {
			return err
		}
	}
	if err := writable(s.path); err != nil {
		return s.fault("open", err)
	}
	if at >= schemaNumber {
		return nil
	}
	breaks := slices.ContainsFunc(migrations[at:], func(m migration) bool { return m.breaking })
	if at > 0 && breaks {
		if err := s.backup(at); err != nil {
			return err
		}
	}
	return s.connected(readWrite, func(c *connection) error {
		return s.fault("migrate", again(func() error { return s.upgrade(c) }))
	})
}

// again is retry for what gives nothing but an error and waits for nobody's word.
func again(f func() error) error {
	_, err := retry(context.Background(), func() (nothing, error) { return nothing{}, f() })
	return err
}

// peek reads the schema number and refuses files this build must not touch.
func (s *Store) peek(m mode) (int, error) {
	at := 0
	err := s.connected(m, func(c *connection) (err error) {
		at, err = s.schemaOf(c)
		return err
	})
	return at, err
}

// connected runs f on a connection of its own. Another process may hold the file alone for a moment: while it makes it, or when it is
// the last to close it.
func (s *Store) connected(m mode, f func(*connection) error) error {
	c, err := retry(context.Background(), func() (*connection, error) { return s.connect(m) })
	if err != nil {
		return s.fault("open", err)
	}
	defer c.close()
	return f(c)
}

// schemaOf reads the schema number and refuses files this build must not touch.
func (s *Store) schemaOf(c *connection) (int, error) {
	number := func(query string) (n int, err error) {
		err = again(func() error { return c.row(query).Scan(&n) })
		return n, err
	}
	at, err := number("PRAGMA user_version")
	if err != nil {
		return 0, s.fault("read schema number", err)
	}
	if at <= schemaNumber {
		return at, nil
	}
	from, err := number("SELECT value FROM meta WHERE name = 'readable_from'")
	if err != nil || from > schemaNumber {
		return 0, fmt.Errorf("%w: %s has schema %d, this version of rind reads up to %d: update rind", session.ErrNewer, s.path, at, schemaNumber)
	}
	return at, nil
}

// upgrade runs the migrations that are missing, in one transaction: the file is old or new, never between, also when two
// processes start at once.
func (s *Store) upgrade(c *connection) error {
	for _, q := range []string{"PRAGMA page_size = 4096", "PRAGMA auto_vacuum = INCREMENTAL", "PRAGMA journal_mode = WAL", "BEGIN IMMEDIATE"} {
		if err := c.script(q); err != nil {
			return err
		}
	}
	var at int
	err := c.row("PRAGMA user_version").Scan(&at)
	for ; err == nil && at < schemaNumber; at++ {
		err = c.script(migrations[at].sql)
	}
	if err == nil {
		err = c.exec("INSERT INTO meta (name, value) VALUES ('written_by', ?), ('readable_from', ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)", schemaNumber, schemaReadable)
	}
	if err == nil {
		err = c.script(fmt.Sprintf("PRAGMA user_version = %d", at))
	}
	s.opt.Kill("migrating")
	if err == nil {
		err = c.exec("COMMIT")
	}
	if err != nil {
		_ = c.exec("ROLLBACK")
	}
	return err
}

// backup copies the file before it is migrated. Of processes that start at once the first copy stays: it was made before any of them
// could change the file.
func (s *Store) backup(at int) error {
	name := fmt.Sprintf("%s.schema%d", s.path, at)
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	own := name + "." + s.inst.id
	defer os.Remove(own)
	err := s.connected(readWrite, func(c *connection) error {
		return again(func() error {
			_ = os.Remove(own)
			return c.exec("VACUUM INTO ?", own)
		})
	})
	if err == nil {
		err = os.Chmod(own, 0o600)
	}
	if err == nil {
		if err = os.Link(own, name); errors.Is(err, os.ErrExist) {
			err = nil
		}
	}
	return s.fault("back up", err)
}
