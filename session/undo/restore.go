package undo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

const (
	// maxKept is the largest content that is read into memory: no image is larger.
	maxKept = 10 << 20
	// newPerm are the permissions of a file that a command had removed, ownPerm those of one that holds credentials; those they had are not in
	// the log.
	newPerm fs.FileMode = 0o644
	ownPerm fs.FileMode = 0o600
)

// workplace is the workspace of a session during one call.
type workplace struct {
	session session.SessionID
	base    string
	roots   *roots.Roots
	images  session.Images
	keep    bool
	secret  func(path string) bool
	allowed map[string]bool
}

func (w *workplace) close() { w.roots.Close() }

// allow lets the files be used that lie outside the roots and that a file tool of the turn wrote.
func (w *workplace) allow(t *turn) {
	if w.allowed == nil {
		w.allowed = map[string]bool{}
	}
	for path, c := range t.files {
		if c.tool && !w.allowed[path] {
			w.allowed[path] = true
			w.roots.Allow(path)
		}
	}
}

// show is how a file is named to a person.
func (w *workplace) show(path string) string {
	if rel, err := filepath.Rel(w.base, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(path)
}

// present is what a file is now.
type present struct {
	state
	info fs.FileInfo // nil where it is gone
	data []byte      // where it was asked for and is not too large
}

// look describes the file path, by its content. A *roots.PathError says why it cannot be looked at, or is none the turn wrote.
func (w *workplace) look(ctx context.Context, path string, content bool) (present, error) {
	if ctx.Err() != nil {
		return present{}, context.Cause(ctx)
	}
	place, err := w.roots.Resolve(path)
	if err != nil {
		return present{}, err
	}
	if place.Abs != path { // the path was without links when it was written down
		return present{}, &roots.PathError{Reason: roots.Changed, Path: path, Resolved: place.Abs, Text: "A link leads somewhere else by now."}
	}
	f, info, err := w.roots.OpenFile(path)
	if e, ok := errors.AsType[*roots.PathError](err); ok && e.Reason == roots.Missing {
		return present{state: state{gone: true}}, nil
	}
	if err != nil {
		return present{}, err
	}
	defer f.Close()
	p := present{info: info}
	sum := sha256.New()
	if content && info.Size() <= maxKept {
		p.data, err = io.ReadAll(io.LimitReader(f, maxKept+1))
		_, _ = sum.Write(p.data)
		if len(p.data) > maxKept {
			err = errors.New("it grows")
		}
	} else {
		_, err = io.Copy(sum, &stoppable{ctx, f})
	}
	if ctx.Err() != nil {
		return present{}, context.Cause(ctx)
	}
	if err != nil {
		return present{}, &roots.PathError{Reason: roots.Denied, Path: path, Text: fmt.Sprintf("It cannot be read: %v.", err), Cause: err}
	}
	p.digest = hex.EncodeToString(sum.Sum(nil))
	return p, nil
}

// stoppable ends a read of a large file with its context.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s *stoppable) Read(b []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.r.Read(b)
}

// asBefore reports whether the file is what it was before the turn.
func (w *workplace) asBefore(ctx context.Context, c *change) (bool, error) {
	if !c.first.known() {
		return false, nil
	}
	now, err := w.look(ctx, c.path, false)
	if errors.As(err, new(*roots.PathError)) {
		return false, nil
	}
	return err == nil && now.state == c.first, err
}

// fate is what became of a file.
type fate struct {
	session.FileUndo
	failed bool // for a fault of the machine, which the next file would meet as well
}

