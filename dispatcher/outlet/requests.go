package outlet

import (
	"context"
	"sync"
)

// Requests are those of a connection that have no answer yet, by their ids; C is what a dialect keeps of one. An id is free again when its answer is
// about to be written, since a client that has read the answer may use it at once; its place is free once that is written.
// Answering and Answered are an Outlet's options. Safe for concurrent use; make one with NewRequests.
type Requests[C any] struct {
	most int

	mu      sync.Mutex // guards what follows; never held over calls of others
	byID    map[string]C
	leaving int           // their answers are being written
	freed   chan struct{} // closed, and made anew, whenever ids are free again
}

// NewRequests makes one for a connection that has places for most requests.
func NewRequests[C any](most int) *Requests[C] {
	return &Requests[C]{most: most, byID: map[string]C{}, freed: make(chan struct{})}
}

// Add registers a request that will be answered.
func (r *Requests[C]) Add(id string, c C) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[id] = c
}

// Find returns the request of an id; false when there is none without an answer.
func (r *Requests[C]) Find(id string) (C, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.byID[id]
	return c, ok
}

// Full reports whether no further request has a place.
func (r *Requests[C]) Full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)+r.leaving >= r.most
}

// All returns the requests without an answer, in no order.
func (r *Requests[C]) All() []C {
	all, _ := r.now()
	return all
}

func (r *Requests[C]) now() ([]C, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]C, 0, len(r.byID))
	for _, c := range r.byID {
		all = append(all, c)
	}
	return all, r.freed
}

// Wait returns when no request that counts is without an answer, when gone is closed, or when ctx ends.
func (r *Requests[C]) Wait(ctx context.Context, gone <-chan struct{}, counts func(C) bool) {
	for {
		all, freed := r.now()
		open := false
		for _, c := range all {
			open = open || counts(c)
		}
		if !open {
			return
		}
		select {
		case <-freed:
		case <-gone:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Answering frees the ids of requests whose answers are about to be written.
func (r *Requests[C]) Answering(ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if _, flying := r.byID[id]; flying {
			delete(r.byID, id)
			r.leaving++
		}
	}
	if r.leaving > 0 {
		close(r.freed)
		r.freed = make(chan struct{})
	}
}

// Answered frees the places of the requests that Answering was told of.
func (r *Requests[C]) Answered([]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving = 0
}
