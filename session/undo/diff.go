package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

// Bounds of what Diff tells.
const (
	maxText  = 4 << 20  // bytes of the two texts of a file
	maxDiff  = 1 << 20  // bytes of one file's diff
	maxDiffs = 16 << 20 // bytes of all of them
)

// Diff implements session.Undo. Files that a turn left as it found them are left out. A turn without such files, and a session without
// such a turn, gives none.
func (u *Undo) Diff(ctx context.Context, id session.SessionID, name session.TurnID) (session.TurnID, []session.FileDiff, error) {
	meta, err := u.meta(ctx, id)
	if err != nil {
		return "", nil, err
	}
	is, err := names(name)
	if err != nil {
		return "", nil, err
	}
	var t *turn
	err = u.turns(ctx, id, func(x *turn) (bool, error) {
		if name != "" {
			return u.match(is, name, x, &t)
		}
		if len(x.files) == 0 {
			return true, nil
		}
		t = x
		return false, nil
	})
	switch {
	case err != nil:
		return "", nil, err
	case t == nil && name == "":
		return "", nil, nil
	case t == nil:
		return "", nil, protocol.Errorf(protocol.NotFound, "Turn not found: %s", protocol.Prefix(string(name), 64))
	}
	w, err := u.open(id, meta.Workspace)
	if err != nil {
		return "", nil, err
	}
	defer w.close()
	w.allow(t)
	var out []session.FileDiff
	left := maxDiffs
	for _, c := range t.list() {
		if c.first.known() && c.first == c.last {
			continue
		}
		d, err := u.diff(ctx, w, c)
		if err != nil {
			return "", nil, err
		}
		if left -= len(d.Diff); left < 0 {
			d.Diff, d.Reason = "", "Too much was changed to show all of it."
		}
		out = append(out, d)
	}
	return t.id, out, nil
}

func (u *Undo) diff(ctx context.Context, w *workplace, c *change) (session.FileDiff, error) {
	d := session.FileDiff{Path: w.show(c.path), Created: c.first.gone, Removed: c.last.gone}
	before, kept, err := u.before(ctx, w, c)
	if err != nil {
		return d, err
	}
	d.Kept = kept
	after, there, err := u.after(ctx, w, c)
	switch {
	case err != nil:
		return d, err
	case !kept:
		d.Reason = "The content from before was not kept."
	case !there:
		d.Reason = "The file was changed since, and what the turn wrote was not kept."
	case !isText(before), !isText(after):
		d.Reason = "Binary files differ."
	case len(before)+len(after) > maxText:
		d.Reason = "The file is too long to be compared."
	default:
		from, to := "a/"+d.Path, "b/"+d.Path
		if d.Created {
			from = "/dev/null"
		}
		if d.Removed {
			to = "/dev/null"
		}
		d.Diff = udiff.Unified(from, to, string(before), string(after))
		if d.Diff == "" { // an empty file came or went
			d.Diff = fmt.Sprintf("--- %s\n+++ %s\n", from, to)
		}
		if len(d.Diff) > maxDiff {
			d.Diff, d.Reason = "", "The change is too long to be shown."
		}
	}
	return d, nil
}

// before is the content from before the turn: the image, else what the log holds of it.
func (u *Undo) before(ctx context.Context, w *workplace, c *change) (data []byte, kept bool, err error) {
	if c.first.gone || !c.first.known() {
		return nil, c.first.gone, nil
	}
	data, err = w.images.Image(ctx, w.session, c.first.digest)
	if errors.Is(err, session.ErrNotFound) {
		return u.told(ctx, w, c.firstSeq, c.first.digest)
	}
	return data, err == nil, err
}

// after is what the turn left: the file as it is, else an image that a later turn kept, else what the log holds of it.
func (u *Undo) after(ctx context.Context, w *workplace, c *change) (data []byte, there bool, err error) {
	if c.last.gone || !c.last.known() {
		return nil, c.last.gone, nil
	}
	now, err := w.look(ctx, c.path, true)
	if err != nil && !errors.As(err, new(*roots.PathError)) {
		return nil, false, err
	}
	if err == nil && now.state == c.last {
		return now.data, now.data != nil, nil
	}
	data, err = w.images.Image(ctx, w.session, c.last.digest)
	if errors.Is(err, session.ErrNotFound) {
		return u.told(ctx, w, c.lastSeq, c.last.digest)
	}
	return data, err == nil, err
}

// told is the text with that digest in the file_change at seq.
func (u *Undo) told(ctx context.Context, w *workplace, seq session.Seq, digest string) ([]byte, bool, error) {
	entries, err := u.cfg.Store.Read(ctx, w.session, seq-1, 1, protocol.ViewAll)
	if err != nil {
		return nil, false, storeError(err)
	}
	if len(entries) != 1 || entries[0].Seq != seq || entries[0].Kind != protocol.KindFileChange {
		return nil, false, nil
	}
	b, err := protocol.Decode(&entries[0])
	if err != nil {
		return nil, false, storeError(fmt.Errorf("%w: %w", session.ErrCorrupt, err))
	}
	ch := b.(*protocol.FileChange)
	for _, text := range []*string{ch.More.OldText, ch.More.NewText} {
		if text == nil {
			continue
		}
		if protocol.Digest([]byte(*text)) == digest {
			return []byte(*text), true, nil
		}
	}
	return nil, false, nil
}

func isText(data []byte) bool { return bytes.IndexByte(data, 0) < 0 && utf8.Valid(data) }
