package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
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

const first = session.SessionID("20260102_101112_0000000a")

// forever is a query that ends when it is interrupted.
const forever = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"

func within(t *testing.T, limit time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("%s: not over after %s", what, limit)
	}
}

func TestAReadThatComesTooLateIsToldThatTheStoreIsClosed(t *testing.T) {
	s := open(t, filled(t))
	within(t, 10*time.Second, "a read behind Close", func() {
		if err := s.BorrowBehindClose(context.Background()); !errors.Is(err, session.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestCloseEndsReadsThatRunAndThoseThatWaitForThem(t *testing.T) {
	s := open(t, filled(t))
	answers := make(chan error, 12)
	begun := make(chan struct{}, 12)
	for range 12 { // more than there are connections
		go func() {
			answers <- s.Each(context.Background(), func(int64) error {
				begun <- struct{}{}
				return s.Each(context.Background(), func(int64) error { return nil }, forever)
			}, "SELECT 1")
		}()
	}
	<-begun
	within(t, 10*time.Second, "Close", func() { _ = s.Close() })
	for range 12 {
		if err := <-answers; !errors.Is(err, session.ErrClosed) {
			t.Error(err)
		}
	}
}

// TestCloseWaitsForNoReaderOfALockedFile: reads wait for another process that has the file to itself, Close does not wait for them.
func TestCloseWaitsForNoReaderOfALockedFile(t *testing.T) {
	t.Cleanup(sqlite.ShortenWaits(time.Minute, time.Hour))
	path := filled(t)
	s := open(t, path)
	if _, err := s.Session(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	s.DropReaders() // so that it is nobody's, and the other one can have it alone
	db, err := sql.Open("sqlite", path+"?_pragma=locking_mode(exclusive)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("UPDATE meta SET value = value"); err != nil {
		t.Fatal(err)
	}
	answers := make(chan error, 8)
	for range 8 {
		go func() { _, err := s.Session(context.Background(), first); answers <- err }()
	}
	time.Sleep(20 * time.Millisecond) // some wait by now; the test holds whether they do or not
	began := time.Now()
	_ = s.Close()
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("Close took %s", d)
	}
	for range 8 {
		if err := <-answers; !errors.Is(err, session.ErrClosed) {
			t.Error(err)
		}
	}
}

// TestAReadThatWasGivenUpHarmsNoOther gives up reads at odd moments, beside others on the same few connections.
func TestAReadThatWasGivenUpHarmsNoOther(t *testing.T) {
	s := open(t, filled(t))
	ends := time.Now().Add(time.Second)
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			for time.Now().Before(ends) {
				switch i % 3 {
				case 0:
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(500))*time.Microsecond)
					if err := s.Each(ctx, func(int64) error { return nil }, forever); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("one that was given up: %v", err)
					}
					cancel()
				case 1:
					ctx, cancel := context.WithCancel(t.Context())
					go cancel() // about when it ends by itself
					if _, err := s.Turns(ctx, session.TurnQuery{Limit: 10}); err != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("one that was given up late: %v", err)
					}
					cancel()
				default:
					if ms, _, err := s.Sessions(t.Context(), session.Query{Limit: 10, All: true}); err != nil || len(ms) != 1 {
						t.Errorf("a list: %d, %v", len(ms), err)
					}
					if es, err := s.Read(t.Context(), first, 0, 10, protocol.ViewAll); err != nil || len(es) != 3 {
						t.Errorf("a page: %d, %v", len(es), err)
					}
				}
			}
		})
	}
	all.Wait()
	if open := s.LeftOpen(t.Context()); len(open) > 0 {
		t.Errorf("left open: %q", open)
	}
}

