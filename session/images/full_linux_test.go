package images_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/images"
)

// A file size limit stands in for a full disk, in a process of its own: it holds for all of a process.
func TestAFullDiskIsSaidAndLeavesNothingBehind(t *testing.T) {
	if dir := os.Getenv("IMAGES_TEST_DIR"); dir != "" {
		limit := syscall.Rlimit{Cur: 4096, Max: 4096}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Skip(err)
		}
		s := images.New(func(session.SessionID) string { return dir }, images.Options{})
		if _, err := s.Keep(t.Context(), id, bytes.Repeat([]byte("x"), 10_000)); !errors.Is(err, session.ErrFull) {
			t.Errorf("on a full disk: %v", err)
		}
		if _, err := s.Keep(t.Context(), id, []byte("small")); err != nil {
			t.Errorf("once there is room: %v", err)
		}
		return
	}
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestAFullDiskIsSaidAndLeavesNothingBehind$", "-test.v")
	child.Env = append(os.Environ(), "IMAGES_TEST_DIR="+dir)
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	left, err := os.ReadDir(filepath.Join(dir, "before"))
	if err != nil || len(left) != 1 || left[0].Name() != protocol.Digest([]byte("small")) {
		t.Errorf("left: %v, %v", left, err)
	}
}
