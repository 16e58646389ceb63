package session

import (
	"context"
	"errors"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// fetchPatience bounds a read of the store that somebody waits for.
const fetchPatience = 30 * time.Second

// fetch reads the store beside the session's goroutine: a slow disk holds up who waits for the answer, and nobody else. then runs on the
// session's goroutine, exactly once, with an error as a client is told it; what it relies on may have changed meanwhile. The session stays
// while a read is under way; the read ends with the runtime, or when nobody would wait for it any longer.
func fetch[T any](s *Session, read func(ctx context.Context, store Store) (T, error), then func(T, error)) {
	s.fetches++
	go func() {
		ctx, cancel := context.WithTimeout(s.all.ctx, fetchPatience)
		defer cancel()
		got, err := read(ctx, s.all.cfg.Store)
		s.post(func() {
			s.fetches--
			then(got, s.fetchError(err))
			s.settleDown()
		})
	}()
}

func (s *Session) fetchError(err error) error {
	switch {
	case s.stopping && errors.Is(err, context.Canceled):
		return errStopping()
	case errors.Is(err, context.DeadlineExceeded):
		return &protocol.Error{Kind: protocol.PersistenceError, Message: "The store did not answer within " + fetchPatience.String() + "; try again.", Cause: err}
	}
	return s.all.storeError(err)
}

// door lets those who ask for a turn in one after the other, in the order in which they came: one that has to be looked up in the store first
// holds up those behind it, and nothing else of the session. It belongs to the session's goroutine.
type door struct {
	shut bool
	line []func()
}

// enter runs f once those before it are in.
func (d *door) enter(f func()) {
	if d.shut {
		d.line = append(d.line, f)
		return
	}
	f()
}

// open lets those who wait in, until one of them shuts it.
func (d *door) open() {
	d.shut = false
	for len(d.line) > 0 && !d.shut {
		f := d.line[0]
		d.line = d.line[1:]
		f()
	}
}
