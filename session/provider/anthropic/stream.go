package anthropic

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/rind-dev/rind/session"
)

// errIdle is the cause of a request's context that the watchdog ended.
var errIdle = errors.New("the provider was silent for too long")

// drainGrace is how long a connection may take to end its answer for it to be used again.
const drainGrace = 25 * time.Millisecond

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

// stream is an open answer.
type stream struct {
	events
	ctx  context.Context
	body io.ReadCloser
	dog  *watchdog
}

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

// next returns the next event; the cause of the context once that has ended, even when events are at hand.
func (s *stream) next() (event, error) {
	if s.ctx.Err() != nil {
		return event{}, context.Cause(s.ctx)
	}
	return s.events.next()
}

// finish reads what is left after the end mark, so that the connection can serve the next request; it gives up soon.
func (s *stream) finish() {
	s.dog.within(drainGrace)
	_, _ = io.CopyN(io.Discard, s.r, 64<<10)
}

func (s *stream) close() {
	s.dog.rest()
	_ = s.body.Close()
}

// broken says how a stream came to a bad end.
func (m *Model) broken(ctx context.Context, err error, began bool) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, errIdle) {
			return &session.ModelError{Fault: session.FaultTimeout, Message: "The model sent nothing for too long.", Cause: cause}
		}
		return cause
	}
	e := &session.ModelError{Fault: session.FaultCut, Cause: m.redacted(err)}
	switch {
	case !errors.Is(err, io.EOF):
		e.Message = "The connection broke before the answer was complete."
	case began:
		e.Message = "The model's answer ended before it was complete."
	default:
		e.Message = "The provider ended the stream without saying anything."
	}
	return e
}
