package acp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/protocol/frame"
	"github.com/rind-dev/rind/protocol/rpc"
	"github.com/rind-dev/rind/session"
)

// maxInFlight bounds the requests of a connection that have no answer yet.
const maxInFlight = 64

// Conn is one connection. Requests are taken on its reading goroutine, in reading order, and answered through its outbox.
type Conn struct {
	d        *Dispatcher
	in       *frame.Reader
	out      *outbox
	rpc      *rpc.Conn
	asks     asks
	requests *outlet.Requests[*call]

	mu        sync.Mutex // guards what follows; never held over I/O
	ready     bool
	stopping  bool
	caps      acp.ClientCapabilities
	version   int64 // of the protocol, as it was agreed on
	open      map[session.SessionID]*opened
	own       map[session.TurnID]bool // turns of prompts that have no answer yet
	terminals map[string]*terminal    // of the client, by the call that runs in them
	noFiles   int                     // times the client did not answer for its files as it should
	prompts   int                     // that were handed to a session
}

// opened is a session the client has open here.
type opened struct {
	s *session.Session // a reference
	// The folders as the client named them.
	cwd   string
	roots []string
	names map[string]string // of its folders: as the client named them, by what they resolve to
	// via is the surface of a change of mode this connection asked for and was not told of yet: it needs no update of its own. Guarded by Conn.mu.
	via string
}

func newConn(d *Dispatcher, in io.Reader, out io.Writer) *Conn {
	c := &Conn{
		d: d, in: frame.NewReader(in), requests: outlet.NewRequests[*call](maxInFlight), open: map[session.SessionID]*opened{}, own: map[session.TurnID]bool{}, terminals: map[string]*terminal{},
	}
	c.in.SetMax(d.cfg.MaxLine)
	c.out = newOutbox(c, out)
	c.asks.life, c.asks.end = context.WithCancel(context.Background())
	c.asks.open, c.asks.silent = map[string]*asked{}, map[string]bool{}
	return c
}

// clientCaps are what the client offers.
func (c *Conn) clientCaps() acp.ClientCapabilities {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.caps
}

// Ready implements rpc.Peer.
func (c *Conn) Ready() { c.out.Pause() }

// Decode implements rpc.Peer.
func (c *Conn) Decode(b []byte) (protocol.Request, error) { return acp.Decode(b) }

// Refuse implements rpc.Peer.
func (c *Conn) Refuse(err error) {
	if errors.Is(err, acp.ErrIgnored) {
		return
	}
	r, ok := errors.AsType[*acp.Refusal](err)
	if !ok {
		r = &acp.Refusal{Err: &protocol.Error{Kind: protocol.ParseError, Message: "The line is not valid UTF-8."}}
		switch {
		case errors.Is(err, frame.ErrTooLong):
			r.Err = &protocol.Error{Kind: acp.BadMessage, Message: fmt.Sprintf("The line is longer than %d bytes.", c.d.cfg.MaxLine)}
		case errors.Is(err, frame.ErrDepth):
			r.Err = &protocol.Error{Kind: acp.BadMessage, Message: "The line is nested too deeply."}
		}
	}
	c.out.Refuse(protocol.Reply{ID: r.ID, Err: r.Err})
}

// call is one request being answered, or a notification.
type call struct {
	outlet.Call
	c      *Conn
	params acp.Params
	long   bool // a prompt: its end is the turn's

	session session.SessionID              // of a prompt
	prompt  *session.Prompt                // set on the reading goroutine
	place   int                            // of the prompt among those of the connection; set with it
	turn    session.TurnID                 // once known; guarded by Conn.mu
	left    chan struct{}                  // of a prompt: closed when its answer was handed over
	errand  func(done bool, answer func()) // of a command with a key: to be called when it ended
}

