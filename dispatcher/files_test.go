package dispatcher_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol/rindv2"
)

// TestFilesAreReadInTheWorkspaceAndWrittenUnderUploadsOnly: docs/protocol/rind-v2.md section 4.10.
func TestFilesAreReadInTheWorkspaceAndWrittenUnderUploadsOnly(t *testing.T) {
	outside := t.TempDir()
	ws := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(ws, name)); err != nil {
			t.Skipf("no links here: %v", err)
		}
	}
	put(filepath.Join(outside, "secret.txt"), "secret")
	put(filepath.Join(ws, "a.txt"), "abc")
	put(filepath.Join(ws, "uploads", "dir", "b"), "")
	put(filepath.Join(ws, "full"), strings.Repeat("x", 8<<20))
	put(filepath.Join(ws, "over"), strings.Repeat("x", 8<<20+1))
	link(outside, "out")
	link(filepath.Join(outside, "secret.txt"), "leak")
	link("a.txt", "in")
	link(outside, "uploads/out")
	link("../a.txt", "uploads/in")

	const stay = "path must be relative to the workspace and stay inside it."
	long := strings.Repeat("n", 250)
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `[{"text": "x"}]`, "")
		p.d = dispatcher.New(dispatcher.Config{Sessions: p.All, Workspace: ws})
		defer p.end()
		c := p.connect(env)
		c.hello()
		for _, r := range []struct{ method, params, kind, want string }{
			{"file/list", `{}`, "", `{"entries":[{"name":"a.txt","type":"file","size":3},{"name":"full","type":"file","size":8388608},{"name":"in","type":"file","size":3},{"name":"over","type":"file","size":8388609},{"name":"uploads","type":"dir","size":0}]}`},
			{"file/list", `{"path":"uploads/"}`, "", `{"entries":[{"name":"dir","type":"dir","size":0},{"name":"in","type":"file","size":3}]}`},
			{"file/list", `{"path":"a.txt"}`, "InvalidRequest", "a.txt is not a folder."},
			{"file/list", `{"path":"out"}`, "InvalidRequest", stay},
			{"file/list", `{"path":"none"}`, "NotFound", "File not found: none"},
			{"file/read", `{"path":"a.txt"}`, "", `{"content_base64":"YWJj","mime":"text/plain; charset=utf-8","size":3}`},
			{"file/read", `{"path":"uploads/in"}`, "", `{"content_base64":"YWJj","mime":"text/plain; charset=utf-8","size":3}`},
			{"file/read", `{"path":"over"}`, "InvalidRequest", "over is larger than 8 MiB."},
			{"file/read", `{"path":"uploads"}`, "InvalidRequest", "uploads is not a file."},
			{"file/read", `{"path":"leak"}`, "InvalidRequest", stay},
			{"file/read", `{"path":"out/secret.txt"}`, "InvalidRequest", stay},
			{"file/read", `{"path":"../` + filepath.Base(outside) + `/secret.txt"}`, "InvalidRequest", stay},
			{"file/read", `{"path":"uploads/../../x"}`, "InvalidRequest", stay},
			{"file/read", `{"path":"/etc/hosts"}`, "InvalidRequest", stay},
			{"file/read", `{"path":"a.txt\u0000"}`, "InvalidRequest", stay},
			{"file/read", `{"path":"none/a"}`, "NotFound", "File not found: none/a"},
			{"file/read", `{"path":"a.txt/b"}`, "InvalidRequest", "a.txt/b cannot be used: not a directory."},
			{"file/write", `{"path":"uploads/new/c.txt","content_base64":"YWJj"}`, "", `{"path":"uploads/new/c.txt","size":3}`},
			{"file/write", `{"path":"uploads/new/c.txt","content_base64":""}`, "", `{"path":"uploads/new/c.txt","size":0}`},
			{"file/write", `{"path":"uploads/new/` + long + `","content_base64":"YQ=="}`, "", `{"path":"uploads/new/` + long + `","size":1}`},
			{"file/write", `{"path":"uploads/in","content_base64":"YQ=="}`, "", `{"path":"uploads/in","size":1}`}, // in the place of the link
			{"file/write", `{"path":"uploads/dir","content_base64":"YQ=="}`, "InvalidRequest", "uploads/dir is a folder."},
			{"file/write", `{"path":"uploads/out/x","content_base64":"YQ=="}`, "InvalidRequest", stay},
			{"file/write", `{"path":"uploads/../a.txt","content_base64":"YQ=="}`, "InvalidRequest", "file/write writes only under uploads/."},
			{"file/write", `{"path":"uploads","content_base64":"YQ=="}`, "InvalidRequest", "file/write writes only under uploads/."},
			{"file/write", `{"path":"a.txt","content_base64":"YQ=="}`, "InvalidRequest", "file/write writes only under uploads/."},
			{"file/write", `{"path":"uploads/big","content_base64":"` + base64.StdEncoding.EncodeToString(make([]byte, 8<<20+1)) + `"}`, "InvalidRequest", "The content is larger than 8 MiB."},
		} {
			if r.kind != "" {
				c.refused(r.method, r.params, r.kind, r.want)
			} else if got := string(c.call(r.method, r.params).result); got != r.want {
				t.Errorf("%s %.80s: got %.300s, want %.300s", r.method, r.params, got, r.want)
			}
		}
		if l := c.call("file/read", `{"path":"full"}`); !strings.HasSuffix(string(l.result), `"size":8388608}`) {
			t.Errorf("8 MiB: %s", l.raw[len(l.raw)-100:])
		}
		if kept, err := os.ReadFile(filepath.Join(ws, "a.txt")); err != nil || string(kept) != "abc" {
			t.Errorf("a.txt holds %q, %v", kept, err)
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
			t.Errorf("outside are %v, %v", left, err)
		}
		if left, _ := filepath.Glob(filepath.Join(ws, "uploads", "*", ".tmp-*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		// As it was, for the other envelope.
		for _, name := range []string{"new", "in"} {
			if err := os.RemoveAll(filepath.Join(ws, "uploads", name)); err != nil {
				t.Fatal(err)
			}
		}
		link("../a.txt", "uploads/in")
	})
}
