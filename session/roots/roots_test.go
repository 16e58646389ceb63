package roots_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rind-dev/rind/session/roots"
)

func read(t *testing.T, r *roots.Roots, path string) (string, error) {
	t.Helper()
	f, _, err := r.OpenFile(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), nil
}

func reasonOf(t *testing.T, err error) roots.Reason {
	t.Helper()
	e, ok := errors.AsType[*roots.PathError](err)
	if !ok {
		t.Fatalf("error %v (%T) is no *PathError", err, err)
	}
	if e.Text == "" || strings.ContainsAny(e.Text, "\n\x00") {
		t.Errorf("text %q is not one line", e.Text)
	}
	if e.Reason == roots.Outside && !filepath.IsAbs(e.Resolved) {
		t.Errorf("resolved %q is not absolute", e.Resolved)
	}
	return e.Reason
}

func TestEveryWayOutIsRefusedAndTellsWhereItLeads(t *testing.T) {
	l := newLayout(t)
	link(t, l.other, filepath.Join(l.app, "out"))
	link(t, "../other/new.txt", filepath.Join(l.app, "dangling"))
	link(t, filepath.Join(l.other, "newdir"), filepath.Join(l.app, "danglingdir"))
	link(t, "out", filepath.Join(l.app, "chain"))
	r := l.open(t)
	before := l.outside(t)
	for _, c := range []struct{ path, resolved string }{
		{"../esc", filepath.Join(l.top, "esc")},
		{l.top + "/esc", filepath.Join(l.top, "esc")},
		{"../app-evil/secret", filepath.Join(l.evil, "secret")},
		{l.evil + "/secret", filepath.Join(l.evil, "secret")},
		{"out/secret", filepath.Join(l.other, "secret")},
		{"chain/secret", filepath.Join(l.other, "secret")},
		{"./out/../../esc", filepath.Join(filepath.Dir(l.top), "esc")},
		{"a/../../esc", filepath.Join(l.top, "esc")},
		{"sub/../../other/secret", filepath.Join(l.other, "secret")},
		{"dangling", filepath.Join(l.other, "new.txt")},
		{"danglingdir/f", filepath.Join(l.other, "newdir", "f")},
		{"..", l.top},
		{"/", filepath.VolumeName(l.top) + string(filepath.Separator)},
	} {
		t.Run(c.path, func(t *testing.T) {
			_, err := read(t, r, c.path)
			if reasonOf(t, err) != roots.Outside {
				t.Fatalf("reading: %v", err)
			}
			e, _ := errors.AsType[*roots.PathError](err)
			if e.Resolved != c.resolved {
				t.Errorf("resolved to %s, want %s", e.Resolved, c.resolved)
			}
			if !strings.Contains(e.Text, filepath.Base(c.resolved)) {
				t.Errorf("text %q does not say where it leads", e.Text)
			}
			_, err = r.WriteFile(c.path, []byte("x"), roots.WriteOptions{})
			if reasonOf(t, err) != roots.Outside {
				t.Errorf("writing: %v", err)
			}
			if _, err = r.Mkdir(c.path); reasonOf(t, err) != roots.Outside {
				t.Errorf("making a folder: %v", err)
			}
			if _, err = r.Stat(c.path); reasonOf(t, err) != roots.Outside {
				t.Errorf("describing: %v", err)
			}
			if _, err = r.ReadDir(t.Context(), c.path); reasonOf(t, err) != roots.Outside {
				t.Errorf("listing: %v", err)
			}
		})
	}
	l.untouched(t, before)
}

func TestUnusableNamesAreRefusedAsSuch(t *testing.T) {
	l := newLayout(t)
	link(t, "loop2", filepath.Join(l.app, "loop1"))
	link(t, "loop1", filepath.Join(l.app, "loop2"))
	r := l.open(t)
	paths := []string{"", "f\x00.txt", "~", "~/esc", "loop1", "loop1/x", strings.Repeat("x", 300), strings.Repeat("x/", 3000)}
	if runtime.GOOS == "windows" {
		paths = append(paths, `\esc`, `C:esc`, "NUL", "a.txt:stream")
	} else {
		paths = append(paths, `C:\esc`, `c:/esc`, `\\host\share\x`)
	}
	for _, p := range paths {
		if _, err := read(t, r, p); reasonOf(t, err) != roots.Invalid {
			t.Errorf("reading %.40q: %v", p, err)
		}
		if _, err := r.WriteFile(p, nil, roots.WriteOptions{}); reasonOf(t, err) != roots.Invalid {
			t.Errorf("writing %.40q: %v", p, err)
		}
		if len(p) >= 300 || strings.HasPrefix(p, "loop1") {
			continue // names that can be removed, or lie where nothing is
		}
		if err := r.Remove(p); reasonOf(t, err) != roots.Invalid {
			t.Errorf("removing %.40q: %v", p, err)
		}
	}
	for _, p := range []string{"~backup", "..hidden", "a:b", "C:", "-rf", "--", "…"} {
		if runtime.GOOS == "windows" && strings.Contains(p, ":") {
			continue
		}
		if _, err := r.WriteFile(p, []byte("plain"), roots.WriteOptions{}); err != nil {
			t.Errorf("%q is a plain name: %v", p, err)
		}
	}
}

