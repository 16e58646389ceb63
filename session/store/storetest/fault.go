package storetest

import (
	"context"
	"fmt"
	"sync"

	"github.com/rind-dev/rind/session"
)

// Fault wraps a store and makes its appends go wrong; everything else goes to the store as it is. A new one works. It owns no goroutine
// but, while appends are stalled, one for each that waits. Safe for concurrent use.
type Fault struct {
	session.Store

	mu      sync.Mutex // guards what follows
	entries int        // offered since the plan was made
	batches int
	plan    plan
	stalled chan struct{}
	dead    bool
	order   []string
}

// plan says what goes wrong, and from which entry or batch on. The zero plan is nothing.
type plan struct {
	entry, batch int // counted from 1; 0 for the other one
	err          error
	die          bool
	reaches      reach
}

// reach is how much of the batch during which the process died is in the store.
type reach uint8

const (
	reachesNone reach = iota
	reachesAll
	reachesPart // the entries before the one named: no store with transactions leaves that
)

// NewFault wraps s.
func NewFault(s session.Store) *Fault { return &Fault{Store: s} }

func (f *Fault) set(p plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries, f.batches, f.plan = 0, 0, p
}

// FailAt makes every append that holds the nth entry from now on, or a later one, fail with err, until Mend.
func (f *Fault) FailAt(n int, err error) { f.set(plan{entry: n, err: err}) }

// FailBatchAt is FailAt counted in batches.
func (f *Fault) FailBatchAt(n int, err error) { f.set(plan{batch: n, err: err}) }

// FillUpAt plays a disk that is full from the nth entry on, until Mend.
func (f *Fault) FillUpAt(n int) { f.FailAt(n, session.ErrFull) }

// DieAt plays the death of the process at the batch that holds the nth entry: that one and those behind it are never acknowledged.
// stored says whether it reached the store all the same; those behind it do not. Mend does not undo it.
func (f *Fault) DieAt(n int, stored bool) {
	p := plan{entry: n, die: true}
	if stored {
		p.reaches = reachesAll
	}
	f.set(p)
}

// DieAtBatch is DieAt counted in batches.
func (f *Fault) DieAtBatch(n int, stored bool) {
	p := plan{batch: n, die: true}
	if stored {
		p.reaches = reachesAll
	}
	f.set(p)
}

// TearAt is DieAt with a torn batch: of the one that holds the nth entry only those before it reach the store.
func (f *Fault) TearAt(n int) { f.set(plan{entry: n, die: true, reaches: reachesPart}) }

// Mend ends the failing.
func (f *Fault) Mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan = plan{}
}

// Dead reports whether the process has died.
func (f *Fault) Dead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

// Stall keeps appends from being answered until the returned function is called; they are stored.
func (f *Fault) Stall() (release func()) {
	ch := make(chan struct{})
	f.mu.Lock()
	f.stalled = ch
	f.mu.Unlock()
	return func() {
		f.mu.Lock()
		if f.stalled == ch {
			f.stalled = nil
		}
		f.mu.Unlock()
		close(ch)
	}
}

// Count returns how many entries were offered since the last plan was made.
func (f *Fault) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.entries
}

// Order lists what happened: "write 7" when entry 7 was acknowledged, and what Mark noted in between.
func (f *Fault) Order() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.order...)
}

// Mark notes something among the writes, as that entry 7 was told.
func (f *Fault) Mark(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.order = append(f.order, what)
}

// strikes takes b into account and says what becomes of it: an error, or a death with how many of its entries reach the store.
func (f *Fault) strikes(b *session.Batch) (dead bool, reaches int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.entries
	f.entries += len(b.Entries)
	f.batches++
	p := f.plan
	hit := p.entry > 0 && f.entries >= p.entry || p.batch > 0 && f.batches >= p.batch
	switch {
	case f.dead:
		return true, 0, nil
	case !hit:
		return false, 0, nil
	case !p.die:
		return false, 0, p.err
	}
	f.dead = true
	switch p.reaches {
	case reachesAll:
		reaches = len(b.Entries)
	case reachesPart:
		reaches = p.entry - before - 1
	case reachesNone:
	}
	return true, reaches, nil
}

// Writable implements session.Log: it is what an append of one entry would be told.
func (f *Fault) Writable(ctx context.Context) error {
	f.mu.Lock()
	p := f.plan
	hit := p.entry > 0 && f.entries+1 >= p.entry || p.batch > 0 && f.batches+1 >= p.batch
	f.mu.Unlock()
	if hit && !p.die {
		return fmt.Errorf("fault: %w", p.err)
	}
	return f.Store.Writable(ctx)
}

// Append implements session.Log. A refused batch reaches the store in no part.
func (f *Fault) Append(l session.Lease, b session.Batch, done func(error)) {
	dead, reaches, err := f.strikes(&b)
	switch {
	case dead:
		if reaches == len(b.Entries) && reaches > 0 {
			f.Store.Append(l, b, func(error) {})
		} else if reaches > 0 {
			f.Store.Append(l, session.Batch{Entries: b.Entries[:reaches], Retake: b.Retake}, func(error) {})
		}
		return
	case err != nil:
		// Through the store all the same, as a batch that does not fit: the answer keeps its place behind those before it.
		f.Store.Append(l, session.Batch{Entries: []session.Entry{{Seq: -1}}}, func(error) { done(fmt.Errorf("fault: %w", err)) })
		return
	}
	f.mu.Lock()
	stalled := f.stalled
	f.mu.Unlock()
	answer := func(err error) {
		if err == nil {
			for i := range b.Entries {
				f.Mark(fmt.Sprintf("write %d", b.Entries[i].Seq))
			}
		}
		done(err)
	}
	if stalled == nil {
		f.Store.Append(l, b, answer)
		return
	}
	f.Store.Append(l, b, func(err error) {
		go func() {
			<-stalled
			answer(err)
		}()
	})
}
