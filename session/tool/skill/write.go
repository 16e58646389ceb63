package skill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

const maxOldBytes = 1 << 20 // of a file that is replaced

// writing is one skill being written.
type writing struct {
	r       *roots.Roots
	args    *createArgs
	shelf   string // where skills lie below r, ends in a slash; "" for r itself
	private bool   // the user's own: for their eyes only, and no change of the workspace
	images  session.Images
	session session.SessionID
}

// write puts the skill in the place of the one that is there, a folder or a file of its own, or makes a folder for it.
func (w *writing) write(ctx context.Context) (session.ToolResult, error) {
	path, info, err := w.find()
	if err != nil {
		return w.refused(path, err)
	}
	created := info == nil
	if !created && !w.args.Overwrite {
		return session.InvalidArguments(createName, "the %s skill %s exists already; pass overwrite=true to replace it.", w.args.Scope, w.args.Name), nil
	}
	old, text := "", w.args.text()
	if !created {
		var refused *session.ToolResult
		if old, info, refused, err = w.read(path); err != nil || refused != nil {
			return session.Ended(refused, err)
		}
	}
	place, err := w.r.Resolve(path)
	if err != nil {
		return w.refused(path, err)
	}
	if place.Rel != path {
		return w.refused(path, &roots.PathError{Reason: roots.Outside, Path: path, Resolved: place.Abs})
	}
	if ctx.Err() != nil {
		return session.ToolResult{}, context.Cause(ctx)
	}
	res := session.ToolResult{
		Data: w.r.Show(place), Meta: map[string]any{"name": w.args.Name, "scope": w.args.Scope, "created": created},
	}
	if w.private {
		res.Data = filepath.ToSlash(place.Abs)
	}
	if !created && old == text {
		return res, nil
	}
	if refused, err := w.keep(ctx, created, old); err != nil || refused != nil {
		return session.Ended(refused, err)
	}
	o := roots.WriteOptions{Since: info, Absent: created}
	if w.private {
		o.Perm = 0o600
		if err := os.Mkdir(filepath.Dir(place.Abs), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return unwritable(filepath.Dir(place.Abs), err), nil
		}
	}
	if _, err = w.r.WriteFile(path, []byte(text), o); err != nil {
		return w.refused(path, err)
	}
	if !w.private {
		res.Changes = []protocol.FileChange{change(place.Abs, old, text, created)}
	}
	return res, nil
}

// find looks for the skill's file. The info is nil where there is none; the path is then where it goes.
func (w *writing) find() (path string, info fs.FileInfo, err error) {
	alone, inFolder := w.shelf+w.args.Name+".md", w.shelf+w.args.Name+"/SKILL.md"
	for _, path := range []string{inFolder, alone} {
		f, info, err := w.r.OpenFile(path)
		if e, ok := errors.AsType[*roots.PathError](err); ok && e.Reason == roots.Missing {
			continue
		}
		if err == nil {
			_ = f.Close()
		}
		return path, info, err
	}
	return inFolder, nil, nil
}

// read reads what is there. A result refuses the file: what is no text is not replaced.
func (w *writing) read(path string) (string, fs.FileInfo, *session.ToolResult, error) {
	f, info, err := w.r.OpenFile(path)
	if err != nil {
		refused, err := w.refused(path, err)
		return "", nil, &refused, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxOldBytes+1))
	switch {
	case err != nil:
		refused := unwritable(path, err)
		return "", nil, &refused, nil
	case len(data) > maxOldBytes:
		return "", nil, &session.ToolResult{
			Status: protocol.ToolRejected, ErrorType: protocol.ErrTooLarge, Error: fmt.Sprintf("%q has more than %d bytes; it is not replaced.", path, maxOldBytes),
		}, nil
	case !utf8.Valid(data):
		refused := session.InvalidArguments(createName, "%q is not UTF-8 text; it is not replaced.", path)
		return "", nil, &refused, nil
	}
	return string(data), info, nil, nil
}

// keep puts the content from before where undo finds it. A result refuses the change: what could not be undone is not written.
func (w *writing) keep(ctx context.Context, created bool, old string) (*session.ToolResult, error) {
	if w.images == nil || created {
		return nil, nil
	}
	_, err := w.images.Keep(ctx, w.session, []byte(old))
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return &session.ToolResult{
		Status: protocol.ToolFailed, ErrorType: protocol.ErrPersistence,
		Error: fmt.Sprintf("The skill was not changed: its content from before could not be kept for undo (%v).", err),
	}, nil
}

// refused is session.Refused, for a path the model did not choose: what leads elsewhere is said in its own words.
func (w *writing) refused(path string, err error) (session.ToolResult, error) {
	if e, ok := errors.AsType[*roots.PathError](err); ok && e.Reason == roots.Outside {
		return session.ToolResult{
			Status: protocol.ToolRejected, ErrorType: protocol.ErrPermissionDenied,
			Error: fmt.Sprintf("%q leads through a link to another place; skills are not written there.", path),
		}, nil
	}
	return session.Refused(err)
}

func unwritable(path string, err error) session.ToolResult {
	r := session.ToolResult{Status: protocol.ToolFailed, ErrorType: protocol.ErrInternal}
	if errors.Is(err, fs.ErrPermission) {
		r.ErrorType = protocol.ErrPermissionDenied
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	r.Error = fmt.Sprintf("%q cannot be used: %v.", path, err)
	return r
}

// change is what is told of the file, bounded as every change is (docs/protocol/rind-v2.md section 5).
func change(abs, old, text string, created bool) protocol.FileChange {
	ch := protocol.FileChange{FilePath: filepath.ToSlash(abs)}
	ch.More.MIME, ch.More.Created, ch.More.After = "text/markdown", created, protocol.Digest([]byte(text))
	if !created {
		ch.More.Before = protocol.Digest([]byte(old))
	}
	ch.Carry(old, text)
	var told protocol.ChangeLines
	for _, e := range udiff.Lines(old, text) {
		ch.More.Removed += told.Take("removed", old[e.Start:e.End])
		ch.More.Added += told.Take("added", e.New)
	}
	ch.Lines = told.Told()
	return ch
}
