//go:build unix

package search_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session/tool/search"
)

func TestASearchSkipsWhatIsNoFile(t *testing.T) {
	root := tree(t, map[string]string{"f": "x\n", "big": "", "line": ""})
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o644); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(root, "zero")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", filepath.Join(root, "topipe")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(root, "big"), 1<<40); err != nil {
		t.Skip(err)
	}
	began := time.Now()
	same(t, "grep", grepped(t, root, args{"pattern": "x"}), "f:1:x")
	same(t, "glob", globbed(t, root, args{"pattern": "*"}), "big", "f", "line")
	for _, p := range []string{"pipe", "topipe"} {
		if res := run(t, search.Grep(nil), root, args{"pattern": "x", "path": p}); res.ErrorType != protocol.ErrInvalidArguments {
			t.Errorf("%s: %s %s", p, res.ErrorType, res.Error)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}
