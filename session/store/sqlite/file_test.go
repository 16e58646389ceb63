package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/store/storetest"
)

// filled makes a store file with one session of three entries, closed.
func filled(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions", "rind.db")
	s := open(t, path)
	l := storetest.Create(t, s, "20260102_101112_0000000a")
	for i := range 3 {
		e := storetest.Entry(session.Seq(i+1), "", &protocol.SessionRenamed{Name: "n", Title: strings.Repeat("t", 2000)})
		if err := storetest.Append(s, l, session.Batch{Entries: []session.Entry{e}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// filledCopy makes a store file with these bytes.
func filledCopy(t *testing.T, file, wal []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions", "rind.db")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, path, file)
	if err := os.WriteFile(path+"-wal", wal, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestAFileThatCannotBeUsedIsNamedAndLeftAsItIs(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, path string)
		want   error
		says   string
	}{
		{"a newer schema", func(t *testing.T, path string) {
			query(t, path, "UPDATE meta SET value = 9999 WHERE name = 'readable_from'; PRAGMA user_version = 9999")
		}, session.ErrNewer, "9999"},
		{"another file", func(t *testing.T, path string) {
			write(t, path, bytes.Repeat([]byte("no database "), 1000))
		}, session.ErrCorrupt, "move the file away"},
		{"a damaged header", func(t *testing.T, path string) {
			b := read(t, path)
			copy(b, bytes.Repeat([]byte{0xAA}, 100))
			write(t, path, b)
		}, session.ErrCorrupt, "move the file away"},
		{"a folder", func(t *testing.T, path string) {
			for _, p := range []string{path, path + "-wal", path + "-shm"} {
				_ = os.Remove(p)
			}
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, session.ErrCorrupt, "directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filled(t)
			c.damage(t, path)
			before := read(t, path)
			s := open(t, path)
			for what, err := range map[string]error{
				"read":    second(s.Sessions(context.Background(), session.Query{Limit: 1})),
				"acquire": only(s.Acquire(context.Background(), "20260102_101112_0000000a")),
			} {
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: %v", what, err)
				}
			}
			_ = s.Close()
			if !bytes.Equal(before, read(t, path)) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestASchemaThatIsNewerButReadableIsWorkedOn(t *testing.T) {
	path := filled(t)
	query(t, path, "ALTER TABLE sessions ADD COLUMN of_tomorrow TEXT; CREATE TABLE tomorrow (x); UPDATE meta SET value = 9 WHERE name = 'written_by'; PRAGMA user_version = 9")
	s := open(t, path)
	l, err := s.Acquire(context.Background(), "20260102_101112_0000000a")
	if err != nil {
		t.Fatal(err)
	}
	e := storetest.Entry(4, "", &protocol.SessionRenamed{Name: "n", Title: "n"})
	if err := storetest.Append(s, l, session.Batch{Entries: []session.Entry{e}}); err != nil {
		t.Error(err)
	}
	if h, err := s.Health(context.Background()); err != nil || h.WrittenBy != 9 {
		t.Errorf("health %+v, %v: the newer version's number must stay", h, err)
	}
}

// TestARefusedFileKeepsItsLogToo refuses a file whose last writer died: what it wrote lies in the WAL, and moving it into the file would
// be a change.
func TestARefusedFileKeepsItsLogToo(t *testing.T) {
	from := filled(t)
	db, err := sql.Open("sqlite", from)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("UPDATE meta SET value = 9999 WHERE name = 'readable_from'; PRAGMA user_version = 9999"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sessions", "rind.db")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	before := map[string][]byte{}
	for _, suffix := range []string{"", "-wal"} {
		before[suffix] = read(t, from+suffix)
		if err := os.WriteFile(path+suffix, before[suffix], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if len(before["-wal"]) == 0 {
		t.Fatal("there is no WAL to be kept")
	}
	s := open(t, path)
	if _, err := s.Health(t.Context()); !errors.Is(err, session.ErrNewer) || !strings.Contains(err.Error(), "9999") || !strings.Contains(err.Error(), "up to 2") {
		t.Errorf("health: %v", err)
	}
	_ = s.Close()
	for suffix, b := range before {
		if !bytes.Equal(b, read(t, path+suffix)) {
			t.Errorf("rind.db%s was changed", suffix)
		}
	}
}

func TestALogWithoutItsFileIsKeptAside(t *testing.T) {
	from := filled(t)
	living := open(t, from)
	l, err := living.Acquire(t.Context(), "20260102_101112_0000000a")
	if err != nil {
		t.Fatal(err)
	}
	e := storetest.Entry(4, "", &protocol.SessionRenamed{Name: "n", Title: "n"})
	if err := storetest.Append(living, l, session.Batch{Entries: []session.Entry{e}}); err != nil {
		t.Fatal(err)
	}
	wal := read(t, from+"-wal")
	for _, empty := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "sessions", "rind.db")
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if empty {
			write(t, path, nil)
		}
		if err := os.WriteFile(path+"-wal", wal, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, path)
		storetest.Create(t, s, "s")
		if !bytes.Equal(wal, read(t, path+"-wal.orphan")) {
			t.Error("the log was not kept as it was")
		}
	}
}

func TestAnEmptyFileIsANewStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rind.db")
	write(t, path, nil)
	s, err := sqlite.Open(path, sqlite.Options{Locks: filepath.Join(t.TempDir(), "locks")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	storetest.Create(t, s, "s")
}

func TestOpenTouchesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "sessions", "rind.db"))
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("opening made %v (%v)", left, err)
	}
	_ = s.Close()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("closing made %v (%v)", left, err)
	}
}

func TestDeletedBytesAreInNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions", "rind.db")
	s := open(t, path)
	l := storetest.Create(t, s, "s")
	const word = "xyzzy-plugh-canary"
	e := storetest.Entry(1, "", &protocol.SessionRenamed{Name: word, Title: strings.Repeat(word+" ", 500)})
	if err := storetest.Append(s, l, session.Batch{Entries: []session.Entry{e}, Row: &session.Row{Title: word}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(context.Background(), "s"); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if b, err := os.ReadFile(path + suffix); err == nil && bytes.Contains(b, []byte(word)) {
			t.Errorf("%s still holds the deleted text", path+suffix)
		}
	}
}

func TestAFullDiskIsSaidAndTheStoreGoesOnAfterwards(t *testing.T) {
	path := filled(t)
	s := open(t, path)
	id := session.SessionID("20260102_101112_0000000a")
	l, err := s.Acquire(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	s.LimitPages(t.Context(), 40)
	seq := l.Head
	for err == nil && seq < 500 {
		seq++
		e := storetest.Entry(seq, "", &protocol.SessionRenamed{Name: "n", Title: strings.Repeat("t", 4000)})
		err = storetest.Append(s, l, session.Batch{Entries: []session.Entry{e}})
	}
	if !errors.Is(err, session.ErrFull) || !strings.Contains(err.Error(), "free some space") {
		t.Fatalf("full store: %v", err)
	}
	s.LimitPages(t.Context(), 1<<30)
	e := storetest.Entry(seq, "", &protocol.SessionRenamed{Name: "n", Title: "n"})
	if err := storetest.Append(s, l, session.Batch{Entries: []session.Entry{e}}); err != nil {
		t.Errorf("after space came back: %v", err)
	}
	if h, err := s.Health(context.Background()); err != nil || h.Integrity != "ok" {
		t.Errorf("integrity %q, %v", h.Integrity, err)
	}
}

// golden is the file of the first release.
func golden(t *testing.T) []byte {
	t.Helper()
	return read(t, filepath.Join("..", "..", "..", "fixtures", "store", "schema1.db"))
}

// TestTheFirstSchemaStaysReadable opens the file of the first release. The file is never rewritten once released.
func TestTheFirstSchemaStaysReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rind.db")
	write(t, path, golden(t))
	s, err := sqlite.Open(path, sqlite.Options{Locks: filepath.Join(t.TempDir(), "locks")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := session.SessionID("20260102_101112_0000000a")
	es, err := s.Read(context.Background(), id, 0, 10, protocol.ViewAll)
	if err != nil || len(es) != 3 {
		t.Fatalf("%d entries, %v", len(es), err)
	}
	want := storetest.Entry(2, "", &protocol.SessionRenamed{Name: "n", Title: strings.Repeat("t", 2000)})
	if string(es[1].Event) != string(want.Event) || !es[1].Time.Equal(want.Time) {
		t.Errorf("entry 2 is %s", es[1].Event)
	}
	l, err := s.Acquire(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := storetest.Append(s, l, session.Batch{Entries: []session.Entry{storetest.Entry(4, "", &protocol.SessionRenamed{Name: "n", Title: "n"})}}); err != nil {
		t.Error(err)
	}
	h, err := s.Health(t.Context())
	if err != nil || h.WrittenBy < 2 || h.ReadableFrom != 1 || h.Integrity != "ok" {
		t.Errorf("health after the migration %+v, %v: the first version must be able to go on", h, err)
	}
	r, err := s.AddRule(t.Context(), session.Rule{Workspace: "/w", Tool: "bash", Pattern: "make *", Allow: true})
	if err != nil {
		t.Fatal(err)
	}
	if rules, err := s.Rules(t.Context(), "/w"); err != nil || len(rules) != 1 || rules[0] != r {
		t.Errorf("rules %+v, %v", rules, err)
	}
}

func second[A, B any](_ A, _ B, err error) error { return err }

func only[A any](_ A, err error) error { return err }

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		if info, serr := os.Stat(path); serr == nil && info.IsDir() {
			return nil
		}
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	for _, side := range []string{path + "-wal", path + "-shm"} {
		_ = os.Remove(side)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// query changes a file behind the store's back.
func query(t *testing.T, path, q string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(q + "; PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
}
