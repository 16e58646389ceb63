package acpagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/protocol/frame"
	"github.com/rind-dev/rind/protocol/rpc"
)

var (
	errClosed = errors.New("it closed its output")
	errUnread = errors.New("the agent does not read what it is sent")
)

// connect starts to read what the child says and to write what it is sent, and awaits its end.
func (c *child) connect() {
	c.noise = &noise{from: c.out, fails: c.fails}
	c.conn = rpc.New(frame.NewReader(c.noise), c, rpc.Options{
		Send:     func(call protocol.Call) { c.send(acp.AppendCall(nil, call)) },
		Withdraw: func(id string) { c.send(acp.AppendWithdrawal(nil, id)) },
		Panicked: c.panicked,
	})
	served := make(chan struct{})
	c.wg.Go(c.outbox.run)
	c.wg.Go(func() {
		_ = c.conn.Serve(context.Background())
		close(served)
		c.fails(errClosed)
	})
	c.wg.Go(func() { c.await(served) })
}

// panicked answers a request whose handling panicked: it costs the child its answer, and nobody else anything.
func (c *child) panicked(req protocol.Request, value any, stack []byte) {
	c.host.cfg.Log.Error("panic in a message of a hosted agent", "session", c.host.id, "method", req.Method, "panic", value, "stack", string(stack))
	if req.ID != nil {
		c.settled(req.ID)
		c.reply(protocol.Reply{ID: req.ID, Err: internal()})
	}
}

func internal() *protocol.Error { return protocol.Errorf(protocol.InternalError, "Internal error.") }

// send queues a line, without its newline.
func (c *child) send(line []byte) {
	if !c.outbox.put(line) {
		c.fails(errUnread)
	}
}

func (c *child) notify(method string, params any) {
	c.send(acp.AppendNotification(nil, method, params))
}

func (c *child) reply(r protocol.Reply) {
	line, err := acp.AppendReply(nil, r)
	if err != nil {
		line, _ = acp.AppendReply(nil, protocol.Reply{ID: r.ID, Err: internal()})
	}
	c.send(line)
}

// answer is what came back for a call of ours.
type answer struct {
	result json.RawMessage
	err    error
}

// call asks the child and waits: for the answer, for ctx, or until the child cannot be used any more.
func (c *child) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	ch := make(chan answer, 1)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil) // withdraws it, where it was not answered
	out := protocol.Call{ID: c.nextID(), Method: method, Params: protocol.MustMarshal(params)}
	c.wg.Go(func() {
		result, err := c.conn.Call(ctx, out)
		ch <- answer{result, err}
	})
	select {
	case a := <-ch:
		if errors.Is(a.err, rpc.ErrEnded) {
			c.fails(errClosed)
			return nil, c.why()
		}
		return a.result, a.err
	case <-c.broken:
		select {
		case a := <-ch: // it answered, and broke then
			if a.err == nil {
				return a.result, nil
			}
		default:
		}
		return nil, c.why()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c *child) nextID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	return strconv.FormatInt(c.lastID, 10)
}

// Ready implements rpc.Peer.
func (c *child) Ready() {}

// Decode implements rpc.Peer.
func (c *child) Decode(line []byte) (protocol.Request, error) {
	req, err := acp.Decode(line)
	if err != nil {
		c.odd(line, err)
		if r, ok := errors.AsType[*acp.Refusal](err); ok && r.ID != nil && bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) {
			return req, err // a request that is wrong is answered
		}
		return req, acp.ErrIgnored
	}
	c.touch()
	c.noise.spoken = true
	return req, nil
}

// Refuse implements rpc.Peer.
func (c *child) Refuse(err error) {
	switch {
	case errors.Is(err, frame.ErrTooLong):
		c.fails(errTooLong)
	case errors.Is(err, acp.ErrIgnored):
	default:
		if r, ok := errors.AsType[*acp.Refusal](err); ok && r.ID != nil {
			c.reply(protocol.Reply{ID: r.ID, Err: r.Err})
			return
		}
		c.odd(nil, err)
	}
}

// odd takes a line that is no message.
func (c *child) odd(line []byte, err error) {
	if c.noise.odd() {
		line = line[:min(len(line), noiseShown)]
		c.host.cfg.Log.Info("a hosted agent wrote what is no message", "session", c.host.id, "line", oneLine(c.mask(string(line)), noiseShown), "err", err)
	}
}

// Request implements rpc.Peer: it is called on the reading goroutine, in reading order.
func (c *child) Request(req protocol.Request) {
	switch {
	case req.Method == acp.MethodUpdate:
		c.update(req.Params)
		if req.ID != nil {
			c.reply(protocol.Reply{ID: req.ID, Result: object{}})
		}
	case req.Method == acp.MethodCancelRequest:
		c.withdrawn(req.Params)
	case req.ID == nil:
		c.event(req.Method, req.Params)
	default:
		c.asks(req)
	}
}
