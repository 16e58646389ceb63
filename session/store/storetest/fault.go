package storetest

import (
	"fmt"
	"sync"

	"github.com/rind-dev/rind/session"
)

// Fault wraps a store and makes its appends go wrong. The zero value of every field is a store that works.
type Fault struct {
	session.Store

	mu      sync.Mutex // guards what follows
	at      int        // number of the entry, counted over all batches, from which Err is given; 0 for never
	err     error
	entries int
	stalled chan struct{}
	order   []string
}

// NewFault wraps s.
func NewFault(s session.Store) *Fault { return &Fault{Store: s} }

// FailAt makes every append that holds the nth entry from now on, or a later one, fail with err, until Mend.
func (f *Fault) FailAt(n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries, f.at, f.err = 0, n, err
}

// Mend ends the failing.
func (f *Fault) Mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.err = 0, nil
}

// Stall keeps appends from being answered until the returned function is called.
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

// Count returns how many entries were offered since the last FailAt.
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

// Append implements session.Log. A refused batch reaches the store in no part.
func (f *Fault) Append(l session.Lease, b session.Batch, done func(error)) {
	f.mu.Lock()
	f.entries += len(b.Entries)
	var err error
	if f.err != nil && f.entries >= f.at {
		err = f.err
	}
	stalled := f.stalled
	f.mu.Unlock()
	if err != nil {
		// Through the store all the same, as a batch that does not fit: the answer keeps its place behind those before it.
		f.Store.Append(l, session.Batch{Entries: []session.Entry{{Seq: -1}}}, func(error) { done(fmt.Errorf("fault: %w", err)) })
		return
	}
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
