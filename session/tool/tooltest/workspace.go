package tooltest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/session"
)

// Canary is in every file that lies outside the workspace.
const Canary = "CANARY-4c1f: nobody reads this"

// Workspace is a folder for a tool to work in, beside what it must not touch.
type Workspace struct {
	Root string // absolute, links resolved
	// Args are arguments a call needs to do something harmless, beside its path.
	Args map[string]any
	// Only are the values random arguments may take, for properties where not every text is harmless.
	Only map[string][]any

	top    string
	before string
}

// NewWorkspace makes a workspace w/app with files of many kinds and links that lead outside, and beside it w/app-evil and w/other.
func NewWorkspace(t testing.TB) *Workspace {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	top = filepath.Join(top, "w")
	w := &Workspace{Root: filepath.Join(top, "app"), top: top}
	for name, text := range map[string]string{
		"other/secret": Canary, "app-evil/secret": Canary, "secret": Canary,
		"app/a.txt": "alpha\nbeta\ngamma\n", "app/empty": "", "app/sub/b.go": "package sub\n\nvar X = 1\n", "app/crlf.txt": "one\r\ntwo\r\n",
		"app/binary": "\x00\x01\x02\xff", "app/latin1": "caf\xe9\n", "app/.gitignore": "ignored/\n", "app/ignored/c.txt": "alpha\n",
		"app/-dash": "--help\n", "app/long": strings.Repeat("x", 3000) + "\n", "app/picture.png": "\x89PNG\r\n\x1a\n\x00\x00",
	} {
		w.write(t, name, text)
	}
	for name, target := range map[string]string{
		"app/out": filepath.Join(top, "other"), "app/dangling": filepath.Join(top, "other", "new.txt"), "app/danglingdir": "../other/newdir",
		"app/leak": "../other/secret", "app/inlink": "sub", "app/loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(top, filepath.FromSlash(name))); err != nil {
			t.Skipf("links cannot be made here: %v", err)
		}
	}
	w.before = w.outside(t)
	return w
}

func (w *Workspace) write(t testing.TB, name, text string) {
	t.Helper()
	path := filepath.Join(w.top, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Call is a call of tool in w.
func (w *Workspace) Call(tool session.Tool, arguments []byte) session.ToolCall {
	return session.ToolCall{
		ID: "call_1", Name: tool.Spec().Name, Arguments: arguments, Session: "s-1", Turn: "t-1", Roots: []string{w.Root},
	}
}

// waysOut are paths that lead outside, or nowhere.
func (w *Workspace) waysOut() []string {
	return []string{
		"../secret", "../esc", w.top + "/secret", w.top + "/esc", "../app-evil/secret", "../app-evil/f", w.top + "/app-evil/secret",
		"out/secret", "out/f", "./out/../../esc", "./out/../secret", "~/esc", "a/../../esc", "a/../../secret", `C:\esc`, "f\x00.txt", "",
		"dangling", "danglingdir/f", "leak", "..", "../other", "out", "/", "loop",
	}
}

// Untouched fails the test if anything outside the workspace changed.
func (w *Workspace) Untouched(t testing.TB) {
	t.Helper()
	if after := w.outside(t); after != w.before {
		t.Fatalf("outside the workspace something changed:\nbefore:\n%s\nafter:\n%s", w.before, after)
	}
}

func (w *Workspace) outside(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(filepath.Dir(w.top), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == w.Root {
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
			fmt.Fprintf(&b, " %q", data)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
