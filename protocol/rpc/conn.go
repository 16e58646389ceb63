package rpc

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/frame"
)

// Peer takes what a connection says. All its methods are called on the reading goroutine, in reading order, and must not block for long:
// nothing is read meanwhile, not even the answer to a Call.
type Peer interface {
	// Ready is called before each read; it may block while answers are unwritten.
	Ready()
	// Decode reads a frame, which it must not keep. Its errors are passed to Refuse.
	Decode(frame []byte) (protocol.Request, error)
	// Request takes a request or a notification. Answers to calls do not come here.
	Request(protocol.Request)
	// Refuse answers a frame that is no request: an error of Decode, or a fault of package frame.
	Refuse(err error)
}

// Options of a connection. All are optional; the functions must not block, and are called on different goroutines.
type Options struct {
	// Send queues a call of ours for writing. Without it there are no calls.
	Send func(protocol.Call)
	// Withdraw queues what tells the peer that a call of ours is not waited for any longer.
	Withdraw func(callID string)
	// Grace is how long a call that was withdrawn may still be answered; 0 means 2 s.
	Grace time.Duration
	// Panicked answers a request whose Peer panicked. Without it the panic ends the program.
	Panicked func(req protocol.Request, value any, stack []byte)
}

const grace = 2 * time.Second

// Conn is one connection. Serve it once; Call is safe for concurrent use.
type Conn struct {
	in   *frame.Reader
	peer Peer
	o    Options

	started chan struct{} // closed when lib is set
	lib     *jsonrpc2.Conn
	ended   atomic.Bool // Serve returned: the Peer is called no more

	// Owned by the reading goroutine.
	next     uint64
	requests map[uint64]protocol.Request

	mu        sync.Mutex // guards what follows
	err       error      // that ended the reading
	calls     map[string]*call
	lastCall  uint64
	abandoned []string // keys of calls nobody waits for, which the library still does
}

// New makes a connection that reads from in.
func New(in *frame.Reader, p Peer, o Options) *Conn {
	if o.Grace == 0 {
		o.Grace = grace
	}
	return &Conn{
		in: in, peer: p, o: o, started: make(chan struct{}), requests: map[uint64]protocol.Request{}, calls: map[string]*call{},
	}
}

// Serve reads frames until the input ends, and returns nil at a clean end, io.ErrUnexpectedEOF at one within a frame, frame.ErrHeader after a
// broken header block, ctx's error when that came first, or what broke the reading. Requests are not answered here, so that answers may
// still be written when it has returned.
func (c *Conn) Serve(ctx context.Context) error {
	defer c.ended.Store(true)
	c.lib = jsonrpc2.NewConn(ctx, stream{c}, handler{c}, jsonrpc2.SetLogger(silent{}))
	close(c.started)
	<-c.lib.DisconnectNotify()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(c.err, io.EOF):
		return nil
	case c.err == nil:
		return ctx.Err()
	}
	return c.err
}

// silent drops the library's log lines: standard error is not ours to write to.
type silent struct{}

func (silent) Printf(string, ...any) {}
