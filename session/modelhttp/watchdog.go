package modelhttp

import (
	"context"
	"errors"
	"io"
	"time"
)

// errIdle is the cause of a request's context that the watchdog ended.
var errIdle = errors.New("the provider was silent for too long")

// watchdog ends a request that is silent for too long, or lives on keep-alives alone for too long. It counts only while somebody
// waits for the provider, so a slow consumer is not taken for a silent provider. Used by one goroutine.
type watchdog struct {
	timer    *time.Timer
	idle     time.Duration
	total    time.Duration
	fed      time.Time // when the provider last said something of use
	deadline time.Time // of the waiting in all; zero for none
}

func newWatchdog(idle, total time.Duration, cancel context.CancelCauseFunc) *watchdog {
	w := &watchdog{idle: idle, total: total, fed: time.Now()}
	w.timer = time.AfterFunc(idle, func() { cancel(errIdle) })
	return w
}

// wait starts the count, rest stops it.
func (w *watchdog) wait() {
	d := w.idle
	now := time.Now()
	d = min(d, w.total-now.Sub(w.fed))
	if !w.deadline.IsZero() {
		d = min(d, w.deadline.Sub(now))
	}
	w.timer.Reset(max(d, 0))
}

func (w *watchdog) rest() { w.timer.Stop() }

// feed notes that something of use came.
func (w *watchdog) feed() { w.fed = time.Now() }

// within bounds all further waiting together.
func (w *watchdog) within(d time.Duration) { w.deadline = time.Now().Add(d) }

// watched reads a body under the watchdog: every byte is a sign of life.
type watched struct {
	body io.Reader
	dog  *watchdog
}

func (w watched) Read(p []byte) (int, error) {
	w.dog.wait()
	n, err := w.body.Read(p)
	w.dog.rest()
	return n, err
}
