package sqlite_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/store/storetest"
)

// Whoever asks each second whether writes are taken has nothing written for it, but once behind a write that failed: that one is as large as the start
// of an execution, and nothing of it is there afterwards.
func TestAskingWhetherWritesAreTakenWritesOnlyBehindOneThatFailed(t *testing.T) {
	t.Cleanup(sqlite.ShortenWaits(5*time.Second, time.Hour)) // the log is not emptied meanwhile
	path := filled(t)
	s := open(t, path)
	l, err := s.Acquire(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Session(t.Context(), first); err != nil { // whoever reads keeps the log where it is when the writer begins anew
		t.Fatal(err)
	}
	ask := func() (grown int) {
		t.Helper()
		before := read(t, path+"-wal")
		if err := s.Writable(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := read(t, path+"-wal")
		if !bytes.HasPrefix(after, before) {
			t.Error("the log was begun anew")
		}
		return len(after) - len(before)
	}
	for range 3 {
		if grown := ask(); grown != 0 {
			t.Errorf("while all is well asking wrote %d bytes", grown)
		}
	}
	s.LimitPages(t.Context(), 20)
	e := storetest.Entry(4, "", &protocol.SessionRenamed{Name: "n", Title: strings.Repeat("t", 100_000)})
	if err := storetest.Append(s, l, session.Batch{Entries: []session.Entry{e}}); !errors.Is(err, session.ErrFull) {
		t.Fatal(err)
	}
	if grown := ask(); grown < 64<<10 || grown > 128<<10 { // the limit went with the connection
		t.Errorf("behind a write that failed asking wrote %d bytes", grown)
	}
	for range 3 {
		if grown := ask(); grown != 0 {
			t.Errorf("behind one that went well asking wrote %d bytes", grown)
		}
	}
	left := 0
	if err := s.Each(t.Context(), func(int64) error { left++; return nil }, "SELECT 1 FROM meta WHERE name = 'probe'"); err != nil || left > 0 {
		t.Errorf("%d are left, %v", left, err)
	}
	if h, err := s.Health(t.Context()); err != nil || h.Integrity != "ok" || h.Entries != 3 {
		t.Errorf("%+v, %v", h, err)
	}
	if err := storetest.Append(s, l, fact(4)); err != nil {
		t.Error(err)
	}
}
