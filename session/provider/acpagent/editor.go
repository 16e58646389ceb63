package acpagent

import (
	"context"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rind-dev/rind/session"
)

// This file is the files of a child that the editor has open (docs/protocol/acp.md section 5.4).

// maxEditorBytes bounds the files that an editor is asked for: its answer is one line of the protocol.
const maxEditorBytes = 4 << 20

// front are the files of the editor that asked for the turn; nil where it offers none.
func (k *talk) front() session.EditorFiles {
	if k == nil {
		return nil
	}
	return k.t.Editor().Files
}

// unsaved is the text of a file as the editor has it; false where what is on disk counts.
func (f *file) unsaved(ctx context.Context, onDisk string) (string, bool) {
	if f.front == nil || len(onDisk) > maxEditorBytes {
		return "", false
	}
	text, ok := f.front.ReadFile(ctx, f.at)
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
func (f *file) hand(ctx context.Context, text string) (onDisk string, ok bool) {
	if f.front == nil || len(text) > maxEditorBytes {
		return "", false
	}
	if dir, err := f.roots.Stat(filepath.Dir(f.at)); err != nil || !dir.IsDir() { // editors need not make any
		return "", false
	}
	if !f.front.WriteFile(ctx, f.at, text) {
		return "", false
	}
	if saved, _, err := f.read(); err == nil && asBuffer(saved) == asBuffer(text) {
		return saved, true
	}
	return text, true // it is in a buffer, not saved yet
}
