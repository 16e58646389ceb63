package acpagent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// buffers are the files of an editor.
type buffers struct {
	refuses bool

	mu    sync.Mutex // guards what follows
	text  map[string]string
	asked []string
}

func (b *buffers) ReadFile(_ context.Context, path string) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, "read "+filepath.Base(path))
	text, ok := b.text[path]
	return text, ok
}

func (b *buffers) WriteFile(_ context.Context, path, text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, "write "+filepath.Base(path))
	if !b.refuses {
		b.text[path] = text
	}
	return !b.refuses
}

func (h *house) edited(s *session.Session, b *buffers, input string) session.Outcome {
	h.t.Helper()
	ch := make(chan ended, 1)
	s.Prompt(session.PromptRequest{Input: input, Editor: session.Editor{Files: b}}, func(o session.Outcome, err error) { ch <- ended{o, err} })
	if strings.HasPrefix(input, "write") {
		h.resolve(s, h.action(s).ID, "allow_once")
	}
	return h.await(ch)
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheAgentReadsAndWritesWhatTheEditorHasOpen(t *testing.T) {
	h := open(t, memory.New(), "plain")
	at := filepath.Join(h.dir, "f")
	put(t, at, "on disk\n")
	b := &buffers{text: map[string]string{at: "unsaved\n"}}
	s := h.draft("ask")
	if o := h.edited(s, b, "read="+at); !strings.Contains(o.Answer, `"unsaved\n"`) {
		t.Errorf("%s", o.Answer)
	}
	h.edited(s, b, "write="+at)
	if data, _ := os.ReadFile(at); string(data) != "on disk\n" || b.text[at] != "written\n" {
		t.Errorf("the disk has %q, the editor %q", data, b.text[at])
	}
	if ch := find[*protocol.FileChange](h, s.ID); len(ch) != 1 || ch[0].More.Before != digest("unsaved\n") || ch[0].More.After != digest("written\n") {
		t.Errorf("%+v", ch)
	}
}

func TestTheDiskServesTheAgentWhereTheEditorDoesNot(t *testing.T) {
	h := open(t, memory.New(), "plain")
	at := filepath.Join(h.dir, "f")
	put(t, at, "on disk\n")
	s := h.draft("ask")
	b := &buffers{text: map[string]string{}, refuses: true}
	if o := h.edited(s, b, "read="+at); !strings.Contains(o.Answer, `"on disk\n"`) {
		t.Errorf("%s", o.Answer)
	}
	h.edited(s, b, "write="+at)
	if data, _ := os.ReadFile(at); string(data) != "written\n" {
		t.Errorf("%q", data)
	}
	asked := len(b.asked)
	for _, path := range []string{filepath.Join(h.dir, "gone"), filepath.Dir(h.dir)} {
		if o := h.edited(s, b, "read="+path); !strings.Contains(o.Answer, `"code":-32`) {
			t.Errorf("%s", o.Answer)
		}
	}
	if len(b.asked) > asked {
		t.Errorf("the editor was asked for what cannot be served: %q", b.asked[asked:])
	}
}

// swapping is a policy that puts a link in the place of a folder while a call is judged: after its path was looked at, before it is done.
type swapping struct {
	session.Policy // nothing else of it is asked

	folder, to string
	once       sync.Once
}

func (p *swapping) Judge(context.Context, string, session.ToolSpec, session.ToolCall) (session.Verdict, error) {
	var err error
	p.once.Do(func() {
		if err = os.Rename(p.folder, p.folder+".was"); err == nil {
			err = os.Symlink(p.to, p.folder)
		}
	})
	return session.Verdict{Effect: "allow"}, err
}

// Check 71 of docs/protocol/acp.md: a link that is put into the way in the middle of a call leads nowhere.
func TestALinkThatTakesTheFoldersPlaceInTheMiddleOfACallIsNotFollowed(t *testing.T) {
	for _, word := range []string{"read", "write"} {
		outside := t.TempDir()
		put(t, filepath.Join(outside, "f"), "OUTSIDE")
		p := &swapping{to: outside}
		h := open(t, memory.New(), "plain", func(c *Config) { c.Policy = p })
		p.folder = filepath.Join(h.dir, "sub")
		if err := os.Mkdir(p.folder, 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(p.folder, "f"), "inside")
		o := h.prompt(h.draft("ask"), word+"="+filepath.Join(p.folder, "f"))
		if data, _ := os.ReadFile(filepath.Join(outside, "f")); string(data) != "OUTSIDE" || strings.Contains(o.Answer, "OUTSIDE") || !strings.Contains(o.Answer, `"reason":"outside_workspace"`) {
			t.Errorf("%s: %s; outside is %q", word, o.Answer, data)
		}
		if info, err := os.Lstat(p.folder); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Fatalf("%s: nothing was swapped", word)
		}
	}
}
