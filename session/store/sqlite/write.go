package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Bounds of one transaction.
const (
	groupEntries = 512
	groupBytes   = 1 << 20
)

// checkpointIdle is how long nothing was written before the WAL is emptied.
const checkpointIdle = 2 * time.Second

// op is one piece of work for the writer: an append, or a function run in the transaction.
type op struct {
	lease session.Lease
	batch *session.Batch
	do    func(ctx context.Context, w *writer) error
	solo  func(ctx context.Context, w *writer) error // outside a transaction
	done  func(error)
	err   error
}

func (o *op) fact() bool {
	if o.batch == nil {
		return false
	}
	for i := range o.batch.Entries {
		if o.batch.Entries[i].Class() == protocol.Fact {
			return true
		}
	}
	return len(o.batch.Keys) > 0
}

func (o *op) size() (entries, bytes int) {
	if o.batch == nil {
		return 1, 256
	}
	for i := range o.batch.Entries {
		bytes += o.batch.Entries[i].Size()
	}
	return len(o.batch.Entries), bytes
}

// submit hands o to the writer, starting it the first time. It may block while 1,024 pieces of work wait.
func (s *Store) submit(o *op) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		go o.done(session.ErrClosed)
		return
	}
	if !s.writing {
		s.writing = true
		go s.writeLoop()
	}
	s.mu.Unlock()
	select {
	case s.write <- o:
	case <-s.finished:
		go o.done(session.ErrClosed)
	}
}

