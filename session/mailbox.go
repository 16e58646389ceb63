package session

import "sync"

// mailbox hands functions to the one goroutine that owns a session. Posting never blocks, so a connection's reader never waits for
// a session; what is in it is bounded by the requests in flight and by the gatherers' backpressure.
type mailbox struct {
	mu     sync.Mutex
	queue  []func()
	closed bool
	wake   chan struct{} // cap 1; there is something in it, or the owner is up, while the queue is not empty
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// post adds f; false when the owner has ended and f will never run.
func (m *mailbox) post(f func()) bool {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return false
	}
	m.queue = append(m.queue, f)
	first := len(m.queue) == 1
	m.mu.Unlock()
	if first {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// take returns everything posted so far. What was taken before is done with: its room is used for what comes.
func (m *mailbox) take(before []func()) []func() {
	if clear(before); cap(before) > 1024 { // after a flood
		before = nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.queue
	m.queue = before[:0]
	return q
}

// close ends the mailbox unless something was posted meanwhile; it reports whether it is closed.
func (m *mailbox) close() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) > 0 {
		return false
	}
	m.closed = true
	return true
}
