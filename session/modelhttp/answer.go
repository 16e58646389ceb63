package modelhttp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/rind-dev/rind/session"
)

// Answer is one completion on its way from the endpoint to who asked for it. Used by one goroutine.
type Answer struct {
	Began bool // something of the answer came

	at     *Endpoint
	ctx    context.Context
	cancel context.CancelCauseFunc
	yield  func(session.Chunk, error) bool
	body   io.Closer // nil while no stream is open
	events events
	dog    *watchdog
}

// errStopped: the consumer wants no more.
var errStopped = errors.New("consumer stopped")

// drainGrace is how long a connection may take to end its answer for it to be used again.
const drainGrace = 25 * time.Millisecond

// Generate is that of session.Model: make opens the stream, reads it and says what it holds. What make returns ends the completion; the
// cause of ctx goes before it.
func (e *Endpoint) Generate(ctx context.Context, make func(*Answer) error) iter.Seq2[session.Chunk, error] {
	return func(yield func(session.Chunk, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		a := &Answer{at: e, ctx: ctx, cancel: cancel, yield: yield}
		defer a.close()
		err := make(a)
		switch {
		case err == nil, errors.Is(err, errStopped):
			return
		case a.Cancelled():
			err = context.Cause(ctx)
		}
		yield(session.Chunk{}, err)
	}
}

// Cancelled tells whether who asked wants no answer any more. A stream that was given up for its silence is none of that.
func (a *Answer) Cancelled() bool {
	cause := context.Cause(a.ctx)
	return cause != nil && !errors.Is(cause, errIdle)
}

// Post sends a request to a path below BaseURL and opens the stream. Anything but a 200 that streams events is a *session.ModelError, or
// the cause of the context; another Post may follow.
func (a *Answer) Post(path string, body any) error {
	e := a.at
	dog := newWatchdog(e.Idle, e.Total, a.cancel)
	resp, err := e.Do(a.ctx, e.BaseURL+path, "text/event-stream", body)
	dog.rest()
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(watched{resp.Body, dog}, 512)
	if resp.StatusCode == http.StatusOK && streams(resp, in) {
		a.body, a.dog, a.events = resp.Body, dog, events{r: in} // the small buffer is passed by: what events asks for is larger
		return nil
	}
	defer resp.Body.Close()
	defer dog.rest()
	dog.within(e.Connect) // an error that dribbles in is cut short
	text, err := io.ReadAll(io.LimitReader(in, 64<<10))
	if err != nil && a.Cancelled() {
		return context.Cause(a.ctx)
	}
	if err != nil && resp.StatusCode == http.StatusOK {
		return a.Broken(err)
	}
	return e.refused(resp, text)
}

// streams tells from the first byte, where it can, whether a 200 holds events: servers forget the content type, and send an error
// or a login page under a false one.
func streams(resp *http.Response, in *bufio.Reader) bool {
	for {
		b, err := in.Peek(1)
		if err != nil {
			return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
		}
		switch b[0] {
		case ' ', '\t', '\r', '\n':
			_, _ = in.Discard(1)
		case '{', '[', '<':
			return false
		case ':', 'd', 'e', 'i', 'r', mark[0]: // comment, data, event, id, retry
			return true
		default:
			return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
		}
	}
}

// Next returns the next event; io.EOF is a clean end. Once the context has ended it returns its cause, even when events are at hand.
func (a *Answer) Next() (Event, error) {
	if a.ctx.Err() != nil {
		return Event{}, context.Cause(a.ctx)
	}
	return a.events.next()
}

// Within bounds all further waiting for the stream together.
func (a *Answer) Within(d time.Duration) { a.dog.within(d) }

// Finish reads what is left after the end mark, so that the connection can serve the next request; it gives up soon.
func (a *Answer) Finish() {
	a.dog.within(drainGrace)
	_, _ = io.CopyN(io.Discard, a.events.r, 64<<10)
}

func (a *Answer) close() {
	if a.body != nil {
		a.dog.rest()
		_ = a.body.Close()
	}
}

// Emit hands a chunk to who asked; an error means that there is nobody any more, and ends the completion.
func (a *Answer) Emit(c session.Chunk) error {
	if !a.yield(c, nil) {
		return errStopped
	}
	return nil
}

// Say emits a piece of the answer itself, which shows that the provider is at work.
func (a *Answer) Say(c session.Chunk) error {
	a.Began = true
	err := a.Emit(c)
	a.dog.feed()
	return err
}

// Broken says how a stream came to a bad end.
func (a *Answer) Broken(err error) error {
	if cause := context.Cause(a.ctx); cause != nil {
		if errors.Is(cause, errIdle) {
			return &session.ModelError{Fault: session.FaultTimeout, Message: "The model sent nothing for too long.", Cause: cause}
		}
		return cause
	}
	e := &session.ModelError{Fault: session.FaultCut, Cause: a.at.redacted(err)}
	switch {
	case !errors.Is(err, io.EOF):
		e.Message = "The connection broke before the answer was complete."
	case a.Began:
		e.Message = "The model's answer ended before it was complete."
	default:
		e.Message = "The provider ended the stream without saying anything."
	}
	return e
}

// Failed is an error inside the stream.
func (a *Answer) Failed(data []byte) error {
	t, ok := a.at.api.Parse(data)
	if !ok {
		t.Message = string(data)
	}
	return a.at.fault(t, 0)
}

// Unreadable is an event that is not what its API says.
func (a *Answer) Unreadable(err error) error {
	e := &session.ModelError{Fault: session.FaultBadReply, Status: 200, Message: "The provider's stream holds an event that cannot be read.", Cause: a.at.redacted(err)}
	if a.Began {
		e.Fault = session.FaultCut
	}
	return e
}
