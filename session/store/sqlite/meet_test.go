package sqlite_test

import (
	"context"
	"database/sql"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/store/storetest"
)

// beside is one connection of another process.
func beside(t *testing.T, path, options string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite", path+options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func execute(t *testing.T, c *sql.Conn, q string) {
	t.Helper()
	if _, err := c.ExecContext(context.Background(), q); err != nil {
		t.Errorf("%s: %v", q, err)
	}
}

// Another process does what it likes with the file at each point of a write: reads and goes on reading, moves the log, wants to write, and writes
// where it can. Each append is there once it is acknowledged, and none is refused.
func TestWhateverAnotherProcessDoesAtAPointOfAWriteTheWriteIsDone(t *testing.T) {
	deeds := map[string][]string{
		"reads on":                 {"BEGIN", "SELECT count(*) FROM entries"},
		"moves what it can":        {"PRAGMA wal_checkpoint(PASSIVE)"},
		"moves all":                {"PRAGMA wal_checkpoint(FULL)"},
		"begins the log anew":      {"PRAGMA wal_checkpoint(RESTART)"},
		"empties the log":          {"PRAGMA wal_checkpoint(TRUNCATE)"},
		"wants to write":           {"BEGIN IMMEDIATE", "UPDATE meta SET value = value", "COMMIT"},
		"reads, and then writes":   {"BEGIN", "SELECT count(*) FROM entries", "UPDATE meta SET value = value", "COMMIT"},
		"gives free pages back":    {"PRAGMA incremental_vacuum(1)"},
		"looks whether it is well": {"PRAGMA quick_check"},
	}
	for _, point := range []string{"before-begin", "after-insert", "before-commit", "after-commit", "before-ack"} {
		for name, deed := range deeds {
			t.Run(point+" it "+name, func(t *testing.T) {
				path := filled(t)
				other := beside(t, path, "")
				var armed atomic.Bool
				s, err := sqlite.Open(path, sqlite.Options{Kill: func(at string) {
					if at != point || !armed.Load() {
						return
					}
					_, _ = other.ExecContext(context.Background(), "ROLLBACK") // what it did the last time
					for _, q := range deed {
						_, _ = other.ExecContext(context.Background(), q) // that it is refused is its trouble
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				l, err := s.Acquire(t.Context(), "20260102_101112_0000000a")
				if err != nil {
					t.Fatal(err)
				}
				armed.Store(true)
				for i := range session.Seq(3) {
					if err := storetest.Append(s, l, fact(4+i)); err != nil {
						t.Errorf("append %d: %v", i, err)
					}
					if es, err := s.Read(t.Context(), l.Session, 0, 99, protocol.ViewAll); err != nil || len(es) != int(4+i) {
						t.Errorf("%d entries are there behind append %d (%v)", len(es), i, err)
					}
				}
				armed.Store(false)
				_, _ = other.ExecContext(context.Background(), "ROLLBACK")
				if h, err := s.Health(t.Context()); err != nil || h.Integrity != "ok" {
					t.Errorf("integrity %q, %v", h.Integrity, err)
				}
			})
		}
	}
}

// Another process has the file for itself, as while it makes it or recovers it: nobody can read a byte. Whatever is asked for in that time is done once
// it is over.
func TestWhatIsAskedForWhileNobodyCanReadIsDoneAfterwards(t *testing.T) {
	path := filled(t)
	s := open(t, path)
	ctx := t.Context()
	const id = session.SessionID("20260102_101112_0000000a")
	alone, err := sql.Open("sqlite", path+"?_pragma=locking_mode(exclusive)")
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	if _, err := alone.Exec("UPDATE meta SET value = value"); err != nil {
		t.Fatal(err)
	}
	asked := map[string]func() error{
		"read":    func() error { return only(s.Read(ctx, id, 0, 9, protocol.ViewAll)) },
		"session": func() error { return only(s.Session(ctx, id)) },
		"list":    func() error { return second(s.Sessions(ctx, session.Query{Limit: 9})) },
		"health":  func() error { return only(s.Health(ctx)) },
		"rules":   func() error { return only(s.Rules(ctx, "/w")) },
		"add rule": func() error {
			return only(s.AddRule(ctx, session.Rule{Workspace: "/w", Tool: "bash", Pattern: "x", Allow: true}))
		},
		"post":    func() error { return only(s.Post(ctx, id, []byte(`{}`))) },
		"letters": func() error { return only(s.Open(ctx, id)) },
		"usage":   func() error { return only(s.Usage(ctx, time.Time{})) },
		"acquire": func() error { return only(s.Acquire(ctx, id)) },
		"create":  func() error { return s.Create(ctx, session.Meta{ID: "new", ConversationID: "new"}) },
		"prune":   func() error { return only(s.Prune(ctx, time.Unix(0, 0))) },
		"watch":   func() error { return only(s.Watch(ctx)) },
	}
	type answer struct {
		what string
		err  error
	}
	answers := make(chan answer, len(asked))
	for what, ask := range asked {
		go func() { answers <- answer{what, ask()} }()
	}
	early := time.After(300 * time.Millisecond)
	for done := false; !done; {
		select {
		case a := <-answers:
			t.Errorf("%s was answered while nobody could read: %v", a.what, a.err)
			delete(asked, a.what)
		case <-early:
			done = true
		}
	}
	_ = alone.Close()
	for range len(asked) {
		if a := <-answers; a.err != nil {
			t.Errorf("%s: %v", a.what, a.err)
		}
	}
}

// A reader that stays in an old part of the log keeps it from being emptied, and nothing else: appends, deletions and their bytes go on, and the log is
// emptied once it is gone.
func TestALongReaderHoldsUpNoWriteAndTheLogIsEmptiedBehindIt(t *testing.T) {
	t.Cleanup(sqlite.ShortenWaits(time.Minute, time.Hour))
	path := filled(t)
	s := open(t, path)
	l, err := s.Acquire(t.Context(), "20260102_101112_0000000a")
	if err != nil {
		t.Fatal(err)
	}
	reader := beside(t, path, "")
	execute(t, reader, "BEGIN")
	execute(t, reader, "SELECT count(*) FROM entries")
	const word = "xyzzy-of-a-deleted-session"
	gone := storetest.Create(t, s, "gone")
	e := storetest.Entry(1, "", &protocol.SessionRenamed{Name: word, Title: word})
	if err := storetest.Append(s, gone, session.Batch{Entries: []session.Entry{e}}); err != nil {
		t.Fatal(err)
	}
	longest := time.Duration(0)
	for i := range session.Seq(30) {
		began := time.Now()
		if err := storetest.Append(s, l, fact(4+i)); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Since(began))
		if i%10 == 5 {
			s.Checkpoint(t.Context())
		}
	}
	if longest > 20*time.Second {
		t.Errorf("an append took %v beside a reader", longest)
	}
	if err := s.Delete(t.Context(), "gone"); err != nil {
		t.Error(err)
	}
	execute(t, reader, "ROLLBACK")
	s.Checkpoint(t.Context())
	if wal := read(t, path+"-wal"); len(wal) != 0 || strings.Contains(string(read(t, path)), word) {
		t.Errorf("behind the reader the log holds %d bytes, or the file what was deleted", len(wal))
	}
	if es, err := s.Read(t.Context(), l.Session, 0, 99, protocol.ViewAll); err != nil || len(es) != 33 {
		t.Errorf("%d entries, %v", len(es), err)
	}
	_ = s.Close()
}