// restore puts one file back, if it may be; without act it only tells. The error is the end of ctx.
func (w *workplace) restore(ctx context.Context, c *change, blind, act bool) (fate, error) {
	end := func(status, reason string) (fate, error) {
		return fate{FileUndo: session.FileUndo{Path: w.show(c.path), Status: status, Reason: reason}}, nil
	}
	now, err := w.look(ctx, c.path, act && w.keep)
	if e, ok := errors.AsType[*roots.PathError](err); ok {
		return end(session.FileChangedSince, e.Text)
	}
	if err != nil {
		return fate{}, err
	}
	switch {
	case c.first.known() && now.state == c.first:
		return end(session.FileRestored, "")
	case !c.last.known():
		return end(session.FileNotKept, "What the turn left is not known, so that later work could be lost.")
	case now.state != c.last:
		return end(session.FileChangedSince, "")
	case c.broken && !blind:
		return end(session.FileChangedSince, "Somebody else changed it while the turn ran.")
	case !c.first.known():
		return end(session.FileNotKept, "")
	}
	var data []byte
	if !c.first.gone {
		data, err = w.images.Image(ctx, w.session, c.first.digest)
		switch {
		case errors.Is(err, session.ErrNotFound):
			return end(session.FileNotKept, "")
		case ctx.Err() != nil:
			return fate{}, context.Cause(ctx)
		case err != nil:
			return end(session.FileNotKept, fmt.Sprintf("It was not restored: %v.", err))
		}
	}
	if !act {
		return end(session.FileRestored, "")
	}
	return w.put(ctx, c, now, data)
}

// put writes data in the place of what is there now, or removes it.
func (w *workplace) put(ctx context.Context, c *change, now present, data []byte) (fate, error) {
	out := fate{FileUndo: session.FileUndo{Path: w.show(c.path), Status: session.FileRestored}}
	var err error
	if w.keep && now.data != nil {
		_, err = w.images.Keep(ctx, w.session, now.data)
	}
	if err == nil {
		switch {
		case c.first.gone:
			err = w.remove(c.path, now.info)
		case now.gone:
			perm := newPerm
			if w.secret(c.path) {
				perm = ownPerm
			}
			_, err = w.roots.WriteFile(c.path, data, roots.WriteOptions{Absent: true, Perm: perm})
		default:
			_, err = w.roots.WriteFile(c.path, data, roots.WriteOptions{Since: now.info})
		}
	}
	switch e, ok := errors.AsType[*roots.PathError](err); {
	case err == nil:
		return out, nil
	case ok && e.Reason != roots.Denied:
		out.Status, out.Reason = session.FileChangedSince, e.Text
	case ok:
		out.Status, out.Reason = session.FileNotKept, "It was not restored: "+e.Text
		out.failed = !errors.Is(err, fs.ErrPermission)
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	default:
		out.Status, out.Reason, out.failed = session.FileNotKept, fmt.Sprintf("It was not restored: %v.", err), true
	}
	return out, nil
}

// remove removes a file that is still the one that was looked at. Folders stay, also those that are empty now.
func (w *workplace) remove(path string, seen fs.FileInfo) error {
	info, err := w.roots.Stat(path)
	if err != nil {
		return err
	}
	if !os.SameFile(info, seen) || info.Size() != seen.Size() || !info.ModTime().Equal(seen.ModTime()) {
		return &roots.PathError{Reason: roots.Changed, Path: path, Text: "It was changed just now."}
	}
	return w.roots.Remove(path)
}

// secure makes the images of the turn the newest, so that keeping what is overwritten does not make room with them.
func (w *workplace) secure(ctx context.Context, t *turn) {
	for _, c := range t.files {
		if !c.first.gone && c.first.known() {
			_, _ = w.images.Image(ctx, w.session, c.first.digest)
		}
	}
}

// receipt is what is kept, among the images, of a turn that was undone: contents alone cannot tell. A turn that changed a file back to
// what an older one had found would look as if it could be undone again, once that older one is.
func receipt(turn session.TurnID) []byte {
	return []byte("rind: the turn " + string(turn) + " was undone\n")
}

// note keeps the receipt. Where that fails contents have to tell.
func (w *workplace) note(ctx context.Context, turn session.TurnID) {
	_, _ = w.images.Keep(ctx, w.session, receipt(turn))
}

// noted reports whether the turn was undone.
func (w *workplace) noted(ctx context.Context, turn session.TurnID) bool {
	_, err := w.images.Image(ctx, w.session, protocol.Digest(receipt(turn)))
	return err == nil
}
