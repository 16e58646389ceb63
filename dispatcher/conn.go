package dispatcher

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/frame"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// Conn is one connection. Requests are taken on its reading goroutine, in reading order, and answered through its Outbox; what a method
// does in between is the session's business. Its two goroutines are the reader, which is the caller of Serve, and the Outbox.
type Conn struct {
	d        *RuntimeDispatcher
	out      *Outbox
	in       *frame.Reader
	requests *outlet.Requests[*call]

	mu          sync.Mutex // guards what follows; never held over I/O
	env         rindv2.Envelope
	how         frame.Framing
	decided     bool
	ready       bool
	stopping    bool  // shutdown was asked for
	final       *call // that request, answered last; nil for none
	current     *session.Session
	lostCurrent session.SessionID // the current session was deleted by another connection
	caps        bool              // initialize carried client_capabilities
	named       bool              // some request named its session
	approves    bool              // the client knows approvals
	notices     bool              // the client shows notices
	asks        questions

	claims claims // executions that are followed
}

func newConn(d *RuntimeDispatcher, in io.Reader, out io.Writer) *Conn {
	c := &Conn{d: d, in: frame.NewReader(in), requests: outlet.NewRequests[*call](rindv2.MaxInFlight)}
	c.out = newOutbox(c, out)
	c.asks.life, c.asks.end = context.WithCancelCause(context.Background())
	return c
}

// form is how lines are written: settled by the first frame, before which there is nothing to write.
func (c *Conn) form() (rindv2.Envelope, frame.Framing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.env, c.how
}

func (c *Conn) envelope() rindv2.Envelope {
	env, _ := c.form()
	return env
}

func (c *Conn) knowsApprovals() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.approves
}

func (c *Conn) showsNotices() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.notices
}

// legacy reports whether the client is of the older generation (docs/protocol/rind-v2.md, head).
func (c *Conn) legacy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.caps && !c.named
}

// Ready implements rpc.Peer.
func (c *Conn) Ready() { c.out.Pause() }

// Decode implements rpc.Peer. The first frame decides for an envelope, unless one was forced.
func (c *Conn) Decode(b []byte) (protocol.Request, error) {
	c.mu.Lock()
	if !c.decided {
		c.decided = true
		c.env = rindv2.SniffEnvelope(b)
	}
	env := c.env
	c.mu.Unlock()
	return rindv2.Decode(env, b)
}

// Refuse implements rpc.Peer.
func (c *Conn) Refuse(err error) {
	if errors.Is(err, rindv2.ErrIgnored) {
		return
	}
	r, ok := errors.AsType[*rindv2.Refusal](err)
	if !ok {
		text := rindv2.TextNotJSON
		switch {
		case errors.Is(err, frame.ErrTooLong):
			text = rindv2.TextLineTooLong
		case errors.Is(err, frame.ErrHeader):
			text = rindv2.TextBadHeaders
		case errors.Is(err, frame.ErrUTF8):
			text = rindv2.TextNotUTF8
		case errors.Is(err, frame.ErrDepth):
			text = rindv2.TextTooDeep
		}
		r = rindv2.FrameFault(text)
	}
	c.out.Refuse(protocol.Reply{ID: r.ID, Err: r.Err})
}

// call is one request being answered.
type call struct {
	outlet.Call
	c      *Conn
	params rindv2.Params
	prompt *session.Prompt
	stop   func() // ends what works for the answer; nil for none
}

// Request implements rpc.Peer: the checks that need the connection's state, in the order of docs/protocol/rind-v2.md section 2, then the
// method. It runs on the reading goroutine.
func (c *Conn) Request(req protocol.Request) {
	m, known := methods[req.Method]
	known = known && (m.run != nil || req.ID == nil) // $/cancel_request is a notification: it has no answer, so with an id it is no method
	_, dup := c.requests.Find(string(req.ID))
	c.mu.Lock()
	stopping, ready := c.stopping, c.ready
	c.mu.Unlock()
	var refused *protocol.Error
	switch {
	case req.ID == nil:
	case dup:
		refused = rindv2.DuplicateID()
	case stopping || c.d.stopped():
		refused = rindv2.Stopping()
	case !ready && !m.early:
		refused = rindv2.NotReady()
	case !known:
		refused = rindv2.UnknownMethod(req.Method)
	case !m.always && c.requests.Full():
		refused = rindv2.Overloaded()
	}
	if refused != nil {
		c.out.Refuse(protocol.Reply{ID: req.ID, Err: refused})
		return
	}
	k := &call{Call: outlet.Call{Request: req, Out: c.out.Outlet}, c: c, params: rindv2.ReadParams(req.Params)}
	if req.ID != nil {
		c.requests.Add(string(req.ID), k)
	}
	if m.run == nil { // $/cancel_request
		c.cancelRequest(k)
		return
	}
	if k.params.Has("session_id") && req.Method != "session/switch" && req.Method != "session/replay" {
		c.mu.Lock()
		c.named = true
		c.mu.Unlock()
	}
	m.run(k)
}

// at answers once the connection was told everything of a session up to seq, by its watches too: nothing of a turn comes behind the answer to
// its prompt.
func (k *call) at(id session.SessionID, seq session.Seq, result any, err error) {
	k.At(&outlet.Hold{
		Stream: string(id), Seq: seq, Until: func(outlet.Stream) bool { return k.c.claims.before(id, seq) },
		Reply: func(outlet.Stream) (any, error) { return result, err },
	})
}

var okResult = rindv2.OK{OK: true}

// panicked answers the request whose method panicked on the reading goroutine; reading goes on.
func (c *Conn) panicked(req protocol.Request, value any, stack []byte) {
	if k, waits := c.requests.Find(string(req.ID)); waits {
		k.Panicked(value, stack)
		return
	}
	_ = c.d.internal(outlet.Panic(req.Method, value, stack))
}

// cancelRequest is the notification $/cancel_request {id} of JSON-RPC.
func (c *Conn) cancelRequest(k *call) {
	target, flying := c.requests.Find(string(bytes.TrimSpace(k.params.Raw("id"))))
	if !flying || target.Method == "shutdown" { // what has begun with that is not taken back
		return
	}
	if target.prompt != nil {
		target.prompt.Withdraw(protocol.ReasonUser, func(error) {})
		return
	}
	if target.stop != nil {
		target.stop()
	}
	target.Fail(&protocol.Error{Kind: rindv2.RequestCancelled, Message: "Request was cancelled."})
}
