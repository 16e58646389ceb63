package record

import (
	"fmt"
	"sync"
	"time"
)

// queue takes lines without waiting and hands them to a writer on a goroutine of its own, which starts with the first line. What
// does not fit is dropped and counted; the count is written once there is room. A nil queue takes nothing.
type queue struct {
	write func([]byte) error
	end   func()

	mu      sync.Mutex // never held over I/O
	waiting [][]byte
	size    int
	dropped int
	started bool
	closed  bool
	taken   uint64 // lines taken so far
	written uint64 // lines written or given up so far
	wake    chan struct{}
	settled chan struct{} // closed and made anew whenever written grows
	ended   chan struct{}
}

func newQueue(write func([]byte) error, end func()) *queue {
	return &queue{
		write: write, end: end, wake: make(chan struct{}, 1), settled: make(chan struct{}), ended: make(chan struct{}),
	}
}

// put takes a line, or drops it. The queue keeps it.
func (q *queue) put(line []byte) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return
	case len(q.waiting) >= queueLines || q.size+len(line) > queueBytes:
		q.dropped++
		return
	}
	if !q.started {
		q.started = true
		go q.run()
	}
	q.waiting = append(q.waiting, line)
	q.size += len(line)
	q.taken++
	q.ring()
}

func (q *queue) ring() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run is the goroutine: it takes all that waits and writes it in one go.
func (q *queue) run() {
	defer close(q.ended)
	if q.end != nil {
		defer q.end()
	}
	for range q.wake {
		for {
			batch, n, closed := q.take()
			if n > 0 {
				_ = q.write(batch) // there is nobody to tell
				q.settle(n)
				continue
			}
			if closed {
				return
			}
			break
		}
	}
}

func (q *queue) take() (batch []byte, n int, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, line := range q.waiting {
		batch = append(batch, line...)
	}
	n = len(q.waiting)
	if n > 0 && q.dropped > 0 {
		batch = fmt.Appendf(batch, `{"level":"WARN","msg":"log lines dropped","lines":%d}`+"\n", q.dropped)
		q.dropped = 0
	}
	q.waiting, q.size = q.waiting[:0], 0
	return batch, n, q.closed
}

func (q *queue) settle(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.written += uint64(n)
	close(q.settled)
	q.settled = make(chan struct{})
}

// flush waits until what was put before is written or given up, at most for d.
func (q *queue) flush(d time.Duration) {
	if q == nil {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	q.mu.Lock()
	until := q.taken
	for q.written < until {
		settled := q.settled
		q.mu.Unlock()
		select {
		case <-settled:
		case <-timer.C:
			return
		}
		q.mu.Lock()
	}
	q.mu.Unlock()
}

// close ends the queue after what waits is written, and waits for that at most for d.
func (q *queue) close(d time.Duration) {
	if q == nil {
		return
	}
	q.mu.Lock()
	q.closed = true
	started := q.started
	q.mu.Unlock()
	if !started {
		return
	}
	q.ring()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-q.ended:
	case <-timer.C:
	}
}
