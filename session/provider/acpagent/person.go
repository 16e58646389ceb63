package acpagent

import (
	"context"
	"slices"
)

// This file is how a child comes to ask the person: one request after another, each until there is an answer or none is wanted any more.

// line is those who want to ask the person, in the order of their coming. The channel of the first, who may, is closed.
type line []chan struct{}

// join takes a place. It is given back with leave in any case.
func (l *line) join() (place chan struct{}) {
	place = make(chan struct{})
	if *l = append(*l, place); len(*l) == 1 {
		close(place)
	}
	return place
}

// leave gives a place back.
func (l *line) leave(place chan struct{}) {
	at := slices.Index(*l, place)
	*l = slices.Delete(*l, at, at+1)
	if at == 0 && len(*l) > 0 {
		close((*l)[0])
	}
}

// first waits until it is one's turn to ask.
func (k *talk) first(ctx context.Context, place <-chan struct{}) error {
	select {
	case <-place:
		return nil
	case <-k.stopped:
		return errNoTurn
	case <-k.c.broken:
		return errNoTurn
	case <-ctx.Done():
		return errWithdrawn
	}
}

// queue waits for one's turn among those whose order of coming does not matter. leave is called in any case.
func (k *talk) queue(ctx context.Context) (leave func(), err error) {
	k.mu.Lock()
	place := k.line.join()
	k.mu.Unlock()
	return func() {
		k.mu.Lock()
		k.line.leave(place)
		k.mu.Unlock()
	}, k.first(ctx, place)
}

// ask has the person asked about a call and waits for the answer. An error is errNoTurn when there will be none, and errWithdrawn when the child
// does not want to know any more: what the person sees of it is closed then.
func ask[A any](ctx context.Context, k *talk, callID string, put func() (A, error)) (A, error) {
	type answer struct {
		a   A
		err error
	}
	answered := make(chan answer, 1)
	go func() { // ends with the answer, at the latest with the turn
		a, err := put()
		answered <- answer{a, err}
	}()
	var none A
	select {
	case got := <-answered:
		if got.err != nil {
			return none, errNoTurn
		}
		return got.a, nil
	case <-k.stopped:
		return none, errNoTurn
	case <-k.c.broken:
		return none, errNoTurn
	case <-ctx.Done():
		k.t.Withdraw(callID)
		return none, errWithdrawn
	}
}
