package sqlite

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Bounds of one transaction.
const (
	groupEntries = 512
	groupBytes   = 1 << 20
)

// checkpointIdle is how long nothing was written before the WAL is emptied. Tests shorten it.
var checkpointIdle = 2 * time.Second

// walLarge is the size at which the WAL is emptied between writes, because readers kept the usual checkpoint from starting over.
const walLarge = 16 << 20

// op is one piece of work for the writer: an append, or a function run in a transaction or outside one. It is asked for in order and
// answered in order.
type op struct {
	ctx   context.Context // nil for an append: it is not taken back
	lease session.Lease
	batch *session.Batch
	do    func(w *writer) error
	alone func(w *writer) error // outside a transaction
	done  func(error)
	err   error

	fact           bool
	entries, bytes int
	late           bool // handed over after Close
}

// submit hands o to the writer, starting it when there is none.
func (s *Store) submit(o *op) {
	s.mu.Lock()
	o.late = s.closed
	s.queue = append(s.queue, o)
	if s.writing == nil {
		s.writing = make(chan struct{})
		go s.writeLoop(s.writing)
	}
	s.mu.Unlock()
	s.ring()
}

func (s *Store) ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// Append implements session.Log.
func (s *Store) Append(l session.Lease, b session.Batch, done func(error)) {
	o := &op{lease: l, batch: &b, done: done, entries: len(b.Entries), fact: len(b.Keys) > 0}
	for i := range b.Entries {
		o.bytes += b.Entries[i].Size()
		o.fact = o.fact || b.Entries[i].Class() == protocol.Fact
	}
	s.submit(o)
}

type answer[T any] struct {
	v   T
	err error
}

// run does one function in a transaction of the writer and waits for it. The function checks before it writes: an error of the port
// means that it wrote nothing. It may run more than once.
func run[T any](ctx context.Context, s *Store, do func(w *writer) (T, error)) (T, error) {
	return runAs(ctx, s, false, do)
}

// runFact is run for what must survive a loss of power too.
func runFact[T any](ctx context.Context, s *Store, do func(w *writer) (T, error)) (T, error) {
	return runAs(ctx, s, true, do)
}

