package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/rind-dev/rind/protocol"
)

// leasehold is a session's way to its lease.
//
//	none ─ join ─▶ wanted ─ got ─▶ held ─ give ─▶ releasing ─ released ─▶ none, or wanted
//
// It belongs to the session's goroutine.
type leasehold struct {
	held      Lease         // the zero Lease: none
	waiting   []func(error) // for the lease, oldest first
	releasing bool          // the store is giving it back
	granting  bool          // those who waited are being told: it is not given back under the next of them
}

// has reports whether this process may append.
func (l *leasehold) has() bool { return l.held != (Lease{}) }

// wanted reports whether somebody waits for the lease.
func (l *leasehold) wanted() bool { return len(l.waiting) > 0 }

// none reports whether there is no lease here, and none on its way back.
func (l *leasehold) none() bool { return !l.has() && !l.releasing }

// join waits for the lease; true when it is to be taken for that: nobody waited before, and none is being given back.
func (l *leasehold) join(f func(error)) bool {
	l.waiting = append(l.waiting, f)
	return len(l.waiting) == 1 && !l.releasing
}

// got ends the wait, with the zero Lease when it could not be taken. It returns who waited.
func (l *leasehold) got(held Lease) []func(error) {
	waiting := l.waiting
	l.held, l.waiting = held, nil
	return waiting
}

// lost says that the lease is gone without being given back.
func (l *leasehold) lost() { l.held = Lease{} }

// give says that the store is being given the lease back.
func (l *leasehold) give() { l.held, l.releasing = Lease{}, true }

// released says that the store has it back; true when it is to be taken again.
func (l *leasehold) released() bool {
	l.releasing = false
	return l.wanted()
}

// withLease runs then once this process may append. Calls are answered in order.
func (s *Session) withLease(then func(error)) {
	switch {
	case s.removed:
		then(errGone(s.ID))
	case s.lease.has():
		then(nil)
	case s.lease.join(then):
		s.takeLease()
	}
}

// takeLease gets the lease and everything other processes appended meanwhile. Its goroutine ends with the store's answers.
func (s *Session) takeLease() {
	draft, head, shown := s.draft, s.shown.Head, s.shown
	unprompted := s.unprompted()
	meta := Meta{ID: s.ID, ConversationID: shown.Conversation, Workspace: shown.Workspace, Created: shown.Created}
	store := s.all.cfg.Store
	go func() {
		ctx := context.Background()
		var err error
		if draft {
			err = store.Create(ctx, meta)
		}
		created := draft && err == nil
		var lease Lease
		if err == nil {
			lease, err = store.Acquire(ctx, s.ID)
		}
		if errors.Is(err, ErrNotFound) && unprompted != nil {
			lease, err = putBack(ctx, store, meta, unprompted)
		}
		if err != nil {
			s.post(func() {
				s.draft = s.draft && !created
				s.gotNoLease(err)
			})
			return
		}
		missed, err := readThrough(ctx, store, s.ID, head, lease.Head)
		s.post(func() { s.gotLease(lease, missed, err) })
	}()
}

// gotLease goes on with the lease, unless err says that what other processes appended could not be read.
func (s *Session) gotLease(l Lease, missed []Entry, err error) {
	s.draft = false
	if err == nil {
		err = s.catchUp(missed)
	}
	if err != nil {
		s.giveBack(l)
		s.gotNoLease(err)
		return
	}
	s.rung = false
	waiting := s.lease.got(l)
	s.lease.granting = true
	s.loseTasks()
	s.adopt()
	for _, f := range waiting {
		f(nil)
	}
	s.lease.granting = false
	s.settleDown()
}

func (s *Session) gotNoLease(err error) {
	err = s.all.storeError(err)
	for _, f := range s.lease.got(Lease{}) {
		f(err)
	}
	s.settleDown()
}

// catchUp takes over entries this process did not write.
func (s *Session) catchUp(missed []Entry) error {
	if len(missed) == 0 {
		return nil
	}
	for i := range missed {
		b, err := protocol.Decode(&missed[i])
		if err != nil {
			return fmt.Errorf("%w: session %s: %w", ErrCorrupt, s.ID, err)
		}
		s.show(&missed[i], b)
	}
	s.tail.add(missed)
	s.next = s.shown.clone()
	s.ring()
	s.wakeWatchers()
	return nil
}

// readThrough reads entries in (after, through].
func readThrough(ctx context.Context, store Log, id SessionID, after, through Seq) ([]Entry, error) {
	if after >= through {
		return nil, nil
	}
	var out []Entry
	for e, err := range readLog(ctx, store, id, after, protocol.ViewAll) {
		if err != nil {
			return nil, err
		}
		if e.Seq > through {
			break
		}
		out = append(out, *e)
	}
	return out, nil
}

// settleDown gives the lease back when there is no work left. It is called after everything that may have ended some.
func (s *Session) settleDown() {
	if s.rung && !s.lease.granting {
		s.refresh()
	}
	if s.busy() || s.lease.granting {
		return
	}
	for _, f := range s.onQuiet {
		f()
	}
	s.onQuiet = nil
	if s.lease.has() {
		s.giveBack(s.lease.held)
	}
}

// giveBack lets the store have a lease back. Its goroutine ends with the store's answer.
func (s *Session) giveBack(l Lease) {
	s.lease.give()
	go func() {
		err := s.all.cfg.Store.Release(context.Background(), l)
		s.post(func() {
			if err != nil {
				s.log().Warn("release lease", "session", s.ID, "err", err)
			}
			if s.lease.released() {
				s.takeLease()
			}
		})
	}()
}
