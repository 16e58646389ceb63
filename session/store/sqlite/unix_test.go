//go:build unix

package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/store/storetest"
)

func TestDataIsPrivateWhateverTheUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	root := filepath.Join(t.TempDir(), "root")
	path := filepath.Join(root, "sessions", "rind.db")
	s := open(t, path)
	storetest.Create(t, s, "s")
	seen := 0
	err := filepath.Walk(root, func(name string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		seen++
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[info.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %o", name, info.Mode().Perm())
		}
		return nil
	})
	if err != nil || seen != 7 { // root, sessions, locks; the file, -wal, -shm, the lock
		t.Errorf("%d files and folders, %v", seen, err)
	}
	_ = s.Close()
	if err := os.Chmod(path, 0o644); err != nil { // copied here without care
		t.Fatal(err)
	}
	s = open(t, path)
	if _, err := s.Session(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o, %v", info.Mode().Perm(), err)
	}
}

// limited is a child whose files may not grow beyond a limit, which is taken away once the store is full.
func limited(spec []string) error {
	limit, err := strconv.ParseUint(os.Getenv("RIND_STORE_LIMIT"), 10, 64)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	s, err := sqlite.Open(spec[0], sqlite.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	id := session.SessionID(spec[1])
	ctx, cancel := contextOf(20)
	defer cancel()
	if err := s.Create(ctx, session.Meta{ID: id, ConversationID: "c"}); err != nil {
		return err
	}
	l, err := s.Acquire(ctx, id)
	if err != nil {
		return err
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	low := was
	low.Cur = limit
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &low); err != nil {
		return err
	}
	big := func(seq session.Seq) session.Batch {
		return session.Batch{Entries: []session.Entry{storetest.Entry(seq, "", &protocol.SessionRenamed{Name: "n", Title: strings.Repeat("t", 8000)})}}
	}
	seq := l.Head
	for full := false; !full; { // what failed may have left room: the log is emptied when nobody has it open any more
		for err = nil; err == nil && seq < 1000; {
			seq++
			err = storetest.Append(s, l, big(seq))
		}
		if !errors.Is(err, session.ErrFull) || !strings.Contains(err.Error(), "free some space") {
			return fmt.Errorf("the full disk gave: %w", err)
		}
		err := s.Writable(ctx)
		if full = err != nil; full && !errors.Is(err, session.ErrFull) {
			return fmt.Errorf("the full disk is told of as: %w", err)
		}
		if full {
			break
		}
		if err := storetest.Append(s, l, big(seq)); err != nil {
			return fmt.Errorf("what is said to take writes gave: %w", err)
		}
	}
	es, err := s.Read(ctx, id, 0, 2000, protocol.ViewAll)
	if err != nil || len(es) != int(seq)-1 {
		return fmt.Errorf("%d of %d entries while the disk is full: %w", len(es), seq-1, err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	if err := s.Writable(ctx); err != nil {
		return fmt.Errorf("it does not take writes again: %w", err)
	}
	if err := storetest.Append(s, l, big(seq)); err != nil {
		return fmt.Errorf("after space came back: %w", err)
	}
	if h, err := s.Health(ctx); err != nil || h.Integrity != "ok" {
		return fmt.Errorf("integrity %q, %w", h.Integrity, err)
	}
	fmt.Println(seq)
	return nil
}

func TestFilesThatMayNotGrowAreAFullDisk(t *testing.T) {
	for _, limit := range []int{100 << 10, 900 << 10} {
		path := filepath.Join(t.TempDir(), "sessions", "rind.db")
		cmd, out := start(t, path, "s", 0, "", fmt.Sprintf("RIND_STORE_LIMIT=%d", limit))
		if err := cmd.Wait(); err != nil {
			t.Fatalf("limit of %d bytes: %v", limit, err)
		}
		n, _ := strconv.Atoi(strings.TrimSpace(out.String()))
		s := open(t, path)
		if es, err := s.Read(t.Context(), "s", 0, 2000, protocol.ViewAll); err != nil || len(es) != n || n == 0 {
			t.Errorf("limit of %d bytes: %d entries, %d were acknowledged (%v)", limit, len(es), n, err)
		}
	}
}

func TestTheDeadAreSweptAndTheLivingStay(t *testing.T) {
	path := filled(t)
	locks := filepath.Join(filepath.Dir(filepath.Dir(path)), "locks")
	living := open(t, path)
	if _, err := living.Acquire(t.Context(), "20260102_101112_0000000a"); err != nil {
		t.Fatal(err)
	}
	alive, err := os.ReadDir(locks)
	if err != nil || len(alive) != 1 {
		t.Fatalf("%v, %v", alive, err)
	}
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(locks, fmt.Sprintf("%032x", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := open(t, path)
	if _, err := other.Acquire(t.Context(), "20260102_101112_0000000a"); !errors.Is(err, session.ErrBusy) {
		t.Errorf("lease of the living: %v", err)
	}
	left, err := os.ReadDir(locks)
	if err != nil || len(left) != 2 {
		t.Errorf("%d lock files are left, want those of the two that live (%v)", len(left), err)
	}
	_, _ = living.Close(), other.Close()
	if left, err := os.ReadDir(locks); err != nil || len(left) != 0 {
		t.Errorf("lock files after close: %v, %v", left, err)
	}
}

// TestThoseWhoAskDoNotTakeEachOtherForTheOwner asks from many sides at once whether an instance lives that does not.
func TestThoseWhoAskDoNotTakeEachOtherForTheOwner(t *testing.T) {
	locks := t.TempDir()
	for round := range 50 {
		id := fmt.Sprintf("%032x", round)
		if err := os.WriteFile(filepath.Join(locks, id), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if sqlite.Alive(locks, id) {
					t.Error("a dead instance was taken for alive")
				}
			})
		}
		wg.Wait()
	}
}