func runAs[T any](ctx context.Context, s *Store, fact bool, do func(w *writer) (T, error)) (T, error) {
	var v T
	ch := make(chan answer[T], 1)
	s.submit(&op{
		ctx: ctx, entries: 1, bytes: 256, fact: fact,
		do:   func(w *writer) (err error) { v, err = do(w); return err },
		done: func(err error) { ch <- answer[T]{v, err} },
	})
	select {
	case a := <-ch:
		if a.err != nil {
			var none T
			return none, a.err
		}
		return a.v, nil
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// nothing is the result of a function that has none.
type nothing = struct{}

// alone runs f on the write connection outside a transaction.
func (s *Store) alone(ctx context.Context, f func(*writer) error) error {
	ch := make(chan error, 1)
	s.submit(&op{ctx: ctx, entries: 1, alone: f, done: func(err error) { ch <- err }})
	select {
	case err := <-ch:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// writeLoop is the writer goroutine. It ends when the store is closed and everything is answered.
func (s *Store) writeLoop(ended chan struct{}) {
	defer close(ended)
	w := &writer{s: s, full: -1}
	idle := time.NewTimer(time.Hour)
	defer idle.Stop()
	for {
		ops, over := s.take()
		switch {
		case over:
			w.checkpoint()
			w.close()
			if s.leave() {
				return
			}
		case ops == nil:
			select {
			case <-s.bell:
			case <-idle.C:
				switch {
				case w.sweep():
					idle.Reset(0)
				case w.dirty && !w.checkpoint():
					idle.Reset(checkpointIdle) // somebody reads an old part of it
				}
			}
		default:
			w.group(ops)
			w.bound()
			idle.Reset(checkpointIdle)
		}
	}
}

// take returns what one transaction may hold; over says that the store is closed and nothing waits. Producers that were just answered get
// to hand over their next batch first, for as long as that brings more: what shares a flush costs one.
func (s *Store) take() (ops []*op, over bool) {
	for before := -1; ; {
		s.mu.Lock()
		n := len(s.queue)
		if n <= before || n >= groupEntries || n == 0 {
			break
		}
		s.mu.Unlock()
		before = n
		runtime.Gosched()
	}
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.queue = nil
		return nil, s.closed
	}
	entries, bytes, n := 0, 0, 0
	for n < len(s.queue) && entries < groupEntries && bytes < groupBytes {
		entries += s.queue[n].entries
		bytes += s.queue[n].bytes
		n++
	}
	ops = s.queue[:n:n]
	s.queue = s.queue[n:]
	return ops, false
}

// leave ends the writer, unless more was handed over meanwhile.
func (s *Store) leave() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 {
		return false
	}
	s.writing = nil
	return true
}

// group runs ops in order: those outside a transaction by themselves, the others together.
func (w *writer) group(ops []*op) {
	for len(ops) > 0 {
		if o := ops[0]; o.late || o.alone != nil {
			o.done(w.solo(o))
			ops = ops[1:]
			continue
		}
		n := 1
		for n < len(ops) && !ops[n].late && ops[n].alone == nil {
			n++
		}
		w.commit(ops[:n])
		ops = ops[n:]
	}
}

func (w *writer) solo(o *op) error {
	if o.late {
		return session.ErrClosed
	}
	if err := o.ctx.Err(); err != nil {
		return context.Cause(o.ctx)
	}
	err := w.open()
	if err == nil {
		err = w.s.fault("write", o.alone(w))
	}
	if err != nil {
		w.s.failed()
	}
	return err
}

// commit writes ops in one transaction and acknowledges them. An op that fails by itself (a stale lease, a gap) harms none of the others:
// what the port has a word for is found before anything is written; after any other failure each op gets a transaction of its own.
func (w *writer) commit(ops []*op) {
	err := w.open()
	if err == nil {
		if err = w.s.fault("write", w.transaction(ops)); err != nil {
			w.close() // so that the next write begins from nothing
			if len(ops) > 1 && !errors.Is(err, session.ErrLocked) {
				for i := range ops {
					w.commit(ops[i : i+1])
				}
				return
			}
		}
	}
	if err != nil {
		w.s.failed()
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
	full := 0
	for _, o := range ops {
		if o.fact {
			full = 1
		}
	}
	w.s.opt.Kill("before-begin")
	_, err := retry(context.Background(), func() (nothing, error) { return nothing{}, w.attempt(ops, full) })
	return err
}

// attempt is one try at the transaction, which is flushed when full is 1.
func (w *writer) attempt(ops []*op, full int) error {
	if w.full != full { // before BEGIN: inside a transaction it would not take effect
		q := "PRAGMA synchronous = NORMAL"
		if full == 1 {
			q = "PRAGMA synchronous = FULL"
		}
		if err := w.script(q); err != nil {
			return err
		}
		w.full = full
	}
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := w.inside(ops)
	if err == nil {
		w.s.opt.Kill("before-commit")
		err = w.exec("COMMIT")
	}
	if err != nil {
		w.forget()
		_ = w.exec("ROLLBACK")
		return err
	}
	w.dirty = true
	w.s.opt.Kill("after-commit")
	return nil
}

func (w *writer) inside(ops []*op) error {
	if err := w.count(); err != nil {
		return err
	}
	for len(ops) > 0 {
		n := streak(ops)
		if err := w.apply(ops[:n]); err != nil {
			return err
		}
		ops = ops[n:]
	}
	w.s.opt.Kill("after-insert")
	return nil
}

// count finds the newest global id and place in the order of activity, if somebody else has written since this writer did. They are the cursors
// by which other processes follow, so neither is given again after a deletion.
func (w *writer) count() error {
	var version int64 // changes with each commit of another connection
	if err := w.row("PRAGMA data_version").Scan(&version); err != nil || w.counted && version == w.seen {
		return err
	}
	err := w.row(`SELECT max((SELECT coalesce(max(id), 0) FROM entries), coalesce((SELECT value FROM meta WHERE name = 'last_id'), 0)),
		max((SELECT coalesce(max(touched), 0) FROM sessions), coalesce((SELECT value FROM meta WHERE name = 'last_touched'), 0))`).Scan(&w.nextID, &w.touched)
	w.seen, w.counted = version, err == nil
	return err
}

// streak is how many ops from the first on append to one session behind each other: they are written as one batch. What gives the lease back, and
// what is counted into the usage, ends one.
func streak(ops []*op) int {
	n := 1
	for n < len(ops) && ops[n-1].goesOn() && ops[n].follows(ops[n-1]) {
		n++
	}
	return n
}

func (o *op) goesOn() bool {
	b := o.batch
	return b != nil && len(b.Entries) > 0 && !b.Release && (b.Row == nil || b.Row.Usage == nil)
}

func (o *op) follows(before *op) bool {
	b := o.batch
	return b != nil && len(b.Entries) > 0 && o.lease == before.lease && b.Entries[0].Seq == before.last()+1
}

func (o *op) last() session.Seq { return o.batch.Entries[len(o.batch.Entries)-1].Seq }

// apply does a streak of ops. An error that concerns one op only is its answer; in a streak, which then has written nothing, it is found again op
// by op.
func (w *writer) apply(ops []*op) error {
	o := ops[0]
	var err error
	switch {
	case o.ctx != nil && o.ctx.Err() != nil:
		o.err = context.Cause(o.ctx)
		return nil
	case o.do != nil:
		err = o.do(w)
	case len(ops) > 1:
		err = w.append(o.lease, w.joined(ops))
		clear(w.streak) // it keeps nobody's entries
	default:
		err = w.append(o.lease, o.batch)
	}
	switch {
	case !own(err):
		o.err = nil
		return err
	case len(ops) == 1:
		o.err = err
		return nil
	}
	for i := range ops {
		if err := w.apply(ops[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

// joined is the batch of a streak: all entries and keys, and the newest row. A snapshot stays where no newer one comes, and what comes behind a row
// without one of its own makes the session active now. It is good until the next.
func (w *writer) joined(ops []*op) *session.Batch {
	b := session.Batch{Entries: w.streak[:0], Retake: ops[0].batch.Retake, Release: ops[len(ops)-1].batch.Release}
	var row session.Row
	for _, o := range ops {
		o.err = nil
		b.Entries = append(b.Entries, o.batch.Entries...)
		b.Keys = append(b.Keys, o.batch.Keys...)
		if o.batch.Row == nil {
			row.Activity = time.Time{}
			continue
		}
		fold, seq := row.Fold, row.FoldSeq
		if row = *o.batch.Row; row.Fold == nil {
			row.Fold, row.FoldSeq = fold, seq
		}
		b.Row = &row
	}
	w.streak = b.Entries
	return &b
}

// keepCursors remembers the newest cursors before rows that hold them are deleted.
func (w *writer) keepCursors() error {
	return w.exec("INSERT INTO meta (name, value) VALUES ('last_id', ?), ('last_touched', ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)", w.nextID, w.touched)
}

// own reports whether an error concerns one op only, which then has written nothing.
func own(err error) bool {
	for _, e := range []error{session.ErrNotFound, session.ErrExists, session.ErrBusy, session.ErrFenced, session.ErrGap, session.ErrKeyUsed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// checkpoint empties the WAL; false when somebody reads a part of it.
func (w *writer) checkpoint() bool {
	if w.connection == nil || w.s.moved() != nil { // then the WAL may be that of another file by now
		return true
	}
	var busy, log, done int
	err := w.row("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &done)
	if err != nil && !isBusy(err) {
		w.s.opt.Log.Warn("checkpoint", "path", w.s.path, "err", err)
		return true
	}
	w.dirty = err != nil || busy != 0
	return !w.dirty
}

// bound keeps the WAL small: it can only start over in a moment without a reader, which many readers that take turns may not leave by
// themselves.
func (w *writer) bound() {
	if w.connection == nil || time.Since(w.bounded) < 50*time.Millisecond {
		return
	}
	w.bounded = time.Now()
	if info, err := os.Stat(w.s.path + "-wal"); err != nil || info.Size() < walLarge {
		return
	}
	for range 20 {
		if w.checkpoint() {
			return
		}
		jitter()
	}
}

// shrink gives free pages back and empties the WAL, so that deleted bytes are in no file of ours. It lets other writes pass in between.
// Readers of an old part of the WAL are waited for a moment; what they hold goes with the next checkpoint.
func (s *Store) shrink(ctx context.Context) error {
	for free, last := 1, 0; free > 0 && free != last; {
		last = free
		err := s.alone(ctx, func(w *writer) error {
			_, err := retry(ctx, func() (nothing, error) {
				return nothing{}, w.exec("PRAGMA incremental_vacuum(500)")
			})
			if err != nil {
				return err
			}
			return w.row("PRAGMA freelist_count").Scan(&free)
		})
		if err != nil {
			return err
		}
	}
	return s.alone(ctx, func(w *writer) error {
		for range 50 {
			if w.checkpoint() {
				return nil
			}
			jitter()
		}
		return nil
	})
}
