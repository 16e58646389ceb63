package sqlite

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// append inserts a batch. Its first write is the update of the session's row, which is also the check of lease and order; when that
// changes nothing, nothing was written and the error says why.
func (w *writer) append(l session.Lease, b *session.Batch) error {
	id, err := w.leased(l.Session)
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
		if err := w.row("SELECT count(*) FROM keys WHERE session = ? AND surface = ? AND key = ?", id, k.Surface, k.Key).Scan(&taken); err != nil {
			return err
		}
		same := func(o session.Key) bool { return o.Surface == k.Surface && o.Key == k.Key }
		if taken > 0 || slices.ContainsFunc(b.Keys[:i], same) {
			return fmt.Errorf("session %s: %w", l.Session, session.ErrKeyUsed)
		}
	}
	w.touched++
	changed, err := w.update(id, l, b, before, head)
	if err != nil {
		return err
	}
	if !changed {
		return w.refusal(id, l, b, before)
	}
	for _, k := range b.Keys {
		if err := w.exec("INSERT INTO keys (session, surface, key, digest, turn) VALUES (?, ?, ?, ?, ?)", id, k.Surface, k.Key, k.Digest, string(k.Turn)); err != nil {
			return err
		}
	}
	for i := range b.Entries {
		if err := w.insert(id, &b.Entries[i]); err != nil {
			return err
		}
	}
	if b.Row != nil && b.Row.Usage != nil {
		u := b.Row.Usage
		return w.exec("INSERT INTO samples (session, time, model, input, cached, output, reasoning, compaction) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			id, u.Time.UnixMicro(), u.Model, u.Input, u.Cached, u.Output, u.Reasoning, u.Compaction)
	}
	return nil
}

// What an update of a session's row changes beside its head and activity.
const (
	withRow = 1 << iota
	withFold
	withRelease
	withRetake
)

// updateOf is the statement for such an update. Its arguments are in the order in which update binds them.
func updateOf(shape int) string {
	q := "UPDATE sessions SET head = CASE WHEN ? < 0 THEN head ELSE ? END, touched = ?, activity = ?"
	if shape&withRow != 0 {
		q += ", title = ?, preview = ?, messages = ?, tool_calls = ?, user_prompt = ?, metadata = ?"
	}
	if shape&withFold != 0 {
		q += ", fold = ?, fold_seq = ?"
	}
	switch {
	case shape&withRelease != 0:
		q += ", owner = ''"
	case shape&withRetake != 0:
		q += ", owner = ?"
	}
	q += " WHERE id = ? AND epoch = ? AND (? < 0 OR head = ?) AND "
	if shape&withRetake != 0 { // without a lease nothing kept the row from becoming that of another session
		return q + "owner IN ('', ?) AND session = ?"
	}
	return q + "owner = ?"
}

func shapeOf(b *session.Batch) (shape int) {
	if b.Row != nil {
		shape |= withRow
		if b.Row.Fold != nil {
			shape |= withFold
		}
	}
	if b.Release {
		shape |= withRelease
	}
	if b.Retake {
		shape |= withRetake
	}
	return shape
}

// update moves the head from before to head, and the row and the lease with it; false when lease or head are not what the batch was made for.
func (w *writer) update(id int64, l session.Lease, b *session.Batch, before, head int64) (bool, error) {
	shape := shapeOf(b)
	if w.updates[shape] == "" {
		w.updates[shape] = updateOf(shape)
	}
	st, err := w.Prepare(w.updates[shape])
	if err != nil {
		return false, err
	}
	param := 0
	number := func(n int64) { param++; st.BindInt64(param, n) }
	text := func(s string) { param++; st.BindText(param, s) }
	bytes := func(b []byte) { param++; bindBlob(st, param, b) }
	activity := w.s.opt.Now()
	if r := b.Row; r != nil && !r.Activity.IsZero() {
		activity = r.Activity
	}
	number(head)
	number(head)
	number(w.touched)
	number(activity.UnixMicro())
	if r := b.Row; r != nil {
		text(r.Title)
		text(r.Preview)
		number(int64(r.Messages))
		number(int64(r.ToolCalls))
		param++
		st.BindBool(param, r.UserPrompt)
		bytes(r.Metadata)
		if r.Fold != nil {
			bytes(r.Fold)
			number(int64(r.FoldSeq))
		}
	}
	if b.Retake && !b.Release {
		text(w.s.inst.id)
	}
	number(id)
	number(l.Epoch)
	number(before)
	number(before)
	text(w.s.inst.id)
	if b.Retake {
		text(string(l.Session))
	}
	err = finish(st)
	return err == nil && w.Changes() > 0, err
}

