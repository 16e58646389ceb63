// Package outlet is what connections share, whatever their dialect: the requests that have no answer yet, the cursors in the logs that are
// followed, and the way out, which is one writer. It pulls: answers and lines without a place in a log are
// handed over, everything else it asks for, stream by stream, when there is room on the wire. So a client that does not read costs a cursor
// for each log it follows, and holds up nobody.
//
// Promised: an answer held for a place of a log is written once everything of the log up to there was; streams take turns; what is unwritten is
// bounded by Pause; a log that cannot be read for a moment is read again, and nothing of it is skipped.
//
// Goroutines: Run, by its caller; it ends when the outlet is closed and drained, or when a write fails.
package outlet

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// BatchBytes is about how much is written at once: a stream's page ends where the batch has reached it.
const BatchBytes = 256 << 10

const (
	pauseAnswers = 1024 // unwritten ones at which Pause blocks
	pauseBytes   = 1 << 20
	restFirst    = 50 * time.Millisecond // after a page that could not be read; doubled each time
	restMost     = 2 * time.Second
	restInAll    = 30 * time.Second // then the stream ends
)

// Stream is what a connection is told of one log. Page, Told and Give run on the outlet's goroutine; Close on any, once.
type Stream interface {
	// Page appends what comes next to buf, as much as brings it to about BatchBytes. limit says how far it may go in the log, -1 for no limit: to be asked after
	// reading, since what was read behind a held answer's place was stored after the answer was held. more says that there may be more at
	// once; otherwise it is asked again after Ring. After an error it is asked again from the same place.
	Page(buf []byte, limit func() session.Seq) (out []byte, more bool, err error)
	// Told is the place up to which everything was told.
	Told() session.Seq
	// Close gives back what the stream refers to.
	Close()
}

// Hold is an answer, or what goes before one, that belongs to a place of a stream's log.
type Hold struct {
	Stream string          // its key; one that is not followed holds nothing back
	Seq    session.Seq     // written once everything up to there was told
	Exact  bool            // and before anything behind
	Last   bool            // behind everything else; the outlet ends with it
	Wait   bool            // not before Ready
	ID     json.RawMessage // of the request
	// Until keeps it back further, nil for no reason to. Runs on the outlet's goroutine, with the stream or nil.
	Until func(s Stream) bool
	// Lead appends whole frames that go right before the answer; nil for none. Runs on the outlet's goroutine, with the stream or nil.
	Lead func(buf []byte, s Stream) []byte
	// Reply makes the answer; nil for none, when Lead is all that belongs there. Runs on the outlet's goroutine, with the stream or nil.
	Reply func(s Stream) (result any, err error)
	// Written runs on the outlet's goroutine once the answer is on the wire; may be nil.
	Written func()
}

// Options of an Outlet. The functions run on its goroutine, Frame and Told on any; none may block.
type Options struct {
	Sink io.Writer
	// Frame puts an answer into bytes, framed. It cannot fail: what cannot be said is answered with an error that can.
	Frame func(r protocol.Reply) []byte
	// Told makes any error one that a client is told.
	Told func(err error) *protocol.Error
	// Answering gets the ids of the requests whose answers are about to be written, before a client can have read them.
	Answering func(ids []string)
	// Answered says that they are written.
	Answered func(ids []string)
	// Lost says that a write failed: nothing is written any more.
	Lost func(err error)
	// Unread says that a page could not be read. The stream is asked again in a moment; last says that it has ended instead.
	Unread func(key string, err error, last bool)
}

// Outlet is the only writer of a connection. Safe for concurrent use.
type Outlet struct {
	opt     Options
	working working // calls in the background

	mu      sync.Mutex // guards the fields below; never held over I/O or calls of others
	items   []item
	holds   []*Hold
	streams map[string]*place
	order   []string      // of streams, so that they take turns
	answers int           // unwritten
	bytes   int           // of them
	room    chan struct{} // closed when Pause may return; nil while it may
	closing bool
	wake    chan struct{}
	done    chan struct{}

	// Owned by the goroutine.
	ids   []string // answered by the batch being written
	size  int      // of those answers
	after []func() // once it is written
	turn  int      // index in order of the stream that is asked first
}

// item is something ready to be written.
type item struct {
	line  []byte
	write func(buf []byte) []byte // instead of line: what has to be encoded in its turn
	id    string
}

