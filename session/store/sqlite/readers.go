package sqlite

import (
	"context"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/rind-dev/rind/session"
)

const maxReaders = 4

// readerIdle is how long a reading connection is kept that nobody uses: one that is opened anew has its statements to prepare. Tests shorten it.
var readerIdle = time.Minute

// readers are the connections that read.
type readers struct {
	life    context.Context // of the store: nobody gets one once it has ended
	connect func() (*connection, error)
	keep    bool          // false: each is closed when it was used
	slots   chan struct{} // holds one for each that is in use

	mu       sync.Mutex
	idle     []idle // the one used last is the last
	timer    *time.Timer
	trimming sync.WaitGroup
}

func newReaders(life context.Context, keep bool, connect func() (*connection, error)) *readers {
	return &readers{life: life, connect: connect, keep: keep, slots: make(chan struct{}, maxReaders)}
}

type idle struct {
	*connection
	since time.Time
}

// borrow returns a connection for one goroutine, until it is given back. It waits for one when all are in use.
func (r *readers) borrow(ctx context.Context) (*connection, error) {
	select {
	case r.slots <- struct{}{}:
	case <-r.life.Done():
		return nil, session.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	c, err := r.take()
	if err == nil && c == nil {
		c, err = retry(ctx, r.connect)
	}
	if err != nil {
		<-r.slots
		return nil, err
	}
	return c, nil
}

func (r *readers) take() (*connection, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.idle) - 1
	switch {
	case r.life.Err() != nil:
		return nil, session.ErrClosed
	case n < 0:
		return nil, nil
	}
	c := r.idle[n].connection
	r.idle[n] = idle{}
	r.idle = r.idle[:n]
	return c, nil
}

// back takes a connection back; one that something went wrong on is not used again.
func (r *readers) back(c *connection, sound bool) {
	defer func() { <-r.slots }()
	r.mu.Lock()
	if r.life.Err() != nil || !r.keep || !sound || !c.AutocommitEnabled() {
		r.mu.Unlock()
		c.close()
		return
	}
	defer r.mu.Unlock()
	r.idle = append(r.idle, idle{c, time.Now()})
	if r.timer == nil {
		r.trimIn(readerIdle)
	}
}

// trimIn is called with mu held.
func (r *readers) trimIn(d time.Duration) {
	r.trimming.Add(1)
	r.timer = time.AfterFunc(d, r.trim)
}

// trim closes what nobody has used for a while.
func (r *readers) trim() {
	defer r.trimming.Done()
	r.mu.Lock()
	old := 0
	for old < len(r.idle) && time.Since(r.idle[old].since) >= readerIdle {
		old++
	}
	over := append([]idle(nil), r.idle[:old]...)
	r.idle = append([]idle(nil), r.idle[old:]...)
	r.timer = nil
	if len(r.idle) > 0 && r.life.Err() == nil {
		r.trimIn(readerIdle - time.Since(r.idle[0].since))
	}
	r.mu.Unlock()
	for _, c := range over {
		c.close()
	}
}

// close is called once life has ended. It closes all connections, those in use when they are given back, and returns when that is done.
func (r *readers) close() {
	r.mu.Lock()
	if r.timer != nil && r.timer.Stop() {
		r.trimming.Done()
	}
	over := r.idle
	r.idle = nil
	r.mu.Unlock()
	for _, c := range over {
		c.close()
	}
	for range cap(r.slots) {
		r.slots <- struct{}{}
	}
	r.trimming.Wait()
}

// read runs f on a reading connection, again for as long as another process keeps the file locked. It is interrupted when ctx ends or the
// store is closed.
func read[T any](ctx context.Context, s *Store, f func(*connection) (T, error)) (T, error) {
	until, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	v, err := readUntil(ctx, s, until.Done(), f)
	if err != nil && s.life.Err() != nil && ctx.Err() == nil && sqlite.ErrCode(err).ToPrimary() == sqlite.ResultInterrupt {
		err = session.ErrClosed
	}
	return v, err
}

// locked is the error of a try that may be made again: once the store is closed nobody waits for another process any more.
func (s *Store) locked(err error) error {
	if isBusy(err) && s.life.Err() != nil {
		return session.ErrClosed
	}
	return err
}

// readShort is read for what is over sooner than it could be interrupted.
func readShort[T any](ctx context.Context, s *Store, f func(*connection) (T, error)) (T, error) {
	return readUntil(ctx, s, nil, f)
}

func readUntil[T any](ctx context.Context, s *Store, interrupt <-chan struct{}, f func(*connection) (T, error)) (v T, err error) {
	if ctx.Err() != nil {
		return v, context.Cause(ctx)
	}
	r, err := s.db(ctx)
	if err != nil {
		return v, err
	}
	c, err := r.borrow(ctx)
	if err != nil {
		return v, err
	}
	sound := false // nor is it where f panics
	defer func() { r.back(c, sound) }()
	if interrupt != nil {
		c.SetInterrupt(interrupt)
		defer c.SetInterrupt(nil)
	}
	v, err = retry(ctx, func() (T, error) {
		v, err := f(c)
		return v, s.locked(err)
	})
	sound = err == nil || err == errNoRow || isBusy(err)
	return v, err
}