// refusal says why a batch did not fit.
func (w *writer) refusal(id int64, l session.Lease, b *session.Batch, before int64) error {
	var head, epoch int64
	var name, owner string
	err := w.row("SELECT session, head, epoch, owner FROM sessions WHERE id = ?", id).Scan(&name, &head, &epoch, &owner)
	switch {
	case errors.Is(err, errNoRow), err == nil && name != string(l.Session):
		delete(w.ids, l.Session)
		return fmt.Errorf("session %s: %w", l.Session, session.ErrNotFound)
	case err != nil:
		return err
	case epoch != l.Epoch || owner != w.s.inst.id && !(b.Retake && owner == ""):
		return fmt.Errorf("session %s: %w", l.Session, session.ErrFenced)
	}
	return fmt.Errorf("session %s: entry %d behind head %d: %w", l.Session, before+1, head, session.ErrGap)
}

// blob makes NULL of nil.
func blob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// insert is what a log does most: its arguments take no detour.
func (w *writer) insert(id int64, e *session.Entry) error {
	turn := int64(0)
	if e.Turn != "" {
		var err error
		if turn, err = w.turn(id, e); err != nil {
			return err
		}
	}
	st, err := w.Prepare("INSERT INTO entries (id, session, seq, number, count, kind, class, view, time, turn, event, more) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	w.nextID++
	for i, n := range [...]int64{w.nextID, id, int64(e.Seq), e.PortableFirst, int64(e.PortableCount), int64(e.Kind), int64(e.Class()), int64(e.Told()), e.Time.UnixMicro()} {
		st.BindInt64(i+1, n)
	}
	if turn != 0 { // else it is NULL
		st.BindInt64(10, turn)
	}
	bindBlob(st, 11, e.Event)
	bindBlob(st, 12, e.More)
	return finish(st)
}

// turn returns the row of an entry's turn, made when it is new, and keeps what retention needs to know of it.
func (w *writer) turn(id int64, e *session.Entry) (int64, error) {
	n, known := w.turns[e.Turn]
	if !known {
		var err error
		if n, err = w.newTurn(id, e); err != nil {
			return 0, err
		}
		w.turns[e.Turn] = n
	}
	if e.Kind.Info().Terminal {
		delete(w.turns, e.Turn)
		return n, w.exec("UPDATE turns SET ended = ? WHERE id = ?", e.Time.UnixMicro(), n)
	}
	return n, nil
}

// newTurn makes the row of a turn, unless it is there: then this process has not appended to it before.
func (w *writer) newTurn(id int64, e *session.Entry) (n int64, err error) {
	portable := e.Kind == protocol.KindTurnAccepted && !byEditor(e)
	made, err := w.change("INSERT INTO turns (turn, session, portable) VALUES (?, ?, ?) ON CONFLICT (turn) DO NOTHING", string(e.Turn), id, portable)
	if err != nil {
		return 0, err
	}
	if made > 0 {
		return w.LastInsertRowID(), nil
	}
	err = w.row("SELECT id FROM turns WHERE turn = ?", string(e.Turn)).Scan(&n)
	return n, err
}

// byEditor reports whether a turn was accepted from an editor, whose increments may go. What a newer version wrote otherwise keeps them.
func byEditor(e *session.Entry) bool {
	surface := protocol.Member(e.More, "surface")
	return surface != nil && string(surface) != `"`+protocol.SurfacePortable+`"`
}

// leased returns the row of a session for whoever has its lease, under which it stays what it is: what was looked up once is enough.
func (w *writer) leased(id session.SessionID) (int64, error) {
	if n, ok := w.ids[id]; ok {
		return n, nil
	}
	return w.session(id)
}

// session looks the row of a session up. Without its lease another process may have deleted the session, and given the row to another one.
func (w *writer) session(id session.SessionID) (int64, error) {
	var n int64
	err := w.row("SELECT id FROM sessions WHERE session = ? AND "+notGone, string(id)).Scan(&n)
	if errors.Is(err, errNoRow) {
		delete(w.ids, id)
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
