package acpagent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

const maxFile = 8 << 20 // of a file that is served

// place opens the roots and finds a path in them. The error is for the child.
func (c *child) place(path string) (*roots.Roots, string, error) {
	if !filepath.IsAbs(path) {
		return nil, "", badParams("The path must be absolute.")
	}
	r, err := roots.Open(c.roots()...)
	if err != nil {
		return nil, "", pathFault(err)
	}
	p, err := r.Resolve(path)
	if err != nil {
		r.Close()
		return nil, "", pathFault(err)
	}
	return r, p.Abs, nil
}

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

// readFile serves fs/read_text_file (docs/protocol/acp.md section 5.4).
func readFile(ctx context.Context, c *child, k *talk, params json.RawMessage) (any, error) {
	var p struct {
		Session string `json:"sessionId"`
		Path    string `json:"path"`
		Line    *int   `json:"line"`
		Limit   *int   `json:"limit"`
	}
	if err := readParams(params, &p); err != nil {
		return nil, err
	}
	if !c.spec.FS {
		return nil, protocol.Errorf(protocol.MethodNotFound, "Files are not served.")
	}
	if err := c.mine(p.Session); err != nil {
		return nil, err
	}
	c.seenTo("files")
	r, at, err := c.place(p.Path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	g, err := c.grant(ctx, k, &deed{readSpec, "Read " + oneLine(p.Path, 200), object{"path": at}, at, at})
	if err != nil {
		return nil, err
	}
	text, _, err := readText(r, p.Path)
	if err != nil {
		k.fault(&g, err.Error())
		return nil, err
	}
	if newer, ok := unsaved(ctx, k.front(), at, text); ok {
		text = newer
	}
	k.finish(&g, nil)
	return object{"content": lines(text, p.Line, p.Limit)}, nil
}

// readText reads a file that is text.
func readText(r *roots.Roots, path string) (string, fs.FileInfo, error) {
	f, info, err := r.OpenFile(path)
	if err != nil {
		return "", nil, pathFault(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("read a file: %w", err)
	case len(data) > maxFile:
		return "", nil, badParams(fmt.Sprintf("The file is larger than %d bytes.", maxFile))
	case !utf8.Valid(data):
		return "", nil, badParams("The file is not UTF-8 text.")
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

// writeFile serves fs/write_text_file: what was there is kept, the file is written whole or not at all.
func writeFile(ctx context.Context, c *child, k *talk, params json.RawMessage) (any, error) {
	var p struct {
		Session string  `json:"sessionId"`
		Path    string  `json:"path"`
		Content *string `json:"content"`
	}
	if err := readParams(params, &p); err != nil {
		return nil, err
	}
	switch {
	case !c.spec.FS:
		return nil, protocol.Errorf(protocol.MethodNotFound, "Files are not served.")
	case p.Content == nil:
		return nil, badParams("content must be a string.")
	case len(*p.Content) > maxFile:
		return nil, badParams(fmt.Sprintf("The content is larger than %d bytes.", maxFile))
	}
	if err := c.mine(p.Session); err != nil {
		return nil, err
	}
	c.seenTo("files")
	r, at, err := c.place(p.Path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	shown := *p.Content
	if len(shown) > maxToldText {
		shown = protocol.Prefix(shown, 1000) + "\n[…]"
	}
	d := &deed{writeSpec, "Write " + oneLine(p.Path, 200), object{"path": at, "content": shown}, at, at}
	g, err := c.grant(ctx, k, d)
	if err != nil {
		return nil, err
	}
	ch, err := c.replace(ctx, k.front(), r, p.Path, at, *p.Content)
	if err != nil {
		k.fault(&g, messageOf(err))
		return nil, err
	}
	k.finish(&g, ch)
	return object{}, nil
}

func messageOf(err error) string {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// replace writes a file, through the editor where that serves files, and tells what changed; nil for nothing. at is where path leads.
func (c *child) replace(ctx context.Context, front session.EditorFiles, r *roots.Roots, path, at, text string) (*protocol.FileChange, error) {
	before, info, err := readText(r, path)
	created := false
	if e, ok := errors.AsType[*protocol.Error](err); ok && e.Kind == acp.NoResource {
		created, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	edited := created
	if newer, ok := unsaved(ctx, front, at, before); ok && !created {
		edited = true
		if asBuffer(newer) != asBuffer(before) {
			before = newer
		}
	}
	if !created && before == text {
		return nil, nil
	}
	if images := c.host.hosts.cfg.Images; images != nil && !created {
		if _, err := images.Keep(ctx, c.host.id, []byte(before)); err != nil {
			return nil, fmt.Errorf("keep what a file held: %w", err)
		}
	}
	taken := false
	if edited {
		var saved string
		if saved, taken = hand(ctx, front, r, at, text); taken {
			text = saved
		}
	}
	if !taken {
		p, err := r.WriteFile(path, []byte(text), roots.WriteOptions{Since: info, Absent: created})
		if err != nil {
			return nil, pathFault(err)
		}
		at = p.Abs
	}
	ch := change(at, before, text, created)
	if !created {
		ch.More.Before = digest(before)
	}
	ch.More.After = digest(text)
	return &ch, nil
}

// digest is the SHA-256 of a file's bytes, in hex.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// finish records what a deed changed: with the call it belongs to, which ends here if it was made for it.
func (k *talk) finish(g *granted, ch *protocol.FileChange) {
	if k == nil || g.call == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if ch != nil && !k.closed {
		ch.ToolCallID = g.call.id
		first, err := k.t.FirstChange(ch.FilePath)
		ch.More.First = first && err == nil
		g.call.written[filepath.Clean(filepath.FromSlash(ch.FilePath))] = ""
		k.record(ch)
	}
	if g.own && !g.call.done && !k.closed {
		k.end(g.call, protocol.ToolCompleted, "")
	}
}
