package session

import (
	"context"
	"errors"

	"github.com/rind-dev/rind/protocol"
)

// leasehold is a session's way to its lease.
//
//	none ─ join ─▶ wanted ─ got ─▶ held ─ give ─▶ releasing ─ released ─▶ parked, or wanted
//	held ─ sent(batch that releases) ─▶ parked ─ sent(batch that retakes) ─▶ held
//
// A parked lease was given back, and nobody is known to have taken it since: another process gets the session at once, and if none wants it,
// the next batch takes the lease again by itself. As batches are on their way for a while, parked is what was sent, like journal.next, and
// settled what was acknowledged, like journal.shown.
//
// It belongs to the session's goroutine.
type leasehold struct {
	held      Lease         // the zero Lease: none
	parked    bool          // held was given back, by what was sent
	settled   bool          // the same by what was acknowledged
	moving    int           // batches on their way that give it back or take it again
	waiting   []func(error) // for the lease, oldest first
	taking    bool          // the store is being asked for it
	releasing bool          // the store is giving it back
	granting  bool          // those who waited are being told: it is not given back under the next of them
}

// has reports whether this process may append, for sure.
func (l *leasehold) has() bool { return l.known() && !l.parked && l.moving == 0 }

// known reports whether there is a lease here, be it one that was given back.
func (l *leasehold) known() bool { return l.held != (Lease{}) }

// ready reports whether the next batch may be sent: the lease is here, or the batch takes it again.
func (l *leasehold) ready() bool { return l.known() && !l.wanted() && !l.releasing }

// wanted reports whether somebody waits for the lease.
func (l *leasehold) wanted() bool { return len(l.waiting) > 0 }

// none reports whether there is no lease here, and none on its way back.
func (l *leasehold) none() bool { return !l.has() && !l.releasing }

// join waits for the lease.
func (l *leasehold) join(f func(error)) { l.waiting = append(l.waiting, f) }

// leave ends the wait of all who waited, and returns them.
func (l *leasehold) leave() []func(error) {
	waiting := l.waiting
	l.waiting = nil
	return waiting
}

// got is the answer of the store: the zero Lease when it could not be taken. No batch is on its way.
func (l *leasehold) got(held Lease) {
	l.held, l.parked, l.settled, l.taking = held, false, false, false
}

// lost says that the lease is gone without being given back, and no batch is on its way.
func (l *leasehold) lost() { l.held, l.parked, l.settled, l.moving = Lease{}, false, false, 0 }

// sent says what a batch that is being sent does with the lease: whether it has to take it again, and whether it gives it back.
func (l *leasehold) sent(release bool) (retakes bool) {
	retakes = l.known() && l.parked
	l.parked = release
	if retakes || release {
		l.moving++
	}
	return retakes
}

// landed says that such a batch is stored.
func (l *leasehold) landed(retakes, releases bool) {
	if retakes || releases {
		l.settled = releases
		l.moving--
	}
}

// fallBack says that batches were not stored, and none is on its way any more.
func (l *leasehold) fallBack() { l.parked, l.moving = l.settled, 0 }

// give says that the store is being given the lease back, with no batch.
func (l *leasehold) give() { l.parked, l.settled, l.releasing = true, true, true }

// errRetaken is what becomes of a batch that was to take a parked lease again, and of those behind it: another process has had the session in
// the meantime, so that nothing it was made from holds any more. Whoever made it asks again, with the lease.
var errRetaken = errors.New("the lease was taken meanwhile")

// withLease runs then once this process may append. Calls are answered in order.
func (s *Session) withLease(then func(error)) {
	switch {
	case s.gone.Load():
		then(errGone(s.ID))
	case s.lease.has():
		then(nil)
	default:
		s.lease.join(then)
		s.seekLease()
	}
}

// withLeaseOrParked is withLease for one who can begin anew: then also runs when the first batch it appends has to take the lease again, and is
// to call withLease when that fails with errRetaken.
func (s *Session) withLeaseOrParked(then func(error)) {
	if s.gone.Load() || !s.lease.ready() || s.failure != nil {
		s.withLease(then)
		return
	}
	then(nil)
}

// seekLease goes on for those who wait for the lease, once nothing about it is on its way.
func (s *Session) seekLease() {
	switch {
	case !s.lease.wanted() || s.lease.taking || s.lease.releasing:
	case s.lease.has():
		s.grant()
	case !s.writing(): // what is on its way may give it back, or find that it is gone
		s.lease.taking = true
		s.takeLease()
	}
}

// grant tells those who waited that the lease is held.
func (s *Session) grant() {
	s.lease.granting = true
	for _, f := range s.lease.leave() {
		f(nil)
	}
	s.lease.granting = false
}

// takeLease gets the lease and everything other processes appended meanwhile. Its goroutine ends with the store's answers.
func (s *Session) takeLease() {
	draft, head, shown := s.draft.Load(), s.shown.Head, s.shown
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
				if created {
					s.draft.Store(false)
				}
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
	s.draft.Store(false)
	if err == nil {
		err = s.catchUp(missed)
	}
	if err != nil {
		s.giveBack(l)
		s.gotNoLease(err)
		return
	}
	s.rung = false
	s.lease.got(l)
	s.loseTasks()
	s.adopt()
	s.grant()
	s.settleDown()
}

func (s *Session) gotNoLease(err error) {
	if errors.Is(err, ErrNotFound) && !s.draft.Load() {
		s.remove()
		err = errGone(s.ID)
	}
	err = s.all.storeError(err)
	s.lease.got(Lease{})
	for _, f := range s.lease.leave() {
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
			return damaged(s.ID, missed[i].Seq, err)
		}
		s.show(&missed[i], b)
	}
	s.tail.add(missed)
	s.next = s.shown.clone()
	s.ring(missed)
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
	if s.lease.has() {
		s.giveBack(s.lease.held)
	}
}

// leaves reports whether nothing is left to do here once the batch that ends turn is stored: the lease goes back with it. What comes meanwhile
// takes it again.
func (s *Session) leaves(turn TurnID) bool {
	l, x := &s.lane, &s.exec
	run := x.runs[turn]
	alone := len(x.runs) == 0 || len(x.runs) == 1 && run != nil && run.provider != working
	return alone && x.pending == 0 && l.starting == nil && len(l.line) == 0 && (l.run == nil || l.run.ID == turn) &&
		s.unsettled == nil && !s.lease.wanted() && !s.goalDue() && !s.jobs.busy() && !s.noticeDue()
}

// giveBack lets the store have a lease back. Its goroutine ends with the store's answer.
func (s *Session) giveBack(l Lease) {
	s.lease.give()
	go func() {
		err := s.all.cfg.Store.Release(context.Background(), l)
		s.post(func() {
			s.lease.releasing = false
			if err != nil {
				s.log().Warn("release lease", "session", s.ID, "err", err)
				s.lease.lost()
			}
			s.seekLease()
		})
	}()
}
