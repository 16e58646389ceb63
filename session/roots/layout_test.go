package roots_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/session/roots"
)

const canary = "CANARY: nobody reads this"

// layout is a workspace app with a second root lib, and beside them what must stay untouched.
type layout struct{ top, app, lib, other, evil string }

func newLayout(t *testing.T) layout {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := layout{top, filepath.Join(top, "app"), filepath.Join(top, "lib"), filepath.Join(top, "other"), filepath.Join(top, "app-evil")}
	for _, d := range []string{l.app, l.lib, l.other, l.evil, filepath.Join(l.app, "sub")} {
		mkdir(t, d)
	}
	write(t, filepath.Join(l.app, "a.txt"), "inside app/a.txt")
	write(t, filepath.Join(l.app, "sub", "b.txt"), "inside app/sub/b.txt")
	write(t, filepath.Join(l.lib, "c.txt"), "inside lib/c.txt")
	write(t, filepath.Join(l.other, "secret"), canary)
	write(t, filepath.Join(l.evil, "secret"), canary)
	return l
}

func (l layout) open(t *testing.T) *roots.Roots {
	t.Helper()
	r, err := roots.Open(l.app, l.lib)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// outside tells everything that lies outside the roots: names, modes, link targets, contents.
func (l layout) outside(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(l.top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == l.app || path == l.lib {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v", path, info.Mode())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %s", data)
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func (l layout) untouched(t *testing.T, before string) {
	t.Helper()
	if after := l.outside(t); after != before {
		t.Fatalf("outside the roots something changed:\nbefore:\n%s\nafter:\n%s", before, after)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Skipf("links cannot be made here: %v", err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
