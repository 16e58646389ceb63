package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// append inserts a batch. Its first write is the update of the session's row, which is also the check of lease and order; when that
// changes nothing, nothing was written and the error says why.
func (w *writer) append(ctx context.Context, l session.Lease, b *session.Batch) error {
	id, err := w.session(ctx, l.Session)
	if err != nil {
		return err
	}
	before, head := int64(-1), int64(-1) // an empty batch leaves the head
	for i := range b.Entries {
		head = int64(b.Entries[i].Seq)
		if i == 0 {
			before = head - 1
		}
		if before < 0 || head != before+int64(i)+1 {
			return fmt.Errorf("session %s: entry %d behind %d: %w", l.Session, head, before+int64(i), session.ErrGap)
		}
	}
	for i, k := range b.Keys {
		var taken int
		if err := w.row(ctx, "SELECT count(*) FROM keys WHERE session = ? AND surface = ? AND key = ?", id, k.Surface, k.Key).Scan(&taken); err != nil {
			return err
		}
		same := func(o session.Key) bool { return o.Surface == k.Surface && o.Key == k.Key }
		if taken > 0 || slices.ContainsFunc(b.Keys[:i], same) {
			return fmt.Errorf("session %s: %w", l.Session, session.ErrKeyUsed)
		}
	}
	w.touched++
	changed, err := w.update(ctx, id, l, b, before, head)
	if err != nil {
		return err
	}
	if !changed {
		return w.refusal(ctx, id, l, b, before)
	}
	for _, k := range b.Keys {
		if err := w.exec(ctx, "INSERT INTO keys (session, surface, key, digest, turn) VALUES (?, ?, ?, ?, ?)", id, k.Surface, k.Key, k.Digest, string(k.Turn)); err != nil {
			return err
		}
	}
	for i := range b.Entries {
		if err := w.insert(ctx, id, &b.Entries[i]); err != nil {
			return err
		}
	}
	if b.Row != nil && b.Row.Usage != nil {
		u := b.Row.Usage
		return w.exec(ctx, "INSERT INTO samples (session, time, model, input, cached, output, reasoning, compaction) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			id, u.Time.UnixMicro(), u.Model, u.Input, u.Cached, u.Output, u.Reasoning, u.Compaction)
	}
	return nil
}

// update moves the head from before to head, and the row and the lease with it; false when lease or head are not what the batch was made for.
func (w *writer) update(ctx context.Context, id int64, l session.Lease, b *session.Batch, before, head int64) (bool, error) {
	now := w.s.opt.Now().UnixMicro()
	q, args := "UPDATE sessions SET head = CASE WHEN ? < 0 THEN head ELSE ? END, touched = ?, activity = ?", []any{head, head, w.touched, now}
	if r := b.Row; r != nil {
		if !r.Activity.IsZero() {
			args[3] = r.Activity.UnixMicro()
		}
		q += ", title = ?, preview = ?, messages = ?, tool_calls = ?, user_prompt = ?, metadata = ?"
		args = append(args, r.Title, r.Preview, r.Messages, r.ToolCalls, r.UserPrompt, blob(r.Metadata))
		if r.Fold != nil {
			q += ", fold = ?, fold_seq = ?"
			args = append(args, r.Fold, int64(r.FoldSeq))
		}
	}
	switch {
	case b.Release:
		q += ", owner = ''"
	case b.Retake:
		q, args = q+", owner = ?", append(args, w.s.inst.id)
	}
	q, args = q+" WHERE id = ? AND epoch = ? AND (? < 0 OR head = ?)", append(args, id, l.Epoch, before, before)
	if b.Retake { // without a lease nothing kept the row from becoming that of another session
		q, args = q+" AND owner IN ('', ?) AND session = ?", append(args, w.s.inst.id, string(l.Session))
	} else {
		q, args = q+" AND owner = ?", append(args, w.s.inst.id)
	}
	res, err := w.change(ctx, q, args...)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// refusal says why a batch did not fit.
func (w *writer) refusal(ctx context.Context, id int64, l session.Lease, b *session.Batch, before int64) error {
	var head, epoch int64
	var name, owner string
	err := w.row(ctx, "SELECT session, head, epoch, owner FROM sessions WHERE id = ?", id).Scan(&name, &head, &epoch, &owner)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && name != string(l.Session):
		delete(w.ids, l.Session)
		return fmt.Errorf("session %s: %w", l.Session, session.ErrNotFound)
	case err != nil:
		return err
	case epoch != l.Epoch || owner != w.s.inst.id && !(b.Retake && owner == ""):
		return fmt.Errorf("session %s: %w", l.Session, session.ErrFenced)
	}
	return fmt.Errorf("session %s: entry %d behind head %d: %w", l.Session, before+1, head, session.ErrGap)
}

func blob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

func (w *writer) insert(ctx context.Context, id int64, e *session.Entry) error {
	var turn any
	if e.Turn != "" {
		n, err := w.turn(ctx, id, e)
		if err != nil {
			return err
		}
		turn = n
	}
	w.nextID++
	return w.exec(ctx, "INSERT INTO entries (id, session, seq, turn, number, count, kind, class, view, time, event, more) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		w.nextID, id, int64(e.Seq), turn, e.PortableFirst, e.PortableCount, int64(e.Kind), int64(e.Class()), int64(e.Told()), e.Time.UnixMicro(), blob(e.Event), blob(e.More))
}

// turn returns the row of an entry's turn, made when it is new, and keeps what retention needs to know of it.
func (w *writer) turn(ctx context.Context, id int64, e *session.Entry) (int64, error) {
	n, known := w.turns[e.Turn]
	if !known {
		var err error
		if n, err = w.newTurn(ctx, id, e); err != nil {
			return 0, err
		}
		w.turns[e.Turn] = n
	}
	if e.Kind.Info().Terminal {
		delete(w.turns, e.Turn)
		return n, w.exec(ctx, "UPDATE turns SET ended = ? WHERE id = ?", e.Time.UnixMicro(), n)
	}
	return n, nil
}

// newTurn makes the row of a turn, unless it is there: then this process has not appended to it before.
func (w *writer) newTurn(ctx context.Context, id int64, e *session.Entry) (n int64, err error) {
	portable := e.Kind == protocol.KindTurnAccepted && !byEditor(e)
	res, err := w.change(ctx, "INSERT INTO turns (turn, session, portable) VALUES (?, ?, ?) ON CONFLICT (turn) DO NOTHING", string(e.Turn), id, portable)
	if err != nil {
		return 0, err
	}
	if made, _ := res.RowsAffected(); made > 0 {
		return res.LastInsertId()
	}
	err = w.row(ctx, "SELECT id FROM turns WHERE turn = ?", string(e.Turn)).Scan(&n)
	return n, err
}

// byEditor reports whether a turn was accepted from an editor, whose increments may go. What a newer version wrote otherwise keeps them.
func byEditor(e *session.Entry) bool {
	b, err := protocol.Decode(e)
	return err == nil && b.(*protocol.TurnAccepted).More.Surface != protocol.SurfacePortable
}

// session returns the row of a session.
func (w *writer) session(ctx context.Context, id session.SessionID) (int64, error) {
	if n, ok := w.ids[id]; ok {
		return n, nil
	}
	var n int64
	err := w.row(ctx, "SELECT id FROM sessions WHERE session = ? AND "+notGone, string(id)).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("session %s: %w", id, session.ErrNotFound)
	}
	if err == nil {
		if len(w.ids) > 256 {
			w.ids = map[session.SessionID]int64{}
		}
		w.ids[id] = n
	}
	return n, err
}
