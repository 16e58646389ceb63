package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/rind-dev/rind/protocol"
)

// ErrEnded answers calls whose connection is gone.
var ErrEnded = errors.New("the connection ended before the call was answered")

// call is a request of ours that waits for its answer. Its key in the library's table is a string: the library counts from 0 and takes
// a picked 0 for none.
type call struct {
	key    string
	out    protocol.Call
	answer *protocol.Answer // written before the library is told
}

// Call asks the peer and waits. It returns the result as sent, the peer's error as a *protocol.Error, or ErrEnded. When ctx ends the call is
// withdrawn, and if there is still no answer after the grace, ctx's cause is returned. Call must not be used on the reading goroutine.
func (c *Conn) Call(ctx context.Context, out protocol.Call) (json.RawMessage, error) {
	if c.o.Send == nil {
		return nil, errors.New("this connection makes no calls")
	}
	select {
	case <-c.started:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	call, err := c.open(out)
	if err != nil {
		return nil, err
	}
	defer c.forget(call)
	wait, err := c.lib.DispatchCall(ctx, "m", nil, jsonrpc2.PickID(jsonrpc2.ID{Str: call.key, IsString: true}))
	if err != nil {
		return nil, c.broken(err)
	}
	err = wait.Wait(ctx, nil)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		if c.o.Withdraw != nil {
			c.o.Withdraw(out.ID)
		}
		late, stop := context.WithTimeout(context.WithoutCancel(ctx), c.o.Grace)
		defer stop()
		if err = wait.Wait(late, nil); errors.Is(err, context.DeadlineExceeded) {
			c.abandon(call)
			return nil, context.Cause(ctx)
		}
	}
	if err != nil {
		return nil, c.broken(err)
	}
	if call.answer.Err != nil {
		return nil, call.answer.Err
	}
	return call.answer.Result, nil
}

func (c *Conn) broken(err error) error {
	if errors.Is(err, jsonrpc2.ErrClosed) {
		return ErrEnded
	}
	return fmt.Errorf("call the client: %w", err)
}

// open enters a call under a key of its own, and under the id the peer will answer with.
func (c *Conn) open(out protocol.Call) (*call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.calls {
		if other.out.ID == out.ID {
			return nil, fmt.Errorf("a call with id %q is open already", out.ID)
		}
	}
	c.lastCall++
	call := &call{key: strconv.FormatUint(c.lastCall, 10), out: out}
	c.calls[call.key] = call
	return call, nil
}

func (c *Conn) forget(call *call) {
	c.mu.Lock()
	delete(c.calls, call.key)
	c.mu.Unlock()
}

// answered finds the call an answer is for. Answers to no call, or to one answered before, are dropped.
func (c *Conn) answered(a *protocol.Answer) (key string, ok bool) {
	id := idText(a.ID)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.calls {
		if id != "" && call.out.ID == id && call.answer == nil {
			call.answer = a
			return call.key, true
		}
	}
	return "", false
}

// idText is an id as Call names it: the content of a string, the digits of a number. Anything else, null above all, is no id.
func idText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// abandon has the library forget a call before the next read: it offers no way to do so but an answer.
func (c *Conn) abandon(call *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call.answer == nil { // else the library was told just now
		c.abandoned = append(c.abandoned, call.key)
		call.answer = &protocol.Answer{}
	}
}

func (c *Conn) abandonedCall() (key string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.abandoned) == 0 {
		return "", false
	}
	key = c.abandoned[0]
	c.abandoned = c.abandoned[1:]
	return key, true
}
