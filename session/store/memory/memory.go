// Package memory keeps sessions in memory: for tests, and for runs that are not to leave anything behind. It keeps every promise
// of session.Store but that of outliving the process.
//
// A Backing is what a file is to other stores; each Store opened on it plays one process. A Store owns one goroutine that acknowledges
// appends in order and lives only while some are waiting (Close waits for it), and one a Watch, ended by its context or Close. Batches
// and what is read share their bytes with the store: nobody may change them.
package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rind-dev/rind/session"
)

// Backing holds the data several Stores share.
type Backing struct {
	mu       sync.Mutex
	sessions map[session.SessionID]*record
	turns    map[session.TurnID]*turn
	lastTurn int64
	letters  map[int64]*session.Letter
	nextID   int64
	alive    map[string]bool
	watchers map[*watcher]bool
	usage    []usage
	rules    []session.Rule // oldest first
	nextRule int64
	touch    int64 // counts activity, so that lists have a total order
}

type record struct {
	meta    session.Meta
	entries []session.Entry
	keys    map[string]session.Key
	epoch   int64
	touched int64
}

type turn struct {
	session  session.SessionID
	portable bool
	ended    time.Time
	place    int64
}

type usage struct {
	session session.SessionID
	sample  session.UsageSample
}

type watcher struct {
	store *Store
	ids   map[session.SessionID]bool
	wake  chan struct{}
}

// NewBacking makes an empty one.
func NewBacking() *Backing {
	return &Backing{
		sessions: map[session.SessionID]*record{}, turns: map[session.TurnID]*turn{}, letters: map[int64]*session.Letter{},
		alive: map[string]bool{}, watchers: map[*watcher]bool{},
	}
}

// Store is one process's access to a Backing.
type Store struct {
	b        *Backing
	instance string

	over     chan struct{} // closed by Close
	watchers sync.WaitGroup

	mu      sync.Mutex // guards what follows
	pending []func(refused error)
	idle    chan struct{} // closed when nothing is pending any more; nil while nothing is
	closed  bool
	killed  bool
}

var _ session.Store = (*Store)(nil)

// New opens a store on a Backing of its own.
func New() *Store { return NewBacking().Open("memory") }

// Open opens a store as the named instance, which is alive until Close.
func (b *Backing) Open(instance string) *Store {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.alive[instance] = true
	return &Store{b: b, instance: instance, over: make(chan struct{})}
}

// Kill plays the death of the process: the instance is not alive any more and nothing it does from now on is stored. It can
// still be read, as what the dead process left.
func (s *Store) Kill() {
	s.mu.Lock()
	s.killed = true
	s.mu.Unlock()
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	delete(s.b.alive, s.instance)
}

// Close implements session.Log.
func (s *Store) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	idle := s.idle
	s.mu.Unlock()
	if idle != nil {
		<-idle
	}
	if first {
		close(s.over)
	}
	s.watchers.Wait()
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	delete(s.b.alive, s.instance)
	return nil
}

// enter takes the Backing's lock for a read or a write, when the process is there to do it.
func (s *Store) enter(write bool) error {
	s.mu.Lock()
	gone := s.closed || write && s.killed
	s.mu.Unlock()
	if gone {
		return session.ErrClosed
	}
	s.b.mu.Lock()
	return nil
}

func (b *Backing) find(id session.SessionID) (*record, error) {
	r := b.sessions[id]
	if r == nil {
		return nil, fmt.Errorf("session %s: %w", id, session.ErrNotFound)
	}
	return r, nil
}

// enterSession is enter, and finds a session. Where that is not there the lock is not kept.
func (s *Store) enterSession(id session.SessionID, write bool) (*record, error) {
	if err := s.enter(write); err != nil {
		return nil, err
	}
	r, err := s.b.find(id)
	if err != nil {
		s.b.mu.Unlock()
	}
	return r, err
}

// Writable implements session.Log.
func (s *Store) Writable(context.Context) error {
	err := s.enter(true)
	if err == nil {
		s.b.mu.Unlock()
	}
	return err
}

// Create implements session.Log.
func (s *Store) Create(_ context.Context, m session.Meta) error {
	if err := s.enter(true); err != nil {
		return err
	}
	defer s.b.mu.Unlock()
	if s.b.sessions[m.ID] != nil {
		return fmt.Errorf("session %s: %w", m.ID, session.ErrExists)
	}
	for _, r := range s.b.sessions {
		if r.meta.ConversationID == m.ConversationID {
			return fmt.Errorf("conversation %s: %w", m.ConversationID, session.ErrExists)
		}
	}
	if m.Activity.IsZero() {
		m.Activity = time.Now().UTC().Truncate(time.Microsecond)
	}
	s.b.touch++
	m.Head, m.Owner, m.OwnerAlive = 0, "", false
	s.b.sessions[m.ID] = &record{meta: m, keys: map[string]session.Key{}, touched: s.b.touch}
	s.b.ring(s, m.ID)
	return nil
}

// Acquire implements session.Log.
func (s *Store) Acquire(_ context.Context, id session.SessionID) (session.Lease, error) {
	r, err := s.enterSession(id, true)
	if err != nil {
		return session.Lease{}, err
	}
	defer s.b.mu.Unlock()
	owner := r.meta.Owner
	if owner != "" && owner != s.instance && s.b.alive[owner] {
		return session.Lease{}, fmt.Errorf("session %s: %w", id, session.ErrBusy)
	}
	if owner != s.instance {
		r.meta.Owner = s.instance
		r.epoch++
	}
	return session.Lease{Session: id, Epoch: r.epoch, Head: r.meta.Head}, nil
}

// Release implements session.Log.
func (s *Store) Release(_ context.Context, l session.Lease) error {
	if s.enter(true) != nil {
		return nil // the lease went with the process
	}
	defer s.b.mu.Unlock()
	if r := s.b.sessions[l.Session]; r != nil && r.epoch == l.Epoch && r.meta.Owner == s.instance {
		r.meta.Owner = ""
	}
	return nil
}
