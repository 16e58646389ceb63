package acpagent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

// This file serves files to a child (docs/protocol/acp.md section 5.4).

const maxFile = 8 << 20 // of a file that is served

// file is a file of the workspace that a child asks for. It is looked for again, inside the roots, whenever it is opened.
type file struct {
	roots *roots.Roots        // owned
	path  string              // as the child names it
	at    string              // where that leads
	front session.EditorFiles // of the editor that asked for the turn; nil where it offers none
}

// file finds a path in the roots. It must be closed. The error is for the child.
func (c *child) file(k *talk, path string) (*file, error) {
	if !filepath.IsAbs(path) {
		return nil, acp.Bad("The path must be absolute.")
	}
	r, err := roots.Open(c.roots()...)
	if err != nil {
		return nil, pathFault(err)
	}
	p, err := r.Resolve(path)
	if err != nil {
		r.Close()
		return nil, pathFault(err)
	}
	return &file{roots: r, path: path, at: p.Abs, front: k.front()}, nil
}

func (f *file) close() { f.roots.Close() }

// pathFault is what the child is told of a path that cannot be used.
func pathFault(err error) error {
	e, ok := errors.AsType[*roots.PathError](err)
	switch {
	case !ok:
		return fmt.Errorf("use a path: %w", err)
	case e.Reason == roots.Outside:
		return &protocol.Error{Kind: acp.OutsideWorkspace, Message: e.Text}
	case e.Reason == roots.Missing:
		return &protocol.Error{Kind: acp.NoResource, Message: e.Text}
	}
	return &protocol.Error{Kind: protocol.InvalidRequest, Message: e.Text}
}

func messageOf(err error) string {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// fileRead is what a child asks with fs/read_text_file.
type fileRead struct {
	Session string `json:"sessionId"`
	Path    string `json:"path"`
	Line    *int   `json:"line"` // the first, from 1
	Limit   *int   `json:"limit"`
}

// readFile serves fs/read_text_file.
func readFile(ctx context.Context, c *child, k *talk, p *fileRead) (any, error) {
	if err := c.serves("files", p.Session); err != nil {
		return nil, err
	}
	f, err := c.file(k, p.Path)
	if err != nil {
		return nil, err
	}
	defer f.close()
	g, err := c.grant(ctx, k, &deed{readSpec, "Read " + oneLine(p.Path, 200), object{"path": f.at}, f.at, f.at})
	if err != nil {
		return nil, err
	}
	text, _, err := f.read()
	if err != nil {
		g.failed(messageOf(err))
		return nil, err
	}
	if newer, ok := f.unsaved(ctx, text); ok {
		text = newer
	}
	g.done()
	return object{"content": lines(text, p.Line, p.Limit)}, nil
}

// read returns what is on disk, which must be text.
func (f *file) read() (string, fs.FileInfo, error) {
	in, info, err := f.roots.OpenFile(f.path)
	if err != nil {
		return "", nil, pathFault(err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("read a file: %w", err)
	case len(data) > maxFile:
		return "", nil, acp.Bad("The file is larger than %d bytes.", maxFile)
	case !utf8.Valid(data):
		return "", nil, acp.Bad("The file is not UTF-8 text.")
	}
	return string(data), info, nil
}

// lines is the part of a text from a line on, counted from 1.
func lines(text string, line, limit *int) string {
	if line == nil && limit == nil {
		return text
	}
	skip, most := 0, -1
	if line != nil {
		skip = max(0, *line-1)
	}
	if limit != nil {
		most = max(0, *limit)
	}
	var b strings.Builder
	for l := range strings.Lines(text) {
		if skip > 0 {
			skip--
			continue
		}
		if most == 0 {
			break
		}
		most--
		b.WriteString(l)
	}
	return b.String()
}

// fileWrite is what a child asks with fs/write_text_file.
type fileWrite struct {
	Session string  `json:"sessionId"`
	Path    string  `json:"path"`
	Content *string `json:"content"`
}

// writeFile serves fs/write_text_file: what was there is kept, the file is written whole or not at all.
func writeFile(ctx context.Context, c *child, k *talk, p *fileWrite) (any, error) {
	if err := c.serves("files", p.Session); err != nil {
		return nil, err
	}
	switch {
	case p.Content == nil:
		return nil, acp.Bad("content must be a string.")
	case len(*p.Content) > maxFile:
		return nil, acp.Bad("The content is larger than %d bytes.", maxFile)
	}
	f, err := c.file(k, p.Path)
	if err != nil {
		return nil, err
	}
	defer f.close()
	shown := *p.Content
	if len(shown) > maxToldText {
		shown = protocol.Prefix(shown, 1000) + "\n[…]"
	}
	g, err := c.grant(ctx, k, &deed{writeSpec, "Write " + oneLine(p.Path, 200), object{"path": f.at, "content": shown}, f.at, f.at})
	if err != nil {
		return nil, err
	}
	ch, err := c.replace(ctx, f, *p.Content)
	if err != nil {
		g.failed(messageOf(err))
		return nil, err
	}
	if ch != nil {
		g.wrote(ch)
	}
	g.done()
	return object{}, nil
}

// replace writes a file, through the editor where that serves it, and tells what changed; nil for nothing.
func (c *child) replace(ctx context.Context, f *file, text string) (*protocol.FileChange, error) {
	was, err := f.before(ctx)
	if err != nil {
		return nil, err
	}
	if !was.absent && was.text == text {
		return nil, nil
	}
	if images := c.host.cfg.Images; images != nil && !was.absent {
		if _, err := images.Keep(ctx, c.host.id, []byte(was.text)); err != nil {
			return nil, fmt.Errorf("keep what a file held: %w", err)
		}
	}
	at, saved, err := f.write(ctx, &was, text)
	if err != nil {
		return nil, err
	}
	ch := change(at, was.text, saved, was.absent)
	if !was.absent {
		ch.More.Before = digest(was.text)
	}
	ch.More.After = digest(saved)
	return &ch, nil
}

// held is what a file held before it is written.
type held struct {
	text   string
	info   fs.FileInfo // on disk
	absent bool
	edited bool // the editor has it, or may: there is none yet
}

// before looks at what a file holds, as the editor has it where it serves it.
func (f *file) before(ctx context.Context) (held, error) {
	text, info, err := f.read()
	if e, ok := errors.AsType[*protocol.Error](err); ok && e.Kind == acp.NoResource {
		return held{absent: true, edited: true}, nil
	}
	if err != nil {
		return held{}, err
	}
	was := held{text: text, info: info}
	if newer, ok := f.unsaved(ctx, text); ok {
		was.edited = true
		if asBuffer(newer) != asBuffer(text) {
			was.text = newer
		}
	}
	return was, nil
}

// write replaces what a file held, in the editor where that has it, else on disk. It returns where that is, and what is there now.
func (f *file) write(ctx context.Context, was *held, text string) (at, saved string, err error) {
	if was.edited {
		if saved, ok := f.hand(ctx, text); ok {
			return f.at, saved, nil
		}
	}
	p, err := f.roots.WriteFile(f.path, []byte(text), roots.WriteOptions{Since: was.info, Absent: was.absent})
	if err != nil {
		return "", "", pathFault(err)
	}
	return p.Abs, text, nil
}

// digest is the SHA-256 of a file's bytes, in hex.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