// TestNothingIsLeftOpen: a statement that has not ended keeps the WAL from being emptied.
func TestNothingIsLeftOpen(t *testing.T) {
	path := twoSessions(t)
	query(t, path, `UPDATE entries SET event = '{"broken' WHERE seq = 30 AND session = (SELECT id FROM sessions WHERE session = 'damaged')`)
	s := open(t, path)
	ctx := t.Context()
	given, cancel := context.WithCancel(ctx)
	cancel()
	expired, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	mine := errors.New("mine")
	letter, err := s.Post(ctx, healthy, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]func() error{
		"a page with a row that is damaged": func() error { return only(s.Read(ctx, damaged, 0, 100, protocol.ViewAll)) },
		"a page that ends before":           func() error { return only(s.Read(ctx, damaged, 0, 10, protocol.ViewAll)) },
		"no row":                            func() error { return only(s.Outcome(ctx, 999)) },
		"one row of many":                   func() error { return only(s.Session(ctx, healthy)) },
		"an early return":                   func() error { return s.EachShort(ctx, func(int64) error { return mine }, "SELECT seq FROM entries") },
		"given up before":                   func() error { return only(s.Read(given, healthy, 0, 10, protocol.ViewAll)) },
		"given up":                          func() error { return s.Each(expired, func(int64) error { return nil }, forever) },
		"no statement":                      func() error { return s.Each(ctx, nil, "SELECT FROM") },
		"one that fails within": func() error {
			return s.Each(ctx, func(int64) error { return nil }, "SELECT abs(-9223372036854775807 - (seq > 20)) FROM entries")
		},
		"one that panics": func() (err error) {
			defer func() { err = errors.New(recover().(string)) }()
			return s.EachShort(ctx, func(int64) error { panic("here") }, "SELECT seq FROM entries")
		},
		"a letter answered":   func() error { return s.Settle(ctx, letter, []byte(`{}`)) },
		"no letter":           func() error { return s.Settle(ctx, letter+9, []byte(`{}`)) },
		"a health check":      func() error { return only(s.Health(ctx)) },
		"a session twice":     func() error { return s.Create(ctx, session.Meta{ID: healthy}) },
		"a lease of nothing":  func() error { return only(s.Acquire(ctx, "none")) },
		"a batch without one": func() error { return storetest.Append(s, session.Lease{Session: healthy}, fact(99)) },
		"a prune":             func() error { return only(s.Prune(ctx, time.Unix(0, 0))) },
	} {
		err := f()
		if open := s.LeftOpen(ctx); len(open) > 0 {
			t.Errorf("%s (%v) left open: %q", what, err, open)
		}
		if _, err := s.Post(ctx, healthy, []byte(`{}`)); err != nil {
			t.Errorf("after %s: %v", what, err)
		}
		s.Checkpoint(ctx)
		if info, err := os.Stat(path + "-wal"); err != nil || info.Size() > 0 {
			t.Errorf("after %s: the WAL holds %d bytes (%v)", what, info.Size(), err)
		}
	}
}

func TestStoresThatAreClosedLeaveNoDescriptorAndNoGoroutine(t *testing.T) {
	path := filled(t)
	count := func() (descriptors, routines int) {
		list, _ := os.ReadDir("/proc/self/fd") // none elsewhere
		return len(list), runtime.NumGoroutine()
	}
	use := func() {
		s, err := sqlite.Open(path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				if _, _, err := s.Sessions(ctx, session.Query{Limit: 10, All: true}); err != nil && ctx.Err() == nil && !errors.Is(err, session.ErrClosed) {
					t.Error(err)
				}
				if i == 0 {
					_, _ = s.Watch(ctx)
					_, _ = s.Acquire(ctx, first)
				}
				if i == 1 {
					cancel()
				}
			})
		}
		all.Wait()
		_ = s.Close()
	}
	use()
	fds, routines := count()
	for range 100 {
		use()
	}
	testkit.Eventually(t, "no more descriptors and goroutines than before", func() bool { // goroutines that were told to end do so by themselves
		f, r := count()
		return f <= fds && r <= routines
	})
}

