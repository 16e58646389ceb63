package testkit

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Clock stands still until Advance. Its methods have the shapes in which the runtime takes time: Now for a func() time.Time, Pause for
// what waits between retries. Inside a testing/synctest bubble the time package does this by itself; Clock is for tests that cannot
// be in one. It owns no goroutine. Safe for concurrent use.
type Clock struct {
	mu      sync.Mutex // guards what is below
	now     time.Time
	waiting []*alarm
	changed chan struct{} // closed, and made anew, when waiting changes
}

type alarm struct {
	at   time.Time
	ring chan time.Time
}

// Epoch is where a clock made with the zero time begins.
var Epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// NewClock makes a clock that shows start, or Epoch for the zero time.
func NewClock(start time.Time) *Clock {
	if start.IsZero() {
		start = Epoch
	}
	return &Clock{now: start, changed: make(chan struct{})}
}

// Now returns what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After returns a channel that gets the time once d has passed; at once when d <= 0.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.set(d).ring }

// Pause waits until d has passed, or returns the cause of ctx when that ends first.
func (c *Clock) Pause(ctx context.Context, d time.Duration) error {
	a := c.set(d)
	select {
	case <-a.ring:
		return nil
	case <-ctx.Done():
		c.drop(a)
		return context.Cause(ctx)
	}
}

// Advance moves the clock by d and rings what is due, the earliest first.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	slices.SortStableFunc(c.waiting, func(a, b *alarm) int { return a.at.Compare(b.at) })
	due := 0
	for due < len(c.waiting) && !c.waiting[due].at.After(c.now) {
		c.waiting[due].ring <- c.now // has room for its only value
		due++
	}
	if due > 0 {
		c.waiting = slices.Delete(c.waiting, 0, due)
		c.signal()
	}
}

// AwaitWaiters returns once at least n pauses wait on the clock: then Advance meets them. The cause of ctx when that ends first.
func (c *Clock) AwaitWaiters(ctx context.Context, n int) error {
	for {
		c.mu.Lock()
		waiting, changed := len(c.waiting), c.changed
		c.mu.Unlock()
		if waiting >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (c *Clock) set(d time.Duration) *alarm {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &alarm{at: c.now.Add(d), ring: make(chan time.Time, 1)}
	if d <= 0 {
		a.ring <- c.now
		return a
	}
	c.waiting = append(c.waiting, a)
	c.signal()
	return a
}

func (c *Clock) drop(a *alarm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.waiting, a); i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
		c.signal()
	}
}

// signal tells AwaitWaiters to look again; mu is held.
func (c *Clock) signal() {
	close(c.changed)
	c.changed = make(chan struct{})
}
