package outlet

import (
	"context"
	"sync"
	"time"
)

// working counts what works for answers beside the goroutines of reader, outbox and sessions.
type working struct {
	mu   sync.Mutex
	n    int
	rest chan struct{} // closed when n is 0; nil while nobody waits
}

func (w *working) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
}

func (w *working) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n--; w.n == 0 && w.rest != nil {
		close(w.rest)
		w.rest = nil
	}
}

// wait returns when nothing works any more, after limit, or with ctx.
func (w *working) wait(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	w.mu.Lock()
	if w.n == 0 {
		w.mu.Unlock()
		return
	}
	if w.rest == nil {
		w.rest = make(chan struct{})
	}
	rest := w.rest
	w.mu.Unlock()
	select {
	case <-rest:
	case <-ctx.Done():
	}
}

// Rest waits until no call works in the background any more, as long as limit, or until ctx ends.
func (o *Outlet) Rest(ctx context.Context, limit time.Duration) { o.working.wait(ctx, limit) }
