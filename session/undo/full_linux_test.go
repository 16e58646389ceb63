package undo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file size limit stands in for a full disk, in a process of its own: it holds for all of a process.
func TestADiskThatIsFullMidwayLeavesEveryFileWholeAndIsTold(t *testing.T) {
	if os.Getenv("UNDO_TEST_CHILD") == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestADiskThatIsFullMidwayLeavesEveryFileWholeAndIsTold$", "-test.v")
		child.Env = append(os.Environ(), "UNDO_TEST_CHILD=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	large := strings.Repeat("x", 100_000)
	d := newDesk(t, map[string]string{"a": "1", "large": large, "z": "1"})
	d.turn(write("a", "2"), write("large", "2"), write("z", "2"))
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Skip(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 50_000, Max: was.Max}); err != nil {
		t.Skip(err)
	}
	u, err := d.process.undo.Undo(t.Context(), d.id, "")
	if err != nil || fates(u) != "a restored, large not_kept, z restored" || !strings.Contains(u.Files[1].Reason, "not restored") {
		t.Errorf("%+v, %v", u, err)
	}
	if d.get("a") != "1" || d.get("large") != "2" || d.get("z") != "1" {
		t.Errorf("%q, large has %d bytes, %q", d.get("a"), len(d.get("large")), d.get("z"))
	}
	if left, err := filepath.Glob(d.at(".rind-*")); err != nil || left != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	d.undone("", "a restored, large restored, z restored")
	if d.get("large") != large {
		t.Error("the large file is not as before")
	}
}
