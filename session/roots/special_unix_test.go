//go:build unix

package roots_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rind-dev/rind/session/roots"
)

func TestSpecialFilesAreRefusedWithoutWaiting(t *testing.T) {
	l := newLayout(t)
	if err := syscall.Mkfifo(filepath.Join(l.app, "pipe"), 0o644); err != nil {
		t.Skip(err)
	}
	t.Chdir(l.app) // names of sockets are short
	s, err := net.Listen("unix", "sock")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	link(t, "pipe", filepath.Join(l.app, "topipe"))
	link(t, "/dev/zero", filepath.Join(l.app, "zero"))
	r := l.open(t)
	r.Allow("/dev/zero")
	began := time.Now()
	for _, p := range []string{"pipe", "sock", "topipe", "zero", "/dev/zero", "sub"} {
		if _, err := read(t, r, p); reasonOf(t, err) != roots.WrongKind {
			t.Errorf("reading %s: %v", p, err)
		}
		if _, err := r.WriteFile(p, []byte("x"), roots.WriteOptions{}); reasonOf(t, err) != roots.WrongKind {
			t.Errorf("writing %s: %v", p, err)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	d, _, err := r.OpenDir(".")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if f, _, err := d.File("pipe"); err == nil {
		f.Close()
		t.Error("a walk opened a pipe")
	}
}

func TestAWriteProtectedFileStaysAsItIs(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everything")
	}
	l := newLayout(t)
	if err := os.Chmod(filepath.Join(l.app, "a.txt"), 0o444); err != nil {
		t.Fatal(err)
	}
	r := l.open(t)
	if _, err := r.WriteFile("a.txt", []byte("x"), roots.WriteOptions{}); reasonOf(t, err) != roots.Denied {
		t.Error(err)
	}
	if got := content(t, filepath.Join(l.app, "a.txt")); got != "inside app/a.txt" {
		t.Errorf("it holds %q", got)
	}
}