func TestConnectionsThatNobodyUsesAreClosed(t *testing.T) {
	defer sqlite.ShortenIdle(20 * time.Millisecond)()
	s := open(t, filled(t))
	for range 3 {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, err := s.Session(t.Context(), first); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		testkit.Eventually(t, "none is kept", func() bool { return s.Idle() == 0 }) // closing tells nobody
	}
}

// TestAFileThatIsGoneIsWrittenNoMore: what is written to a file that was removed or replaced is lost, so it is not acknowledged.
func TestAFileThatIsGoneIsWrittenNoMore(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file stays where it is")
	}
	for what, take := range map[string]func(t *testing.T, path string){
		"removed": func(t *testing.T, path string) {
			for _, suffix := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(path + suffix)
			}
		},
		"replaced": func(t *testing.T, path string) {
			if err := os.Rename(filled(t), path); err != nil {
				t.Fatal(err)
			}
		},
		"moved": func(t *testing.T, path string) {
			if err := os.Rename(filepath.Dir(path), filepath.Dir(path)+"-2"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, wrote := range []bool{true, false} {
			path := filled(t)
			s := open(t, path)
			l, err := s.Acquire(t.Context(), first)
			if err != nil {
				t.Fatal(err)
			}
			_ = s.Close()
			s = open(t, path)
			if wrote {
				if l, err = s.Acquire(t.Context(), first); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Session(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			take(t, path)
			left, _ := os.ReadDir(filepath.Dir(path))
			for range 2 {
				err = storetest.Append(s, l, fact(4))
				if !errors.Is(err, session.ErrReadOnly) || !strings.Contains(err.Error(), path+" was removed or replaced") || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s, wrote before: %v: %v", what, wrote, err)
				}
			}
			if err := s.Writable(t.Context()); !errors.Is(err, session.ErrReadOnly) {
				t.Errorf("%s, wrote before: %v: it takes writes: %v", what, wrote, err)
			}
			if es, err := s.Read(t.Context(), first, 0, 10, protocol.ViewAll); err != nil || len(es) != 3 {
				t.Errorf("%s: what was acknowledged: %d entries, %v", what, len(es), err)
			}
			if now, _ := os.ReadDir(filepath.Dir(path)); len(now) > len(left) {
				t.Errorf("%s: %v was made", what, now)
			}
			if what == "moved" {
				if err := os.Rename(filepath.Dir(path)+"-2", filepath.Dir(path)); err != nil {
					t.Fatal(err)
				}
				if l, err = s.Acquire(t.Context(), first); err != nil {
					t.Error(err)
				} else if err := storetest.Append(s, l, fact(4)); err != nil {
					t.Errorf("once it was put back: %v", err)
				}
				if err := s.Writable(t.Context()); err != nil {
					t.Errorf("once it was put back it takes no writes: %v", err)
				}
			}
			_ = s.Close()
		}
	}
}

func TestAnyPathNamesItsFile(t *testing.T) {
	for path, want := range map[string]string{
		"/home/a b/ä?#%41;&=+": "file:///home/a%20b/%C3%A4%3F%23%2541;&=+",
		"C:/Users/a b/x.db":    "file:///C:/Users/a%20b/x.db",
		"//server/share/x.db":  "file:////server/share/x.db",
	} {
		if got := sqlite.FileURI(path); got != want {
			t.Errorf("%s is named %s", path, got)
		}
	}
	if runtime.GOOS == "windows" {
		t.Skip("names of files have fewer letters there")
	}
	for _, name := range []string{"a b", "what?", "c#", "100%", "%41", "a&b=c;d", "mode=ro", "ä 日", "-", "a\\b", "a\nb", "x.db?mode=memory"} {
		path := filepath.Join(t.TempDir(), name, name)
		s := open(t, path)
		storetest.Create(t, s, "s")
		_ = s.Close()
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q: %v", name, err)
		}
		s = open(t, path)
		if _, err := s.Session(t.Context(), "s"); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
