package session

import (
	"context"

	"github.com/rind-dev/rind/protocol"
)

// following is how a session follows what another process appends.
type following struct {
	reading    bool     // the log is being read
	then, next []func() // what waits for that, and for the time after
}

// refresh takes over entries of another process, and opens letters to this one.
func (s *Session) refresh() { s.refreshed(func() {}) }

// refreshed is refresh, and runs then once that was tried.
func (s *Session) refreshed(then func()) {
	s.rung = false
	switch {
	case s.draft.Load() || s.gone.Load():
	case s.lease.has():
		s.readInbox()
	case s.lease.wanted() || s.writing():
		s.rung = true // taking the lease catches up as well, when it is had
	default:
		if s.following.reading { // that may have begun too early
			s.following.next = append(s.following.next, then)
			return
		}
		s.following = following{reading: true, then: []func(){then}}
		s.follow()
		return
	}
	then()
}

// follow reads on from what is shown, page by page.
func (s *Session) follow() {
	head := s.shown.Head
	fetch(s, func(ctx context.Context, store Store) ([]Entry, error) {
		return store.Read(ctx, s.ID, head, readPage, protocol.ViewAll)
	}, func(page []Entry, err error) {
		full := len(page) == readPage
		switch {
		case s.gone.Load():
			full = false
		case s.lease.has() || s.lease.wanted() || s.writing() || s.shown.Head != head: // whoever moved the head has caught up, or does
			full, s.rung = false, true
		case err == nil && len(page) > 0:
			if err = s.catchUp(page); err == nil {
				s.lease.lost() // another process has had it
			}
		}
		if protocol.KindOf(err) == protocol.SessionNotFound { // another process has deleted it
			if s.unprompted() == nil { // else it is made anew with its first prompt
				s.remove()
			}
			full, err = false, nil
		}
		if err != nil {
			full = false
			if protocol.KindOf(err) != protocol.ServerStopping { // the end of the runtime is no trouble
				s.log().Warn("follow", "session", s.ID, "err", err)
			}
		}
		if full {
			s.follow()
			return
		}
		then, next := s.following.then, s.following.next
		s.following = following{}
		runAll(then)
		if len(next) > 0 {
			s.refreshed(func() { runAll(next) }) // one more, however many asked
		}
	})
}

func runAll(fs []func()) {
	for _, f := range fs {
		f()
	}
}
