package roots_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rind-dev/rind/session/roots"
)

// TestAFolderSwappedForALinkWhileItIsOpenedLeadsNowhere exchanges a folder with a link that leads outside, as fast as it can, while files in
// it are read, written, walked and removed.
func TestAFolderSwappedForALinkWhileItIsOpenedLeadsNowhere(t *testing.T) {
	for _, c := range []struct {
		name, swapped, decoy, path string
		rounds                     int
	}{
		{"folder above", "d", "out", "d/f", 500},
		{"folder further up", "d", "out", "d/sub/f", 500},
		{"the file itself", "d/f", "alias", "d/f", 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLayout(t)
			for _, dir := range []string{l.app + "/d/sub", l.other + "/sub"} {
				mkdir(t, dir)
			}
			for _, f := range []string{"/d/f", "/d/sub/f"} {
				write(t, l.app+f, "inside")
			}
			for _, f := range []string{"/f", "/sub/f", "/new"} {
				write(t, l.other+f, canary)
			}
			link(t, l.other, l.app+"/out")
			link(t, l.other+"/f", l.app+"/alias")
			before := l.outside(t)
			stop := swap(t, filepath.Join(l.app, c.swapped), filepath.Join(l.app, c.decoy))
			r := l.open(t)
			inside, refused := 0, 0
			for range c.rounds {
				got, err := read(t, r, c.path)
				switch {
				case strings.Contains(got, "CANARY"):
					t.Fatal("a file outside was read")
				case err == nil:
					inside++
				default:
					refused++
				}
				_, _ = r.WriteFile(c.path, []byte("inside"), roots.WriteOptions{})
				_, _ = r.WriteFile(filepath.Dir(c.path)+"/fresh/new", []byte("inside"), roots.WriteOptions{})
				_ = r.Remove(filepath.Dir(c.path) + "/fresh/new")
				if d, _, err := r.OpenDir(filepath.Dir(c.path)); err == nil {
					if f, _, err := d.File("secret"); err == nil {
						_ = f.Close()
						t.Fatal("a file outside was met on a walk")
					}
					d.Close()
				}
				rearm(t, filepath.Join(l.app, c.swapped), filepath.Join(l.app, c.decoy), l.other+"/f")
			}
			stop()
			l.untouched(t, before)
			t.Logf("%d read inside, %d refused", inside, refused)
		})
	}
}

// rearm makes the link anew that a write has replaced: a rename takes the place of a link, it does not follow it.
func rearm(t *testing.T, a, b, target string) {
	t.Helper()
	for _, name := range []string{a, b, a, b} { // looked at twice: they change places meanwhile
		if _, err := os.Readlink(name); err == nil {
			return
		}
	}
	if os.Remove(b) == nil {
		_ = os.Symlink(target, b)
	}
}

// swap exchanges two names until it is stopped.
func swap(t *testing.T, a, b string) (stop func()) {
	t.Helper()
	exchange := func() error { return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) }
	if err := exchange(); err != nil {
		t.Skipf("this file system cannot exchange names: %v", err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = exchange() // the name may be missing for a moment
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		wg.Wait()
	})
}
