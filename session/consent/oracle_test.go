//go:build unix

package consent_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rind-dev/rind/session/proc"
)

// tree is everything below a folder.
func tree(t testing.TB, top string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(top, path)
		if strings.HasSuffix(rel, ".git/index") {
			return nil // git status and diff write down there what they learned of times; it means nothing
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := fmt.Sprint(info.Mode())
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %x %s", sha256.Sum256(b), info.ModTime())
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			what += " " + to
		}
		out[rel] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// really runs a command in the workspace.
func (p *place) really(command string) string {
	p.t.Helper()
	var out bytes.Buffer
	home := filepath.Join(filepath.Dir(p.root), "home")
	_ = os.MkdirAll(filepath.Join(home, "tmp"), 0o755)
	c, err := proc.Start(proc.Spec{
		Path: "bash", Args: []string{"-c", command}, Dir: p.root, Stdout: &out, Stderr: &out,
		Env: []string{"PATH=" + os.Getenv("PATH"), "API_KEY=" + canary, "HOME=" + home, "TMPDIR=" + filepath.Join(home, "tmp"), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.c", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.c"},
	})
	if err != nil {
		p.t.Skipf("no bash here: %v", err)
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Second)
	defer cancel()
	if _, err := c.Wait(ctx); err != nil {
		p.t.Fatal(err)
	}
	if ctx.Err() != nil {
		p.t.Fatalf("%s did not end", command)
	}
	return out.String()
}

func repository(t *testing.T) *place {
	p := newPlace(t)
	p.really(`git init -q && git add -A && git commit -qm first && git tag v0 && git branch feature`)
	return p
}

func TestWhatIsSaidToOnlyReadChangesNothing(t *testing.T) {
	p := repository(t)
	top := filepath.Dir(p.root)
	before := tree(t, top)
	for _, command := range readers {
		if v := p.run("ask", command); !v.Reads {
			t.Fatalf("%s is %s", command, short(v))
		}
		out := p.really(command)
		after := tree(t, top)
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("%s changed something:\n%s", command, d)
			before = after
		}
		if strings.Contains(out, "usage:") || strings.Contains(out, "syntax error") {
			t.Errorf("%s is no command that works: %s", command, out)
		}
	}
}

// TestWhateverIsSaidToOnlyReadChangesNothing makes commands up from programs that are known, with words that make them do more among the others,
// and runs those that are said to only read: they change nothing, and tell nothing of secret files, of what lies outside, or of the environment.
func TestWhateverIsSaidToOnlyReadChangesNothing(t *testing.T) {
	p := repository(t)
	p.trap()
	top := filepath.Dir(p.root)
	before := tree(t, top)
	m := newMaker(p)
	ran := 0
	rapid.Check(t, func(r *rapid.T) {
		for range 30 { // most ask
			command := m.command(r)
			if v := p.run("ask", command); !v.Reads {
				continue
			}
			ran++
			out := p.really(command)
			if d := cmp.Diff(before, tree(t, top)); d != "" {
				r.Fatalf("%s changed something:\n%s", command, d)
			}
			if strings.Contains(out, canary) {
				r.Fatalf("%s tells what it should not:\n%.300s", command, out)
			}
			return
		}
	})
	if ran == 0 {
		t.Error("none was said to only read")
	}
}
