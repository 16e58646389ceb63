package acpagent

import (
	"context"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

// maxEditorBytes bounds the files that an editor is asked for: its answer is one line of the protocol.
const maxEditorBytes = 4 << 20

// front are the files of the editor that asked for the turn (docs/protocol/acp.md section 5.4); nil where it offers none.
func (k *talk) front() session.EditorFiles {
	if k == nil {
		return nil
	}
	return k.t.Editor().Files
}

// unsaved is the text of a file as the editor has it; false where what is on disk counts.
func unsaved(ctx context.Context, front session.EditorFiles, at, onDisk string) (string, bool) {
	if front == nil || len(onDisk) > maxEditorBytes {
		return "", false
	}
	text, ok := front.ReadFile(ctx, at)
	if !ok || len(text) > maxFile || !utf8.ValidString(text) {
		return "", false
	}
	return text, true
}

// asBuffer is a text as editors hold it: without a byte order mark, lines ending with LF.
func asBuffer(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n")
}

// hand gives the new text of a file to the editor. It reports whether the editor took it, and what is on disk of it.
func hand(ctx context.Context, front session.EditorFiles, r *roots.Roots, at, text string) (onDisk string, ok bool) {
	if front == nil || len(text) > maxEditorBytes {
		return "", false
	}
	if dir, err := r.Stat(filepath.Dir(at)); err != nil || !dir.IsDir() { // editors need not make any
		return "", false
	}
	if !front.WriteFile(ctx, at, text) {
		return "", false
	}
	if saved, _, err := readText(r, at); err == nil && asBuffer(saved) == asBuffer(text) {
		return saved, true
	}
	return text, true // it is in a buffer, not saved yet
}
