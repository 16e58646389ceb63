package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/rind-dev/rind/protocol"
)

// withLease runs then once this process may append. Calls are answered in order.
func (s *Session) withLease(then func(error)) {
	if s.removed {
		then(protocol.Errorf(protocol.SessionNotFound, "Session not found: %s", s.ID))
		return
	}
	if s.leased {
		then(nil)
		return
	}
	s.leasing = append(s.leasing, then)
	if len(s.leasing) == 1 && !s.releasing {
		s.takeLease()
	}
}

// takeLease gets the lease and everything other processes appended meanwhile.
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
		var lease Lease
		if err == nil {
			lease, err = store.Acquire(ctx, s.ID)
		}
		if errors.Is(err, ErrNotFound) && unprompted != nil {
			lease, err = putBack(ctx, store, meta, unprompted)
		}
		var missed []Entry
		if err == nil && lease.Head > head {
			missed, err = readAll(ctx, store, s.ID, head, lease.Head)
			if err != nil {
				_ = store.Release(ctx, lease)
			}
		}
		s.post(func() { s.gotLease(lease, missed, err) })
	}()
}

func (s *Session) gotLease(l Lease, missed []Entry, err error) {
	waiting := s.leasing
	s.leasing = nil
	if err == nil {
		s.lease, s.leased, s.draft = l, true, false
		if err = s.catchUp(missed); err != nil {
			s.leased = false
		}
	}
	if err != nil {
		err = s.all.storeError(err)
	}
	s.granting = true // one of them may find nothing to do, and must not give the lease back under the next
	if err == nil {
		s.loseTasks()
		s.adopt()
	}
	for _, f := range waiting {
		f(err)
	}
	s.granting = false
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

// readAll reads entries in (after, through].
func readAll(ctx context.Context, store Log, id SessionID, after, through Seq) ([]Entry, error) {
	var out []Entry
	for after < through {
		page, err := store.Read(ctx, id, after, 1024, protocol.ViewAll)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		out = append(out, page...)
		after = page[len(page)-1].Seq
	}
	return out, nil
}

// settleDown gives the lease back when there is no work left. It is called after everything that may have ended some.
func (s *Session) settleDown() {
	if s.busy() || s.granting {
		return
	}
	for _, f := range s.onQuiet {
		f()
	}
	s.onQuiet = nil
	if !s.leased || s.releasing {
		return
	}
	l := s.lease
	s.leased, s.releasing = false, true
	go func() {
		err := s.all.cfg.Store.Release(context.Background(), l)
		s.post(func() {
			s.releasing = false
			if err != nil {
				s.log().Warn("release lease", "session", s.ID, "err", err)
			}
			if len(s.leasing) > 0 {
				s.takeLease()
			}
		})
	}()
}
