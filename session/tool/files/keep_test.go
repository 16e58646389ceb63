package files_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/images"
	"github.com/rind-dev/rind/session/tool/files"
)

// watched is a session.Images that lets a test look at, or fail, each Keep.
type watched struct {
	session.Images
	keep func(data []byte) error
}

func (w *watched) Keep(ctx context.Context, id session.SessionID, data []byte) (string, error) {
	if err := w.keep(data); err != nil {
		return "", err
	}
	return w.Images.Keep(ctx, id, data)
}

const owner = session.SessionID("20260102_030405_00000001")

func newImages(t testing.TB, o images.Options) *images.Store {
	t.Helper()
	dir := t.TempDir()
	return images.New(func(id session.SessionID) string { return filepath.Join(dir, string(id)) }, o)
}

// runFor is run, in the session whose images are kept.
func (w workspace) runFor(t testing.TB, tool session.Tool, a args) session.ToolResult {
	t.Helper()
	res, err := tool.Run(t.Context(), session.ToolCall{
		Name: tool.Spec().Name, Arguments: protocol.MustMarshal(a), Roots: []string{string(w)}, Session: owner,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestWhatIsReplacedIsKeptBeforeTheFileIsTouched(t *testing.T) {
	w := newWorkspace(t, map[string]string{"f": "\uFEFFone\r\ntwo\r\n", "same": "text"})
	kept := newImages(t, images.Options{})
	keeps := 0
	im := &watched{kept, func(data []byte) error {
		keeps++
		if got := w.get(t, "f"); got != string(data) {
			t.Errorf("%q is kept while the file holds %q", data, got)
		}
		return nil
	}}
	for i, step := range []struct {
		tool session.Tool
		args args
	}{
		{files.EditFile(im), args{"path": "f", "old_str": "two", "new_str": "three\nfour"}},
		{files.WriteFile(im), args{"path": "f", "content": "all of it\n"}},
	} {
		before := w.get(t, "f")
		res := w.runFor(t, step.tool, step.args)
		file(t, res)
		ch := res.Changes[0].More
		data, err := kept.Image(t.Context(), owner, ch.Before)
		if err != nil || string(data) != before || keeps != i+1 {
			t.Errorf("step %d: %q, %v after %d keeps", i, data, err, keeps)
		}
		if ch.OldText == nil || *ch.OldText != before || ch.NewText == nil || *ch.NewText != w.get(t, "f") || ch.After != hash(w.get(t, "f")) {
			t.Errorf("step %d tells %+v", i, ch)
		}
	}
	res := w.runFor(t, files.WriteFile(im), args{"path": "new", "content": "x"})
	if ch := res.Changes[0].More; ch.OldText != nil || ch.NewText == nil || *ch.NewText != "x" || !ch.Created || ch.Before != "" {
		t.Errorf("a new file: %+v", ch)
	}
	file(t, w.runFor(t, files.WriteFile(im), args{"path": "same", "content": "text"}))
	if keeps != 2 {
		t.Errorf("%d contents were kept, 2 were replaced", keeps)
	}
}

func TestWhatCouldNotBeUndoneIsNotWritten(t *testing.T) {
	w := newWorkspace(t, map[string]string{"f": "one word\n"})
	full := fmt.Errorf("keep content from before: %w", session.ErrFull)
	im := &watched{nil, func([]byte) error { return full }}
	for _, c := range []struct {
		tool session.Tool
		args args
	}{
		{files.EditFile(im), args{"path": "f", "old_str": "word", "new_str": "term"}},
		{files.WriteFile(im), args{"path": "f", "content": "x"}},
	} {
		res := w.runFor(t, c.tool, c.args)
		refused(t, res, protocol.ToolFailed, protocol.ErrPersistence, "disk is full", `"f"`)
		if len(res.Changes) > 0 || w.get(t, "f") != "one word\n" {
			t.Errorf("%s: %v, %q", c.tool.Spec().Name, res.Changes, w.get(t, "f"))
		}
	}
	file(t, w.runFor(t, files.WriteFile(im), args{"path": "new", "content": "x"})) // there is nothing to keep

	ctx, cancel := context.WithCancel(t.Context())
	im.keep = func([]byte) error { cancel(); return ctx.Err() }
	_, err := files.WriteFile(im).Run(ctx, session.ToolCall{
		Name: "write_file", Arguments: protocol.MustMarshal(args{"path": "f", "content": "x"}), Roots: []string{string(w)}, Session: owner,
	}, nil)
	if !errors.Is(err, context.Canceled) || w.get(t, "f") != "one word\n" {
		t.Errorf("cancelled while keeping: %v, %q", err, w.get(t, "f"))
	}
}

func TestAFileTooLargeToBeKeptIsWrittenAllTheSame(t *testing.T) {
	w := newWorkspace(t, map[string]string{"f": strings.Repeat("x", 70_000) + " word\n"})
	kept := newImages(t, images.Options{MaxImage: 1000})
	before := w.get(t, "f")
	res := w.runFor(t, files.EditFile(kept), args{"path": "f", "old_str": "word", "new_str": "term"})
	file(t, res)
	ch := res.Changes[0].More
	if ch.Before != hash(before) || ch.OldText != nil || ch.NewText != nil {
		t.Errorf("before %s, texts %v %v", ch.Before, ch.OldText != nil, ch.NewText != nil)
	}
	if _, err := kept.Image(t.Context(), owner, ch.Before); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("image: %v", err)
	}
}