// Request implements rpc.Peer: the checks that need the connection's state, in the order of docs/protocol/acp.md section 2.0, then the method.
func (c *Conn) Request(req protocol.Request) {
	m, known := methods[req.Method]
	if req.ID == nil && !m.notice {
		return // unknown, or a request nobody waits for
	}
	if req.ID != nil && req.Method == acp.MethodCancelRequest {
		known = false
	}
	_, dup := c.requests.Find(string(req.ID))
	c.mu.Lock()
	ready, stopping := c.ready, c.stopping
	c.mu.Unlock()
	var refused *protocol.Error
	echo := req.ID
	switch {
	case req.ID == nil:
		if !ready {
			return
		}
	case dup:
		refused, echo = &protocol.Error{Kind: acp.BadMessage, Message: "A request with this id has no answer yet."}, nil
	case stopping || c.d.stopped():
		refused = &protocol.Error{Kind: protocol.ServerStopping, Message: "Runtime is shutting down."}
	case !ready && req.Method != acp.MethodInitialize:
		refused = &protocol.Error{Kind: protocol.ServerNotReady, Message: "Call initialize first."}
	case !known, !c.serves(req.Method):
		refused = &protocol.Error{Kind: protocol.MethodNotFound, Message: "Unknown method: " + protocol.Prefix(req.Method, 100)}
	case !m.notice && c.requests.Full():
		refused = &protocol.Error{Kind: protocol.Overloaded, Message: fmt.Sprintf("Too many requests without an answer (maximum %d).", maxInFlight)}
	}
	if refused != nil {
		c.out.Refuse(protocol.Reply{ID: echo, Err: refused})
		return
	}
	k := &call{Call: outlet.Call{Request: req, Out: c.out.Outlet}, c: c, params: acp.ReadParams(req.Params), long: m.long, left: make(chan struct{})}
	k.Taken, k.Left = k.uncover, func() { close(k.left) }
	if req.ID != nil {
		c.requests.Add(string(req.ID), k)
	}
	m.run(k)
}

// at answers once the connection was told everything of a session up to seq, before anything behind.
func (k *call) at(id session.SessionID, seq session.Seq, reply func(f *follow) (any, error)) {
	k.At(&outlet.Hold{Stream: string(id), Seq: seq, Exact: true, Reply: func(s outlet.Stream) (any, error) {
		f, _ := s.(*follow)
		return reply(f)
	}})
}

// uncover ends what the call covers.
func (k *call) uncover() {
	k.c.mu.Lock()
	turn := k.turn
	k.c.mu.Unlock()
	if turn != "" {
		k.c.d.cover(turn, false)
	}
}

// covers says which turn the answer of a prompt will tell the end of.
func (k *call) covers(turn session.TurnID) {
	k.c.mu.Lock()
	k.turn = turn
	k.c.own[turn] = true
	k.c.mu.Unlock()
	k.c.d.cover(turn, true)
}

// isOwn reports whether a prompt of this connection will be answered with the end of a turn.
func (c *Conn) isOwn(turn session.TurnID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.own[turn]
}

func (c *Conn) disown(turn session.TurnID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.own, turn)
}

// panicked answers the request whose method panicked on the reading goroutine; reading goes on.
func (c *Conn) panicked(req protocol.Request, value any, stack []byte) {
	if k, waits := c.requests.Find(string(req.ID)); waits {
		k.Panicked(value, stack)
		return
	}
	_ = c.d.internal(outlet.Panic(req.Method, value, stack))
}

// opened finds the open session a request names.
func (k *call) opened() (*opened, error) {
	id, err := k.params.Session()
	if err != nil {
		return nil, err
	}
	k.c.mu.Lock()
	o := k.c.open[id]
	k.c.mu.Unlock()
	if o == nil {
		return nil, notOpen(id)
	}
	return o, nil
}

func notOpen(id session.SessionID) error {
	return &protocol.Error{Kind: protocol.SessionNotFound, Message: "No session is open under this id: " + protocol.Prefix(string(id), 128)}
}

// with runs f with the request's session; an error is the answer.
func (k *call) with(f func(o *opened)) {
	o, err := k.opened()
	if err != nil {
		k.Fail(err)
		return
	}
	f(o)
}

// cancelRequest is the notification $/cancel_request.
func cancelRequest(k *call) {
	target, flying := k.c.requests.Find(string(bytes.TrimSpace(k.params["requestId"])))
	switch {
	case !flying:
	case target.long:
		if target.prompt != nil {
			target.prompt.Withdraw(protocol.ReasonUser, func(error) {})
		}
	default:
		target.Fail(&protocol.Error{Kind: acp.RequestCancelled, Message: "The request was cancelled."})
	}
}
