//go:build unix

package files_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session/tool/files"
)

func TestSpecialFilesAreRefusedByEveryToolWithoutWaiting(t *testing.T) {
	w := newWorkspace(t, nil)
	if err := syscall.Mkfifo(w.at("pipe"), 0o644); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("/dev/zero", w.at("zero")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for path, kind := range map[string]string{"pipe": protocol.ErrInvalidArguments, "zero": protocol.ErrPermissionDenied} {
		refused(t, w.run(t, files.ReadFile(), args{"path": path}), protocol.ToolRejected, kind)
		refused(t, w.run(t, files.WriteFile(nil), args{"path": path, "content": "x"}), protocol.ToolRejected, kind)
		refused(t, w.run(t, files.EditFile(nil), args{"path": path, "old_str": "x", "new_str": "y"}), protocol.ToolRejected, kind)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestAFolderThatMayNotBeWrittenIsSaid(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	w := newWorkspace(t, map[string]string{"locked/f": "word"})
	if err := os.Chmod(w.at("locked"), 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(w.at("locked"), 0o755) })
	refused(t, w.run(t, files.WriteFile(nil), args{"path": "locked/f", "content": "x"}), protocol.ToolFailed, protocol.ErrPermissionDenied, "permission denied")
	refused(t, w.run(t, files.WriteFile(nil), args{"path": "locked/new", "content": "x"}), protocol.ToolFailed, protocol.ErrPermissionDenied, "permission denied")
}
