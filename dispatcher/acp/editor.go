package acp

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

const (
	filesWithin = 5 * time.Second // silence of the client after which the disk is used
	filesFaults = 2               // errors and silences after which its files are not asked for again
)

// editor is what the client does for the tools of the turns it asks for, as far as it offers it and the settings want it.
func (c *Conn) editor(o *opened) session.Editor {
	c.mu.Lock()
	caps, faults := c.caps, c.noFiles
	c.mu.Unlock()
	var e session.Editor
	if caps.ReadFile && caps.WriteFile && faults < filesFaults && c.d.cfg.ClientFiles() {
		e.Files = &editorFiles{c, o}
	}
	if caps.Terminal && c.d.cfg.ClientTerminal() {
		e.Terminal = &editorTerminal{c, o}
	}
	return e
}

// editorFiles are the client's own files, unsaved text included. The goroutine of a call ends with its answer, or a little after the call
// was withdrawn.
type editorFiles struct {
	c *Conn
	o *opened
}

// ReadFile implements session.EditorFiles.
func (e *editorFiles) ReadFile(ctx context.Context, path string) (string, bool) {
	result, ok := e.call(ctx, acp.MethodReadFile, acp.FileRequest{Session: e.o.s.ID, Path: e.named(path)})
	if !ok {
		return "", false
	}
	text, ok := acp.ReadFileText(result)
	if !ok {
		e.fault(acp.MethodReadFile, "no content in the answer")
	}
	return text, ok
}

// WriteFile implements session.EditorFiles.
func (e *editorFiles) WriteFile(ctx context.Context, path, text string) bool {
	_, ok := e.call(ctx, acp.MethodWriteFile, acp.FileRequest{Session: e.o.s.ID, Path: e.named(path), Content: &text})
	return ok
}

// named is a path as the client names it: it knows its folders by what it called them, not by where their links lead.
func (e *editorFiles) named(path string) string { return e.o.named(path) }

func (o *opened) named(path string) string {
	for dir := path; ; {
		if as, ok := o.names[dir]; ok {
			rel, err := filepath.Rel(dir, path)
			if err != nil {
				return path
			}
			return filepath.Join(as, rel)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return path
		}
		dir = up
	}
}

// call asks the client and waits for it a while. What fails counts, but for the end of the turn.
func (e *editorFiles) call(ctx context.Context, method string, params any) (json.RawMessage, bool) {
	e.c.mu.Lock()
	off := e.c.noFiles >= filesFaults
	e.c.mu.Unlock()
	if off {
		return nil, false
	}
	within, stop := context.WithTimeout(ctx, filesWithin)
	defer stop()
	result, err := e.c.request(within, method, params)
	switch {
	case err == nil:
		return result, true
	case ctx.Err() == nil:
		e.fault(method, err.Error())
	}
	return nil, false
}

func (e *editorFiles) fault(method, why string) {
	e.c.mu.Lock()
	e.c.noFiles++
	n := e.c.noFiles
	e.c.mu.Unlock()
	e.c.d.cfg.Log.Warn("files of the client", "session", e.o.s.ID, "method", method, "faults", n, "err", protocol.Prefix(why, 300))
}

// request makes a call of ours and returns as soon as ctx ends: the call itself is withdrawn then, and ends a little later.
func (c *Conn) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	c.asks.mu.Lock()
	call := protocol.Call{ID: c.asks.next(), Method: method, Params: protocol.MustMarshal(params)}
	c.asks.mu.Unlock()
	type answer struct {
		result json.RawMessage
		err    error
	}
	ch := make(chan answer, 1)
	go func() {
		result, err := c.rpc.Call(ctx, call)
		ch <- answer{result, err}
	}()
	select {
	case a := <-ch:
		return a.result, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
