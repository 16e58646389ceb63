package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

// maxEditorBytes bounds the files that an editor is asked for: its answer is one line of the protocol.
const maxEditorBytes = 4 << 20

// editorText is the text of an open file as the editor that asked for the turn has it, unsaved changes included. False where what is on
// disk counts: outside the roots, what is large or no UTF-8 text, and where no editor gives it.
func editorText(ctx context.Context, editor session.EditorFiles, place roots.Place, f *os.File, info fs.FileInfo) (string, bool) {
	if editor == nil || place.Outside || info.Size() > maxEditorBytes {
		return "", false
	}
	head := make([]byte, min(sniffed, info.Size()))
	if n, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) || n < len(head) {
		return "", false
	}
	if imageType(head) != "" || bytes.IndexByte(head, 0) >= 0 || bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return "", false
	}
	text, ok := editor.ReadFile(ctx, place.Abs)
	if !ok || len(text) > maxTextBytes || whyNoText(text) != "" {
		return "", false
	}
	return text, true
}

// asBuffer is a text as editors hold it: without a byte order mark, lines ending with LF.
func asBuffer(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, mark), crlf, "\n")
}

// adopt takes over what the editor has of the file in the place of what is on disk. What is kept for undo is what is on disk where that is
// the same text in another form.
func (m *modification) adopt(text string) {
	if asBuffer(text) != asBuffer(m.old) {
		m.before = text
	}
	m.old, m.edited = text, true
}

// hand gives the new text to the editor. It reports whether the editor took it, and what is on disk of it.
func (m *modification) hand(ctx context.Context, place roots.Place, text string) (onDisk string, ok bool) {
	if m.editor == nil || place.Outside || len(text) > maxEditorBytes || m.info != nil && !m.edited {
		return "", false
	}
	if m.info == nil { // in a folder that is there: editors need not make any
		if dir, err := m.r.Stat(filepath.Dir(place.Abs)); err != nil || !dir.IsDir() {
			return "", false
		}
	}
	if !m.editor.WriteFile(ctx, place.Abs, text) {
		return "", false
	}
	f, _, err := m.r.OpenFile(m.path)
	if err != nil {
		return text, true // it is in a buffer, not saved yet
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTextBytes+1))
	if err != nil || asBuffer(string(data)) != asBuffer(text) {
		return text, true
	}
	return string(data), true
}
