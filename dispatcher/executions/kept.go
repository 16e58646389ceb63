package executions

import (
	"context"
	"sync"

	"github.com/rind-dev/rind/protocol"
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
	convs  map[string]*Place // of refs, by their conversations
}

// conversation finds a conversation whose session is kept; nil for none. It may have been deleted since, which whoever asks the session for
// something is told.
func (k *kept) conversation(id string) *Place {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.convs[id]
}

// drop forgets a session.
func (k *kept) drop(id session.SessionID) {
	delete(k.refs, id)
	for conv, m := range k.convs {
		if m.ID == id {
			delete(k.convs, conv)
		}
	}
}

// open opens a session and keeps it open for a while.
func (c *Commands) open(ctx context.Context, m *Place) (*session.Session, error) {
	all, id := c.cfg.Sessions, m.ID
	if c.cfg.Keep && !c.kept.has(id) {
		if s, err := all.Open(ctx, id); err == nil {
			c.kept.add(m, s)
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
func (k *kept) add(m *Place, s *session.Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := m.ID
	old := k.refs[id]
	switch {
	case k.closed:
		s.Close()
		return
	case old != nil: // somebody else was first, or that one has ended meanwhile
		old.Close()
	case len(k.order) >= mostKept:
		k.refs[k.order[0]].Close()
		k.drop(k.order[0])
		k.order = k.order[1:]
	}
	if k.refs == nil {
		k.refs, k.convs = map[session.SessionID]*session.Session{}, map[string]*Place{}
	}
	k.refs[id] = s
	k.convs[m.ConversationID] = m
	k.use(id)
}

func (k *kept) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, s := range k.refs {
		s.Close()
	}
	k.refs, k.order, k.convs = nil, nil, nil
}

// mostFound bounds the executions whose place is remembered.
const mostFound = 1024

// found remembers where executions are that were started or asked for last, so that the next request of them reads nothing to find them.
// None of it ever changes; whether an execution was deleted since is seen by whatever reads it. Safe for concurrent use.
type found struct {
	mu    sync.Mutex
	runs  map[protocol.TurnID]*Run
	order []protocol.TurnID // the oldest first
}

func (f *found) add(r *Run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.runs == nil {
		f.runs = map[protocol.TurnID]*Run{}
	}
	if _, known := f.runs[r.Turn]; known {
		return
	}
	if len(f.order) == mostFound {
		delete(f.runs, f.order[0])
		f.order = f.order[1:]
	}
	f.runs[r.Turn], f.order = r, append(f.order, r.Turn)
}

// get finds an execution; nil for one that is not remembered.
func (f *found) get(turn protocol.TurnID) *Run {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs[turn]
}
