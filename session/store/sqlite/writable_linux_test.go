package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rind-dev/rind/session"
)

// A disk that others filled is noticed before a write fails, and so is that there is room again.
func TestADiskThatIsFullTakesNoWritesAlsoBeforeOneFailed(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("rind", dir, "tmpfs", 0, "size=1048576,mode=700"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "sessions", "rind.db")
	s := open(t, path)
	if err := s.Create(t.Context(), session.Meta{ID: first, ConversationID: "c"}); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	s = open(t, path) // with an empty log
	if _, err := s.Session(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := s.Writable(t.Context()); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	if _ = f.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Writable(t.Context()); !errors.Is(err, session.ErrFull) {
			t.Errorf("on a full disk: %v", err)
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := s.Writable(t.Context()); err != nil {
		t.Errorf("once there is room: %v", err)
	}
	if err := s.Create(t.Context(), session.Meta{ID: "20260102_101112_0000000b", ConversationID: "d"}); err != nil {
		t.Error(err)
	}
	_ = s.Close()
}
