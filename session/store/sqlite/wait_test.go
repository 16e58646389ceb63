package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/store/storetest"
)

// hold locks a file as another process that writes would.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(context.Background(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	release = func() {
		once.Do(func() {
			_, _ = conn.ExecContext(context.Background(), "ROLLBACK")
			_ = conn.Close()
			_ = db.Close()
		})
	}
	t.Cleanup(release)
	return release
}

func TestAWriterWaitsForAnotherProcessAndReadersDoNot(t *testing.T) {
	path := filled(t)
	s := open(t, path)
	l, err := s.Acquire(t.Context(), "20260102_101112_0000000a")
	if err != nil {
		t.Fatal(err)
	}
	release := hold(t, path)
	done := make(chan error, 1)
	s.Append(l, fact(4), func(err error) { done <- err })
	if es, err := s.Read(t.Context(), l.Session, 0, 10, protocol.ViewAll); err != nil || len(es) != 3 {
		t.Errorf("read while another process writes: %d entries, %v", len(es), err)
	}
	select {
	case err := <-done:
		t.Fatalf("acknowledged while another process held the file: %v", err)
	case <-time.After(50 * time.Millisecond): // it cannot come
	}
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAFileThatStaysLockedGivesATypedErrorAndIsUsableAfterwards(t *testing.T) {
	t.Cleanup(sqlite.ShortenWaits(100*time.Millisecond, time.Hour))
	path := filled(t)
	s := open(t, path)
	l, err := s.Acquire(t.Context(), "20260102_101112_0000000a")
	if err != nil {
		t.Fatal(err)
	}
	release := hold(t, path)
	first, second := make(chan error, 1), make(chan error, 1)
	s.Append(l, fact(4), func(err error) { first <- err })
	s.Append(l, fact(5), func(err error) { second <- err })
	err = <-first
	if !errors.Is(err, session.ErrLocked) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "database is locked") {
		t.Errorf("append: %v", err)
	}
	if err := <-second; err == nil {
		t.Error("a batch behind the failed one was acknowledged")
	}
	if err := s.Writable(t.Context()); !errors.Is(err, session.ErrLocked) {
		t.Errorf("writable: %v", err)
	}
	release()
	if err := s.Writable(t.Context()); err != nil {
		t.Errorf("writable, once nobody holds it: %v", err)
	}
	if err := storetest.Append(s, l, fact(4)); err != nil {
		t.Error(err)
	}
	_ = s.Close()
}

func TestALockedFileDelaysNeitherOpenNorAppend(t *testing.T) {
	path := filled(t)
	db, err := sql.Open("sqlite", path+"?_pragma=locking_mode(exclusive)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("UPDATE meta SET value = value"); err != nil { // nobody else can even read
		t.Fatal(err)
	}
	s := open(t, path)
	answers := make(chan error, 100)
	for i := range session.Seq(100) {
		s.Append(session.Lease{Session: "20260102_101112_0000000a", Epoch: 1, Head: 3}, fact(4+i), func(err error) { answers <- err })
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Session(ctx, "20260102_101112_0000000a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call waited longer than its context: %v", err)
	}
	_ = db.Close()
	for range 100 {
		if err := <-answers; !errors.Is(err, session.ErrFenced) {
			t.Fatalf("after the lock: %v", err)
		}
	}
}

func TestACallThatWasGivenUpDoesNothingLater(t *testing.T) {
	path := filled(t)
	s := open(t, path)
	release := hold(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { failed <- s.Create(ctx, session.Meta{ID: "late", ConversationID: "late"}) }()
	busy := make(chan error, 1)
	go func() { busy <- s.Create(t.Context(), session.Meta{ID: "kept", ConversationID: "kept"}) }()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled create: %v", err)
	}
	release()
	if err := <-busy; err != nil {
		t.Fatal(err)
	}
	if _, err := s.Session(t.Context(), "late"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("the cancelled session: %v", err)
	}
}

func TestAFactIsFlushedAnIncrementIsNot(t *testing.T) {
	s := open(t, filled(t))
	l, err := s.Acquire(t.Context(), "20260102_101112_0000000a")
	if err != nil {
		t.Fatal(err)
	}
	delta := storetest.Entry(5, "", &protocol.AssistantDelta{Text: "x"})
	mixed := session.Batch{Entries: []session.Entry{storetest.Entry(6, "", &protocol.AssistantDelta{Text: "x"}), fact(7).Entries[0]}}
	for _, c := range []struct {
		b    session.Batch
		want int
	}{{fact(4), 2}, {session.Batch{Entries: []session.Entry{delta}}, 1}, {mixed, 2}} {
		if err := storetest.Append(s, l, c.b); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Synchronous(t.Context()); err != nil || got != c.want {
			t.Errorf("synchronous is %d, want %d (%v)", got, c.want, err)
		}
	}
}

// TestTheWALStaysBoundedUnderReaders writes while readers page and one has stopped after its first page.
func TestTheWALStaysBoundedUnderReaders(t *testing.T) {
	t.Cleanup(sqlite.ShortenWaits(5*time.Second, 50*time.Millisecond))
	path := filepath.Join(t.TempDir(), "sessions", "rind.db")
	s := open(t, path)
	l := storetest.Create(t, s, "s")
	const batches, each = 100, 200
	ended := make(chan struct{})
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			at := session.Seq(0)
			for stopped := false; ; {
				select {
				case <-ended:
					return
				default:
				}
				if stopped {
					<-ended // its client does not read: nothing of the store is held
					return
				}
				page, err := s.Read(context.Background(), "s", at, 256, protocol.ViewAll)
				if err != nil {
					t.Error(err)
					return
				}
				if len(page) == 256 {
					at = page[255].Seq
					stopped = i == 0
				} else {
					at = 0 // again from the start
				}
			}
		})
	}
	text := strings.Repeat("text of a model ", 30)
	most := int64(0)
	acks := make(chan error, batches)
	for n := range session.Seq(batches) {
		var b session.Batch
		for i := range session.Seq(each) {
			b.Entries = append(b.Entries, storetest.Entry(n*each+i+1, "", &protocol.AssistantDelta{Text: text}))
		}
		s.Append(l, b, func(err error) { acks <- err })
		if n%4 == 3 {
			for range 4 {
				if err := <-acks; err != nil {
					t.Fatal(err)
				}
			}
			if info, err := os.Stat(path + "-wal"); err == nil {
				most = max(most, info.Size())
			}
		}
	}
	close(ended)
	readers.Wait()
	if most >= 64<<20 {
		t.Errorf("the WAL grew to %d MiB", most>>20)
	}
	testkit.Eventually(t, "the WAL of an idle store is cut", func() bool { // the checkpoint tells nobody
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size() < 4<<20
	})
	t.Logf("the WAL grew to %.1f MiB", float64(most)/(1<<20))
	_ = s.Close()
}

func TestSettledLettersGoWithTheSecondPrune(t *testing.T) {
	s := open(t, filled(t))
	id, ctx := session.SessionID("20260102_101112_0000000a"), t.Context()
	var letters []int64
	for range 2 {
		n, err := s.Post(ctx, id, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		letters = append(letters, n)
	}
	if err := s.Settle(ctx, letters[0], []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []error{nil, session.ErrNotFound} {
		if _, err := s.Prune(ctx, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Outcome(ctx, letters[0]); !errors.Is(err, want) {
			t.Errorf("settled letter: %v, want %v", err, want)
		}
		if _, err := s.Outcome(ctx, letters[1]); err != nil {
			t.Errorf("open letter: %v", err)
		}
	}
}
