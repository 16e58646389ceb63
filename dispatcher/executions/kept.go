package executions

import (
	"context"
	"sync"

	"github.com/rind-dev/rind/session"
)

// mostKept bounds the sessions that are kept open because they were used last: what their next request would read of them is in memory then.
const mostKept = 64

// kept are references to the sessions that were used last. They hold no lease. Safe for concurrent use.
type kept struct {
	mu     sync.Mutex
	closed bool
	order  []session.SessionID // the least recently used first
	refs   map[session.SessionID]*session.Session
}

// open opens a session and keeps it open for a while.
func (c *Commands) open(ctx context.Context, id session.SessionID) (*session.Session, error) {
	all := c.cfg.Sessions
	if c.cfg.Keep && !c.kept.has(id) {
		if s, err := all.Open(ctx, id); err == nil {
			c.kept.add(id, s)
		}
	}
	return all.Open(ctx, id)
}

// Close lets go of the sessions that were kept open.
func (c *Commands) Close() { c.kept.close() }

// has notes a use; false when the session is not kept.
func (k *kept) has(id session.SessionID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refs[id] == nil {
		return false
	}
	k.use(id)
	return true
}

func (k *kept) use(id session.SessionID) {
	n := len(k.order)
	if n > 0 && k.order[n-1] == id {
		return
	}
	for i, other := range k.order {
		if other == id {
			copy(k.order[i:], k.order[i+1:])
			k.order[n-1] = id
			return
		}
	}
	k.order = append(k.order, id)
}

// add takes over a reference and gives back the one that was not used for longest.
func (k *kept) add(id session.SessionID, s *session.Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := k.refs[id]
	switch {
	case k.closed:
		s.Close()
		return
	case old != nil: // somebody else was first, or that one has ended meanwhile
		old.Close()
	case len(k.order) >= mostKept:
		k.refs[k.order[0]].Close()
		delete(k.refs, k.order[0])
		k.order = k.order[1:]
	}
	if k.refs == nil {
		k.refs = map[session.SessionID]*session.Session{}
	}
	k.refs[id] = s
	k.use(id)
}

func (k *kept) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, s := range k.refs {
		s.Close()
	}
	k.refs, k.order = nil, nil
}