func TestLinksThatStayInsideAreFollowedAlsoBetweenRoots(t *testing.T) {
	l := newLayout(t)
	link(t, "sub/b.txt", filepath.Join(l.app, "relative"))
	link(t, filepath.Join(l.app, "sub"), filepath.Join(l.app, "absolute"))
	link(t, "../lib", filepath.Join(l.app, "across"))
	link(t, filepath.Join(l.app, "a.txt"), filepath.Join(l.lib, "back"))
	r := l.open(t)
	for path, want := range map[string]string{
		"a.txt": "inside app/a.txt", l.app + "/sub/../a.txt": "inside app/a.txt",
		"relative": "inside app/sub/b.txt", "absolute/b.txt": "inside app/sub/b.txt",
		"across/c.txt": "inside lib/c.txt", "across/back": "inside app/a.txt", l.lib + "/c.txt": "inside lib/c.txt",
		"absolute/../a.txt": "inside app/a.txt", "across/../lib/c.txt": "inside lib/c.txt", "../app/a.txt": "inside app/a.txt",
	} {
		if got, err := read(t, r, path); err != nil || got != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	p, err := r.Resolve("across/c.txt")
	if err != nil || p.Rel != "c.txt" || p.Abs != filepath.Join(l.lib, "c.txt") {
		t.Errorf("across/c.txt resolves to %+v, %v", p, err)
	}
	if got := r.Show(p); got != filepath.ToSlash(p.Abs) {
		t.Errorf("a place in another root is shown as %q", got)
	}
}

func TestMissingAndUnreadableFilesAreToldApart(t *testing.T) {
	l := newLayout(t)
	r := l.open(t)
	for _, p := range []string{"nope", "nope/deeper", "a.txt/below"} {
		if _, err := read(t, r, p); reasonOf(t, err) != roots.Missing {
			t.Errorf("%s: %v", p, err)
		}
	}
	if _, err := read(t, r, "sub"); reasonOf(t, err) != roots.WrongKind {
		t.Errorf("folder: %v", err)
	}
	if _, err := r.ReadDir(t.Context(), "a.txt"); reasonOf(t, err) != roots.WrongKind {
		t.Errorf("listing a file: %v", err)
	}
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		return
	}
	if err := os.Chmod(filepath.Join(l.app, "a.txt"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, r, "a.txt"); reasonOf(t, err) != roots.Denied {
		t.Errorf("unreadable: %v", err)
	}
}

func TestAWorkspaceThatIsGoneIsARefusal(t *testing.T) {
	if _, err := roots.Open(filepath.Join(t.TempDir(), "gone")); reasonOf(t, err) != roots.Missing {
		t.Error(err)
	}
	if _, err := roots.Open(); err == nil {
		t.Error("no folder at all was accepted")
	}
}

func TestOutsidePathsAreOpenedOnlyAsListed(t *testing.T) {
	l := newLayout(t)
	write(t, filepath.Join(l.other, "twin"), canary)
	link(t, "secret", filepath.Join(l.other, "alias"))
	r := l.open(t)
	r.Allow(filepath.Join(l.other, "secret"), filepath.Join(l.other, "alias"), l.evil, filepath.Join(l.top, "fresh"), "relative/is/no/consent")
	if got, err := read(t, r, "../other/secret"); err != nil || got != canary {
		t.Errorf("listed file: %q, %v", got, err)
	}
	for _, p := range []string{l.other + "/twin", l.other, l.evil + "/secret", l.top, "../other/secret2"} {
		if _, err := read(t, r, p); reasonOf(t, err) != roots.Outside {
			t.Errorf("%s is not listed: %v", p, err)
		}
	}
	names, err := r.ReadDir(t.Context(), l.evil)
	if err != nil || len(names) != 1 || names[0].Name() != "secret" {
		t.Errorf("listed folder: %v, %v", names, err)
	}
	if err := r.Remove(l.evil + "/secret"); reasonOf(t, err) != roots.Outside || content(t, l.evil+"/secret") == "" {
		t.Errorf("removing from a listed folder: %v", err)
	}
	if _, err := r.WriteFile(l.top+"/fresh", []byte("made"), roots.WriteOptions{}); err != nil || content(t, l.top+"/fresh") != "made" {
		t.Errorf("writing a listed file: %v", err)
	}
	// What was consented to becomes a link: it is no longer what was shown.
	if err := os.Remove(l.other + "/secret"); err != nil {
		t.Fatal(err)
	}
	link(t, "twin", l.other+"/secret")
	if _, err := read(t, r, l.other+"/secret"); reasonOf(t, err) != roots.Outside {
		t.Errorf("a link in place of the listed file: %v", err)
	}
	if _, err := r.WriteFile(l.other+"/secret", []byte("x"), roots.WriteOptions{}); reasonOf(t, err) != roots.Outside {
		t.Errorf("writing through it: %v", err)
	}
	if got := content(t, l.other+"/twin"); got != canary {
		t.Errorf("its target is %q now", got)
	}
}

func TestAWalkStaysInTheFolderItBeganIn(t *testing.T) {
	l := newLayout(t)
	link(t, l.other, filepath.Join(l.app, "sub", "out"))
	link(t, "b.txt", filepath.Join(l.app, "sub", "alias"))
	r := l.open(t)
	d, place, err := r.OpenDir("sub")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if place.Rel != "sub" {
		t.Errorf("place %+v", place)
	}
	entries, err := d.Entries(t.Context())
	if err != nil || len(entries) != 3 {
		t.Fatalf("entries %v, %v", entries, err)
	}
	for _, name := range []string{"out", "..", ".", "b.txt", "alias", "out/secret"} {
		if name == "." {
			continue
		}
		if sub, err := d.Dir(name); err == nil {
			sub.Close()
			t.Errorf("%s was opened as a folder", name)
		}
	}
	for _, name := range []string{"alias", "out", "out/secret", "../a.txt"} {
		if f, _, err := d.File(name); err == nil {
			f.Close()
			t.Errorf("%s was opened", name)
		}
	}
	f, info, err := d.File("b.txt")
	if err != nil || info.Size() != int64(len("inside app/sub/b.txt")) {
		t.Fatalf("b.txt: %v", err)
	}
	f.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Entries(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
}
