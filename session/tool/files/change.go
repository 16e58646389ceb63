package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

// Bounds of what is written and told (docs/protocol/rind-v2.md sections 5 and 9).
const (
	maxTextBytes = 10 << 20
	maxDiffBytes = 64 << 10
)

func tooLarge(format string, args ...any) session.ToolResult {
	return session.ToolResult{Status: protocol.ToolRejected, ErrorType: protocol.ErrTooLarge, Error: fmt.Sprintf(format, args...)}
}

// modification is one file about to be written.
type modification struct {
	r      *roots.Roots
	images session.Images // nil: nothing is kept
	path   string
	editor session.EditorFiles // of the client that asked for the turn; nil for none
	old    string
	before string      // what is kept for undo
	edited bool        // old is what the editor has
	info   fs.FileInfo // of the file as it was read; nil for none
}

// look reads what is there. A result refuses the file: what cannot be read as text is not overwritten.
func (m *modification) look(ctx context.Context) (*session.ToolResult, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	f, info, err := m.r.OpenFile(m.path)
	if err != nil {
		if e, ok := errors.AsType[*roots.PathError](err); ok && e.Reason == roots.Missing {
			return nil, nil
		}
		refused, err := session.Refused(err)
		return &refused, err
	}
	defer f.Close()
	refuse := func(r session.ToolResult) (*session.ToolResult, error) { return &r, nil }
	if info.Size() > maxTextBytes {
		return refuse(tooLarge("%q has %d bytes; files of at most %d are changed.", m.path, info.Size(), maxTextBytes))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTextBytes+1))
	switch {
	case err != nil:
		return refuse(failed(protocol.ErrInternal, "%q cannot be read: %v.", m.path, cause(err)))
	case len(data) > maxTextBytes:
		return refuse(tooLarge("%q has more than %d bytes.", m.path, maxTextBytes))
	}
	if why := whyNoText(string(data)); why != "" {
		return refuse(notText("%q is %s; only UTF-8 text is changed.", m.path, why))
	}
	m.old, m.before, m.info = string(data), string(data), info
	if place, err := m.r.Resolve(m.path); err == nil {
		if text, ok := editorText(ctx, m.editor, place, f, info); ok {
			m.adopt(text)
		}
	}
	return nil, nil
}

// keep puts the content from before where undo finds it. A result refuses the change: what could not be undone is not written, but for a
// file that is too large to be kept.
func (m *modification) keep(ctx context.Context, id session.SessionID) (*session.ToolResult, error) {
	if m.images == nil || m.info == nil {
		return nil, nil
	}
	_, err := m.images.Keep(ctx, id, []byte(m.before))
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	refused := failed(protocol.ErrPersistence, "%q was not changed: its content from before could not be kept for undo (%v).", m.path, err)
	return &refused, nil
}

// write writes the file and tells what changed: data "Successfully modified 1 file.", meta.files with one element {path, created,
// added_lines, removed_lines, diff, size_bytes}. A file that holds text already is left alone.
func (m *modification) write(ctx context.Context, id session.SessionID, text string) (session.ToolResult, error) {
	if ctx.Err() != nil {
		return session.ToolResult{}, context.Cause(ctx)
	}
	created := m.info == nil
	if text != m.old {
		if refused, err := m.keep(ctx, id); err != nil || refused != nil {
			return session.Ended(refused, err)
		}
	}
	place, err := m.r.Resolve(m.path)
	onDisk, taken := text, false
	if err == nil && (created || text != m.old) {
		if onDisk, taken = m.hand(ctx, place, text); !taken && ctx.Err() != nil {
			return session.ToolResult{}, context.Cause(ctx)
		}
	}
	if err == nil && !taken && (created || text != m.old) {
		onDisk = text
		place, err = m.r.WriteFile(m.path, []byte(text), roots.WriteOptions{Since: m.info, Absent: created})
	}
	if err != nil {
		return session.Refused(err)
	}
	shown := m.r.Show(place)
	c := compare(shown, m.old, text, created)
	res := session.ToolResult{
		Data: "Successfully modified 1 file.",
		Meta: map[string]any{"files": []map[string]any{{
			"path": shown, "created": created, "added_lines": c.added, "removed_lines": c.removed, "diff": c.diff, "size_bytes": len(text),
		}}},
	}
	if created || text != m.old {
		ch := protocol.FileChange{FilePath: filepath.ToSlash(place.Abs), Lines: c.lines}
		ch.More.Added, ch.More.Removed, ch.More.Created, ch.More.MIME = c.added, c.removed, created, mediaType(place.Abs)
		if !created {
			ch.More.Before = protocol.Digest([]byte(m.before))
		}
		ch.More.After = protocol.Digest([]byte(onDisk))
		ch.Carry(m.old, text)
		res.Changes = []protocol.FileChange{ch}
	}
	return res, nil
}

// comparison is what is told of a change.
type comparison struct {
	added, removed int // lines
	lines          []protocol.DiffLine
	diff           string // unified
}

func compare(name, before, after string, created bool) comparison {
	edits := udiff.Lines(before, after)
	var c comparison
	var told protocol.ChangeLines
	for _, e := range edits {
		c.removed += told.Take("removed", before[e.Start:e.End])
		c.added += told.Take("added", e.New)
	}
	c.lines = told.Told()
	from := "a/" + name
	if created {
		from = "/dev/null"
	}
	diff, err := udiff.ToUnified(from, "b/"+name, before, edits, udiff.DefaultContextLines)
	if err != nil {
		diff = "" // edits that do not fit the text: the counts are told all the same
	}
	if len(diff) > maxDiffBytes {
		diff = protocol.Prefix(diff, maxDiffBytes/utf8.UTFMax) + "\n[… cut …]\n"
	}
	c.diff = diff
	return c
}

// types are media types by extension, the same on every machine.
var types = map[string]string{
	".c": "text/x-c", ".cc": "text/x-c", ".cpp": "text/x-c", ".css": "text/css", ".csv": "text/csv", ".go": "text/x-go", ".h": "text/x-c",
	".htm": "text/html", ".html": "text/html", ".java": "text/x-java", ".js": "text/javascript", ".json": "application/json",
	".jsx": "text/javascript", ".log": "text/plain", ".md": "text/markdown", ".mjs": "text/javascript", ".py": "text/x-python",
	".rb": "text/x-ruby", ".rs": "text/x-rust", ".sh": "text/x-shellscript", ".sql": "application/sql", ".svg": "image/svg+xml",
	".toml": "application/toml", ".ts": "text/typescript", ".tsx": "text/typescript", ".txt": "text/plain", ".xml": "application/xml",
	".yaml": "application/yaml", ".yml": "application/yaml",
}

func mediaType(path string) string {
	if t := types[strings.ToLower(filepath.Ext(path))]; t != "" {
		return t
	}
	return "application/octet-stream"
}
