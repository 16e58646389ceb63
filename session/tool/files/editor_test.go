package files_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/images"
	"github.com/rind-dev/rind/session/tool/files"
	"github.com/rind-dev/rind/session/tool/tooltest"
)

// buffers is an editor: text by absolute path. What is saved goes to disk with CRLF where crlf says so.
type buffers struct {
	text  map[string]string
	asked []string
	fails bool // it answers nothing
	saves bool
	crlf  bool
}

func (b *buffers) ReadFile(_ context.Context, path string) (string, bool) {
	b.asked = append(b.asked, "read "+filepath.Base(path))
	if b.fails {
		return "", false
	}
	text, open := b.text[path]
	if !open {
		data, err := os.ReadFile(path)
		return strings.ReplaceAll(strings.TrimPrefix(string(data), "\uFEFF"), "\r\n", "\n"), err == nil
	}
	return text, true
}

func (b *buffers) WriteFile(_ context.Context, path, text string) bool {
	b.asked = append(b.asked, "write "+filepath.Base(path))
	if b.fails {
		return false
	}
	b.text[path] = text
	if b.crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return !b.saves || os.WriteFile(path, []byte(text), 0o600) == nil
}

func (w workspace) edited(t testing.TB, b *buffers, tool session.Tool, a args) session.ToolResult {
	t.Helper()
	res, err := tool.Run(t.Context(), session.ToolCall{
		Name: tool.Spec().Name, Arguments: protocol.MustMarshal(a), Roots: []string{string(w)}, Session: owner, Editor: session.Editor{Files: b},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (w workspace) abs(t testing.TB, name string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(string(w))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

func TestUnsavedTextIsReadAndEditedInTheEditor(t *testing.T) {
	w := newWorkspace(t, map[string]string{"f": "on disk\n"})
	b := &buffers{text: map[string]string{w.abs(t, "f"): "unsaved word\n"}}
	if res := w.edited(t, b, files.ReadFile(), args{"path": "f"}); !strings.Contains(res.Data.(string), "unsaved word") {
		t.Errorf("read %v", res.Data)
	}
	kept := newImages(t, images.Options{})
	res := w.edited(t, b, files.EditFile(kept), args{"path": "f", "old_str": "word", "new_str": "term"})
	file(t, res)
	if got := b.text[w.abs(t, "f")]; got != "unsaved term\n" || w.get(t, "f") != "on disk\n" {
		t.Errorf("the editor has %q, the disk %q", got, w.get(t, "f"))
	}
	ch := res.Changes[0]
	if *ch.More.OldText != "unsaved word\n" || *ch.More.NewText != "unsaved term\n" {
		t.Errorf("told %q -> %q", *ch.More.OldText, *ch.More.NewText)
	}
	if image, err := kept.Image(t.Context(), owner, ch.More.Before); err != nil || string(image) != "unsaved word\n" {
		t.Errorf("kept %q, %v", image, err)
	}
}

func TestWhatAnEditorSavesInItsOwnFormIsToldAsItIsOnDisk(t *testing.T) {
	w := newWorkspace(t, map[string]string{"f": "a\r\nword\r\n"})
	b := &buffers{text: map[string]string{}, saves: true, crlf: true}
	kept := newImages(t, images.Options{})
	res := w.edited(t, b, files.EditFile(kept), args{"path": "f", "old_str": "word", "new_str": "term"})
	file(t, res)
	if got := w.get(t, "f"); got != "a\r\nterm\r\n" {
		t.Errorf("the disk has %q", got)
	}
	ch := res.Changes[0]
	if image, err := kept.Image(t.Context(), owner, ch.More.Before); err != nil || string(image) != "a\r\nword\r\n" {
		t.Errorf("kept %q, %v", image, err)
	}
	if again, err := kept.Keep(t.Context(), owner, []byte(w.get(t, "f"))); err != nil || again != ch.More.After {
		t.Errorf("told %s for what is %s", ch.More.After, again)
	}
}

func TestAnEditorIsNotAskedForWhatIsTheDisks(t *testing.T) {
	large := strings.Repeat("x\n", 3<<20)
	w := newWorkspace(t, map[string]string{"image": "\x89PNG\r\n\x1a\n", "binary": "a\x00b", "wide": "\xff\xfea\x00", "large": large, "old": "word\n"})
	b := &buffers{text: map[string]string{}, saves: true}
	for _, name := range []string{"image", "binary", "wide", "large", "gone", "../x"} {
		w.edited(t, b, files.ReadFile(), args{"path": name})
	}
	file(t, w.edited(t, b, files.WriteFile(nil), args{"path": "new/folder/f", "content": "text\n"}))
	if len(b.asked) > 0 {
		t.Errorf("asked %q", b.asked)
	}
	file(t, w.edited(t, b, files.WriteFile(nil), args{"path": "new/folder/g", "content": "text\n"})) // the folder is there by now
	if want := []string{"write g"}; !slices.Equal(b.asked, want) || w.get(t, "new/folder/g") != "text\n" {
		t.Errorf("asked %q", b.asked)
	}
}

func TestTheDiskServesWhereTheEditorDoesNot(t *testing.T) {
	w := newWorkspace(t, map[string]string{"f": "a word\n"})
	b := &buffers{text: map[string]string{w.abs(t, "f"): "unsaved"}, fails: true}
	file(t, w.edited(t, b, files.EditFile(nil), args{"path": "f", "old_str": "word", "new_str": "term"}))
	file(t, w.edited(t, b, files.WriteFile(nil), args{"path": "g", "content": "new\n"}))
	if w.get(t, "f") != "a term\n" || w.get(t, "g") != "new\n" {
		t.Errorf("the disk has %q and %q", w.get(t, "f"), w.get(t, "g"))
	}
}

func TestNoPathOutsideIsPutToAnEditor(t *testing.T) {
	w := tooltest.NewWorkspace(t)
	for _, tool := range []session.Tool{files.ReadFile(), files.WriteFile(nil), files.EditFile(nil)} {
		for _, path := range []string{"../secret", "../esc", "out/secret", "leak", "dangling", "danglingdir/f", "/etc/passwd", "a/../../secret"} {
			b := &buffers{text: map[string]string{}}
			call := w.Call(tool, protocol.MustMarshal(args{"path": path, "content": "x", "old_str": "a", "new_str": "b"}))
			call.Editor.Files = b
			res, err := tool.Run(t.Context(), call, nil)
			if err != nil || res.ErrorType == "" || len(b.asked) > 0 {
				t.Errorf("%s %s: %v %s, asked %q", tool.Spec().Name, path, res.Data, res.ErrorType, b.asked)
			}
		}
	}
	w.Untouched(t)
}