// place is a stream in the outlet. rest and tries belong to the goroutine.
type place struct {
	Stream
	tries int
	since time.Time // of the first page in a row that could not be read
	rest  time.Time // not asked before
}

// New makes an outlet. Run has to be called.
func New(o Options) *Outlet {
	return &Outlet{opt: o, streams: map[string]*place{}, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// Ring says that there may be something to write. It does not block.
func (o *Outlet) Ring() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Line hands over whole lines that are ready; id is that of the request they answer, "" for none.
func (o *Outlet) Line(line []byte, id string) {
	o.mu.Lock()
	o.items = append(o.items, item{line: line, id: id})
	o.count(1, len(line))
	o.mu.Unlock()
	o.Ring()
}

// Reply hands over the answer to a request that is registered.
func (o *Outlet) Reply(r protocol.Reply) { o.Line(o.opt.Frame(r), string(r.ID)) }

// Refuse hands over the answer to what was not registered as a request.
func (o *Outlet) Refuse(r protocol.Reply) { o.Line(o.opt.Frame(r), "") }

// Write hands over something that is encoded when its turn comes.
func (o *Outlet) Write(write func(buf []byte) []byte) {
	o.mu.Lock()
	o.items = append(o.items, item{write: write})
	o.mu.Unlock()
	o.Ring()
}

// count keeps account of unwritten answers; o.mu is held.
func (o *Outlet) count(n, bytes int) {
	o.answers += n
	o.bytes += bytes
	full := o.answers >= pauseAnswers || o.bytes >= pauseBytes
	switch {
	case full && o.room == nil:
		o.room = make(chan struct{})
	case !full && o.room != nil:
		close(o.room)
		o.room = nil
	}
}

// Pause blocks while too many answers are unwritten: the reader of the connection calls it before it reads on.
func (o *Outlet) Pause() {
	o.mu.Lock()
	room := o.room
	o.mu.Unlock()
	if room == nil {
		return
	}
	select {
	case <-room:
	case <-o.done:
	}
}

// Hold registers an answer at a place of a log.
func (o *Outlet) Hold(h *Hold) *Hold {
	o.mu.Lock()
	o.holds = append(o.holds, h)
	o.mu.Unlock()
	o.Ring()
	return h
}

// Ready makes an answer that waits.
func (o *Outlet) Ready(h *Hold, reply func(s Stream) (result any, err error)) {
	o.mu.Lock()
	h.Reply, h.Wait = reply, false
	o.mu.Unlock()
	o.Ring()
}

// Follow begins a stream, in the place of the one that had its key; h, when not nil, is registered with it, so that nothing comes between.
func (o *Outlet) Follow(key string, s Stream, h *Hold) {
	o.mu.Lock()
	old := o.streams[key]
	if old == nil {
		o.order = append(o.order, key)
	}
	o.streams[key] = &place{Stream: s}
	if h != nil {
		o.holds = append(o.holds, h)
	}
	o.mu.Unlock()
	if old != nil {
		old.Close()
	}
	o.Ring()
}

// Stream finds a stream; nil for none.
func (o *Outlet) Stream(key string) Stream {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := o.streams[key]; p != nil {
		return p.Stream
	}
	return nil
}

// Streams lists the keys of all streams, in the order they take turns.
func (o *Outlet) Streams() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.order)
}

// Unfollow ends a stream; false when there is none. Answers held for it are not held back any more.
func (o *Outlet) Unfollow(key string) bool {
	o.mu.Lock()
	p := o.streams[key]
	delete(o.streams, key)
	if i := slices.Index(o.order, key); i >= 0 {
		o.order = slices.Delete(slices.Clone(o.order), i, i+1)
	}
	o.mu.Unlock()
	if p == nil {
		return false
	}
	p.Close()
	o.Ring()
	return true
}

// Close lets Run end once everything due is written.
func (o *Outlet) Close() {
	o.mu.Lock()
	o.closing = true
	o.mu.Unlock()
	o.Ring()
}

// Drain closes the outlet and waits until everything due is written, or ctx ends, whose error it returns then.
func (o *Outlet) Drain(ctx context.Context) error {
	o.Close()
	select {
	case <-o.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Done is closed when Run has ended: all is written, or nothing can be any more.
func (o *Outlet) Done() <-chan struct{} { return o.done }