// run does one function in a transaction and waits for it.
func (s *Store) run(ctx context.Context, do func(ctx context.Context, w *writer) error) error {
	ch := make(chan error, 1)
	s.submit(&op{do: do, done: func(err error) { ch <- err }})
	select {
	case err := <-ch:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Append implements session.Log.
func (s *Store) Append(l session.Lease, b session.Batch, done func(error)) {
	s.submit(&op{lease: l, batch: &b, done: done})
}

// writer is the state of the writer goroutine.
type writer struct {
	s       *Store
	db      *sql.DB
	conn    *sql.Conn
	stmts   map[string]*sql.Stmt
	full    int // 1: synchronous is FULL, 0: NORMAL, -1: unknown
	ids     map[session.SessionID]int64
	turns   map[session.TurnID]int64
	nextID  int64
	touched int64 // the order of activity is a counter, so that lists do not depend on a clock
}

func (s *Store) writeLoop() {
	defer close(s.finished)
	w := &writer{s: s, full: -1}
	defer w.close()
	idle := time.NewTimer(time.Hour)
	defer idle.Stop()
	dirty := false
	for {
		var first *op
		select {
		case first = <-s.write:
		case <-idle.C:
			if dirty {
				w.checkpoint()
				dirty = false
			}
			continue
		case <-s.stop:
			for {
				select {
				case o := <-s.write:
					w.group([]*op{o})
				default:
					w.checkpoint()
					return
				}
			}
		}
		ops := []*op{first}
		entries, bytes := first.size()
	more:
		for entries < groupEntries && bytes < groupBytes {
			select {
			case o := <-s.write:
				ops = append(ops, o)
				e, b := o.size()
				entries, bytes = entries+e, bytes+b
			default:
				break more
			}
		}
		w.group(ops)
		dirty = true
		idle.Reset(checkpointIdle)
	}
}

// group runs ops in order: those outside a transaction by themselves, the others together.
func (w *writer) group(ops []*op) {
	start := 0
	for i, o := range ops {
		if o.solo == nil {
			continue
		}
		w.commit(ops[start:i])
		err := w.open()
		if err == nil {
			err = w.s.fault("write", o.solo(context.Background(), w))
		}
		o.done(err)
		start = i + 1
	}
	w.commit(ops[start:])
}

// commit writes ops in one transaction and acknowledges them. An op that fails by itself (a stale lease, a gap) leaves no trace and
// harms none of the others.
func (w *writer) commit(ops []*op) {
	if len(ops) == 0 {
		return
	}
	err := w.transaction(ops)
	if err != nil {
		err = w.s.fault("write", err)
		w.reset()
	}
	w.s.opt.Kill("before-ack")
	for _, o := range ops {
		if err != nil {
			o.done(err)
		} else {
			o.done(o.err)
		}
	}
}

func (w *writer) transaction(ops []*op) error {
	ctx := context.Background()
	if _, err := retry(ctx, func() (struct{}, error) { return struct{}{}, w.open() }); err != nil {
		return err
	}
	full := 0
	for _, o := range ops {
		if o.fact() {
			full = 1
		}
	}
	if w.full != full { // before BEGIN: inside a transaction it would not take effect
		q := "PRAGMA synchronous = NORMAL"
		if full == 1 {
			q = "PRAGMA synchronous = FULL"
		}
		if _, err := w.conn.ExecContext(ctx, q); err != nil {
			return err
		}
		w.full = full
	}
	w.s.opt.Kill("before-begin")
	deadline := time.Now().Add(busyLimit)
	for {
		err := w.attempt(ctx, ops)
		if err == nil || !isBusy(err) || time.Now().After(deadline) {
			return err
		}
		jitter()
	}
}

// attempt is one try at the transaction.
func (w *writer) attempt(ctx context.Context, ops []*op) error {
	if err := w.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := w.inside(ctx, ops)
	if err == nil {
		w.s.opt.Kill("before-commit")
		err = w.exec(ctx, "COMMIT")
	}
	if err != nil {
		w.ids, w.turns = map[session.SessionID]int64{}, map[session.TurnID]int64{}
		_, _ = w.conn.ExecContext(ctx, "ROLLBACK")
		return err
	}
	w.s.opt.Kill("after-commit")
	return nil
}

func (w *writer) inside(ctx context.Context, ops []*op) error {
	// The global id is the cursor by which other processes follow, so it must not be given again after a deletion.
	if err := w.row(ctx, "SELECT max((SELECT coalesce(max(id), 0) FROM entries), coalesce((SELECT value FROM meta WHERE name = 'last_id'), 0)), (SELECT coalesce(max(touched), 0) FROM sessions)").Scan(&w.nextID, &w.touched); err != nil {
		return err
	}
	for _, o := range ops {
		o.err = nil
		if o.do == nil { // an append checks before it writes, so it needs no savepoint
			if err := w.append(ctx, o.lease, o.batch); own(err) {
				o.err = err
			} else if err != nil {
				return err
			}
			continue
		}
		if err := w.exec(ctx, "SAVEPOINT one"); err != nil {
			return err
		}
		if err := o.do(ctx, w); err != nil {
			if !own(err) {
				return err
			}
			o.err = err
			w.ids, w.turns = map[session.SessionID]int64{}, map[session.TurnID]int64{}
			if err := w.exec(ctx, "ROLLBACK TO one"); err != nil {
				return err
			}
		}
		if err := w.exec(ctx, "RELEASE one"); err != nil {
			return err
		}
	}
	w.s.opt.Kill("after-insert")
	return nil
}

// own reports whether an error concerns one op only.
func own(err error) bool {
	for _, e := range []error{session.ErrNotFound, session.ErrExists, session.ErrBusy, session.ErrFenced, session.ErrGap, session.ErrKeyUsed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// append inserts a batch. Its first write is the update of the session's row, which is also the check of lease and order; when that
// changes nothing, nothing was written and the error says why.
func (w *writer) append(ctx context.Context, l session.Lease, b *session.Batch) error {
	id, err := w.session(ctx, l.Session)
	if err != nil {
		return err
	}
	before, head := int64(-1), int64(-1) // an empty batch leaves the head
	for i := range b.Entries {
		if i == 0 {
			before = int64(b.Entries[0].Seq) - 1
		}
		head = int64(b.Entries[i].Seq)
		if head != before+int64(i)+1 {
			return fmt.Errorf("session %s: entry %d behind %d: %w", l.Session, head, before+int64(i), session.ErrGap)
		}
	}
	for _, k := range b.Keys {
		var taken int
		if err := w.row(ctx, "SELECT count(*) FROM keys WHERE session = ? AND surface = ? AND key = ?", id, k.Surface, k.Key).Scan(&taken); err != nil {
			return err
		}
		if taken > 0 {
			return fmt.Errorf("session %s: %w", l.Session, session.ErrKeyUsed)
		}
	}
	w.touched++
	changed, err := w.update(ctx, id, l, b.Row, before, head)
	if err != nil {
		return err
	}
	if !changed {
		return w.refusal(ctx, id, l, before)
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

// update moves the head from before to head, and the row with it; false when lease or head are not what the batch was made for.
func (w *writer) update(ctx context.Context, id int64, l session.Lease, r *session.Row, before, head int64) (bool, error) {
	now := w.s.opt.Now().UnixMicro()
	const where = " WHERE id = ? AND epoch = ? AND owner = ? AND (? < 0 OR head = ?)"
	q, args := "UPDATE sessions SET head = CASE WHEN ? < 0 THEN head ELSE ? END, touched = ?, activity = ?", []any{head, head, w.touched, now}
	if r != nil {
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
	st, err := w.stmt(ctx, q+where)
	if err != nil {
		return false, err
	}
	res, err := st.ExecContext(ctx, append(args, id, l.Epoch, w.s.inst.id, before, before)...)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// refusal says why a batch did not fit.
func (w *writer) refusal(ctx context.Context, id int64, l session.Lease, before int64) error {
	var head, epoch int64
	var owner string
	if err := w.row(ctx, "SELECT head, epoch, owner FROM sessions WHERE id = ?", id).Scan(&head, &epoch, &owner); err != nil {
		return err
	}
	if epoch != l.Epoch || owner != w.s.inst.id {
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
		err := w.row(ctx, "SELECT id FROM turns WHERE turn = ?", string(e.Turn)).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			err = w.row(ctx, "INSERT INTO turns (turn, session) VALUES (?, ?) RETURNING id", string(e.Turn), id).Scan(&n)
		}
		if err != nil {
			return 0, err
		}
		w.turns[e.Turn] = n
	}
	if e.Kind == protocol.KindTurnAccepted {
		b, err := protocol.Decode(e)
		if err != nil {
			return 0, err
		}
		if b.(*protocol.TurnAccepted).More.Surface == protocol.SurfacePortable {
			if err := w.exec(ctx, "UPDATE turns SET portable = 1 WHERE id = ?", n); err != nil {
				return 0, err
			}
		}
	}
	if e.Kind.Info().Terminal {
		delete(w.turns, e.Turn)
		return n, w.exec(ctx, "UPDATE turns SET ended = ? WHERE id = ?", e.Time.UnixMicro(), n)
	}
	return n, nil
}

// session returns the row of a session.
func (w *writer) session(ctx context.Context, id session.SessionID) (int64, error) {
	if n, ok := w.ids[id]; ok {
		return n, nil
	}
	var n int64
	err := w.row(ctx, "SELECT id FROM sessions WHERE session = ?", string(id)).Scan(&n)
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

// open gets the write connection.
func (w *writer) open() error {
	if w.conn != nil {
		return nil
	}
	if _, err := w.s.dbFor(true); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", w.s.dsn(false))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(context.Background())
	if err != nil {
		_ = db.Close()
		return err
	}
	for _, q := range []string{"PRAGMA wal_autocheckpoint = 1000", "PRAGMA journal_size_limit = 4194304"} {
		if _, err := conn.ExecContext(context.Background(), q); err != nil {
			_ = conn.Close()
			_ = db.Close()
			return err
		}
	}
	w.db, w.conn, w.full = db, conn, -1
	w.stmts, w.ids, w.turns = map[string]*sql.Stmt{}, map[session.SessionID]int64{}, map[session.TurnID]int64{}
	return nil
}

// reset drops the connection after a failure, so that the next write begins from nothing.
func (w *writer) reset() { w.close() }

func (w *writer) close() {
	for _, st := range w.stmts {
		_ = st.Close()
	}
	if w.conn != nil {
		_ = w.conn.Close()
		_ = w.db.Close()
	}
	w.conn, w.db, w.stmts = nil, nil, nil
}

// checkpoint empties the WAL when nothing reads an old part of it.
func (w *writer) checkpoint() {
	if w.conn == nil {
		return
	}
	if _, err := w.conn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil && !isBusy(err) {
		w.s.opt.Log.Warn("checkpoint", "err", err)
	}
}

// stmt prepares a statement once per connection.
func (w *writer) stmt(ctx context.Context, q string) (*sql.Stmt, error) {
	if st := w.stmts[q]; st != nil {
		return st, nil
	}
	st, err := w.conn.PrepareContext(ctx, q)
	if err == nil {
		w.stmts[q] = st
	}
	return st, err
}

func (w *writer) exec(ctx context.Context, q string, args ...any) error {
	st, err := w.stmt(ctx, q)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(ctx, args...)
	return err
}

// scanner is a row, or the error that there is none.
type scanner interface{ Scan(dest ...any) error }

type failedRow struct{ err error }

func (f failedRow) Scan(...any) error { return f.err }

func (w *writer) row(ctx context.Context, q string, args ...any) scanner {
	st, err := w.stmt(ctx, q)
	if err != nil {
		return failedRow{err}
	}
	return st.QueryRowContext(ctx, args...)
}
