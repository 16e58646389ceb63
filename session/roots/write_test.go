package roots_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rind-dev/rind/session/roots"
)

// leftovers are temporary files that were not removed.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), ".rind-") {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAWriteReplacesTheFileAndKeepsItsModeAndItsLinks(t *testing.T) {
	l := newLayout(t)
	if err := os.Chmod(filepath.Join(l.app, "a.txt"), 0o751); err != nil {
		t.Fatal(err)
	}
	link(t, "../app/a.txt", filepath.Join(l.lib, "alias"))
	link(t, "sub/made/later.txt", filepath.Join(l.app, "dangling"))
	r := l.open(t)
	place, err := r.WriteFile(filepath.Join(l.lib, "alias"), []byte("new"), roots.WriteOptions{})
	if err != nil || place.Abs != filepath.Join(l.app, "a.txt") {
		t.Fatalf("%+v, %v", place, err)
	}
	info, err := os.Lstat(filepath.Join(l.app, "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode() != 0o751 {
		t.Errorf("mode is %v", info.Mode())
	}
	if content(t, filepath.Join(l.app, "a.txt")) != "new" {
		t.Error("the target was not written")
	}
	if info, err := os.Lstat(filepath.Join(l.lib, "alias")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if _, err := r.WriteFile("dangling", []byte("born"), roots.WriteOptions{}); err != nil || content(t, filepath.Join(l.app, "sub/made/later.txt")) != "born" {
		t.Errorf("a dangling link inside: %v", err)
	}
	if _, err := r.WriteFile("x/y/z.txt", []byte("deep"), roots.WriteOptions{Perm: 0o600}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(filepath.Join(l.app, "x/y/z.txt")); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("new file: %v, %v", info, err)
	}
	if left := leftovers(t, l.app); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestAWriteThatIsRefusedLeavesEverythingAsItWas(t *testing.T) {
	l := newLayout(t)
	r := l.open(t)
	for path, want := range map[string]roots.Reason{
		"sub": roots.WrongKind, ".": roots.WrongKind, "new/": roots.WrongKind, "sub/.": roots.WrongKind, "a.txt/below": roots.WrongKind,
		"a.txt/below/deeper": roots.WrongKind, l.lib: roots.WrongKind,
	} {
		if _, err := r.WriteFile(path, []byte("x"), roots.WriteOptions{}); reasonOf(t, err) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	_, info, err := open(r, "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.WriteFile("a.txt", []byte("x"), roots.WriteOptions{Absent: true}); reasonOf(t, err) != roots.Changed {
		t.Errorf("meant to be new, but there: %v", err)
	}
	write(t, filepath.Join(l.app, "a.txt"), "somebody else's words")
	if _, err := r.WriteFile("a.txt", []byte("x"), roots.WriteOptions{Since: info}); reasonOf(t, err) != roots.Changed {
		t.Errorf("changed since: %v", err)
	}
	if got := content(t, filepath.Join(l.app, "a.txt")); got != "somebody else's words" {
		t.Errorf("it holds %q", got)
	}
	if err := os.Remove(filepath.Join(l.app, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.WriteFile("a.txt", []byte("x"), roots.WriteOptions{Since: info}); reasonOf(t, err) != roots.Changed {
		t.Errorf("gone since: %v", err)
	}
	if _, err := r.WriteFile("a.txt", []byte("x"), roots.WriteOptions{Absent: true}); err != nil {
		t.Errorf("new: %v", err)
	}
	if left := leftovers(t, l.app); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func open(r *roots.Roots, path string) (string, fs.FileInfo, error) {
	f, info, err := r.OpenFile(path)
	if err != nil {
		return "", nil, err
	}
	return f.Name(), info, f.Close()
}

func TestRemoveTakesTheLinkNotItsTargetAndNoRoot(t *testing.T) {
	l := newLayout(t)
	link(t, l.other, filepath.Join(l.app, "out"))
	link(t, "a.txt", filepath.Join(l.app, "alias"))
	r := l.open(t)
	before := l.outside(t)
	for _, p := range []string{"out", "alias", "sub/b.txt", "sub/"} {
		if err := r.Remove(p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
		if _, err := os.Lstat(filepath.Join(l.app, p)); err == nil {
			t.Errorf("%s is still there", p)
		}
	}
	for p, want := range map[string]roots.Reason{
		".": roots.Invalid, "..": roots.Invalid, "/": roots.Invalid, "sub/..": roots.Invalid, l.app: roots.Outside, "nope": roots.Missing,
		"../other/secret": roots.Outside,
	} {
		if err := r.Remove(p); reasonOf(t, err) != want {
			t.Errorf("%s: %v", p, err)
		}
	}
	if content(t, filepath.Join(l.app, "a.txt")) != "inside app/a.txt" {
		t.Error("the target of the link was touched")
	}
	l.untouched(t, before)
}

func TestMkdirMakesWhatIsMissingAndMindsFiles(t *testing.T) {
	l := newLayout(t)
	r := l.open(t)
	for _, p := range []string{"p/q/r", "p", ".", "sub"} {
		if _, err := r.Mkdir(p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	for _, p := range []string{"a.txt", "a.txt/x"} {
		if _, err := r.Mkdir(p); reasonOf(t, err) != roots.WrongKind {
			t.Errorf("%s: %v", p, err)
		}
	}
}
