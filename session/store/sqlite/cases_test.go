package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/storetest"
)

func TestNoiseInOneSessionDoesNotHideTheOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions", "rind.db")
	s := open(t, path)
	for _, id := range []session.SessionID{"good", "bad"} {
		l := storetest.Create(t, s, id)
		var es []session.Entry
		for i := range 3 {
			es = append(es, storetest.Entry(session.Seq(i+1), "", &protocol.SessionRenamed{Name: "n", Title: "n"}))
		}
		if err := storetest.Append(s, l, session.Batch{Entries: es, Row: &session.Row{UserPrompt: true}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	query(t, path, "UPDATE entries SET event = x'ff00ff' WHERE seq = 2 AND session = (SELECT id FROM sessions WHERE session = 'bad')")
	s = open(t, path)
	if es, err := s.Read(context.Background(), "good", 0, 10, protocol.ViewAll); err != nil || len(es) != 3 {
		t.Errorf("the good session: %d entries, %v", len(es), err)
	}
	if _, err := s.Read(context.Background(), "bad", 0, 10, protocol.ViewAll); !errors.Is(err, session.ErrCorrupt) || !strings.Contains(err.Error(), "entry 2") {
		t.Errorf("the bad session: %v", err)
	}
	if ms, _, err := s.Sessions(context.Background(), session.Query{Limit: 9}); err != nil || len(ms) != 2 {
		t.Errorf("the list: %d, %v", len(ms), err)
	}
}

func TestAWriterWaitsForAnotherOneThatHoldsTheFile(t *testing.T) {
	path := filled(t)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(context.Background(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	held := time.AfterFunc(700*time.Millisecond, func() { _, _ = conn.ExecContext(context.Background(), "COMMIT") })
	defer held.Stop()
	s := open(t, path)
	l, err := s.Acquire(context.Background(), "20260102_101112_0000000a")
	if err != nil {
		t.Fatalf("lease while another process writes: %v", err)
	}
	e := storetest.Entry(4, "", &protocol.SessionRenamed{Name: "n", Title: "n"})
	if err := storetest.Append(s, l, session.Batch{Entries: []session.Entry{e}}); err != nil {
		t.Errorf("append: %v", err)
	}
}

func TestAStalledReaderDoesNotLetTheLogGrow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions", "rind.db")
	s := open(t, path)
	l := storetest.Create(t, s, "s")
	seq, most := session.Seq(0), int64(0)
	for range 100 { // 50,000 entries, the reader having taken one page and then nothing
		var es []session.Entry
		for range 500 {
			seq++
			es = append(es, storetest.Entry(seq, "", &protocol.AssistantDelta{Text: strings.Repeat("x", 200)}))
		}
		if err := storetest.Append(s, l, session.Batch{Entries: es}); err != nil {
			t.Fatal(err)
		}
		if seq == 500 {
			if page, err := s.Read(context.Background(), "s", 0, 256, protocol.ViewAll); err != nil || len(page) != 256 {
				t.Fatalf("page: %d, %v", len(page), err)
			}
		}
		if info, err := os.Stat(path + "-wal"); err == nil {
			most = max(most, info.Size())
		}
	}
	if most > 64<<20 {
		t.Errorf("the write-ahead log grew to %d bytes", most)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 4<<20 {
		t.Errorf("%d bytes of it are left", info.Size())
	}
}
