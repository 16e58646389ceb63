package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/frame"
)

// stream is the jsonrpc2.ObjectStream of a Conn.
type stream struct{ c *Conn }

// ReadObject implements jsonrpc2.ObjectStream: it answers what is no request by itself and goes on, so that the library never sees it.
func (s stream) ReadObject(v any) error {
	c := s.c
	for {
		if key, ok := c.abandonedCall(); ok {
			return json.Unmarshal(answerToken(key), v)
		}
		c.peer.Ready()
		b, err := c.in.Next()
		if c.ended.Load() {
			return jsonrpc2.ErrClosed
		}
		switch {
		case err == nil:
		case errors.Is(err, frame.ErrTooLong), errors.Is(err, frame.ErrUTF8), errors.Is(err, frame.ErrDepth):
			c.peer.Refuse(err)
			continue
		default:
			if errors.Is(err, frame.ErrHeader) {
				c.peer.Refuse(err)
			}
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
			return err
		}
		req, err := c.peer.Decode(b)
		switch {
		case err != nil:
			c.peer.Refuse(err)
		case req.Answer == nil:
			c.next++
			c.requests[c.next] = req
			return json.Unmarshal(requestToken(c.next), v)
		default:
			if key, ok := c.answered(req.Answer); ok {
				return json.Unmarshal(answerToken(key), v)
			}
		}
	}
}

// requestToken and answerToken are the objects the library is given in the place of what was read.
func requestToken(n uint64) []byte {
	return append(strconv.AppendUint([]byte(`{"jsonrpc":"2.0","method":"m","id":`), n, 10), '}')
}

func answerToken(key string) []byte {
	return append(protocol.AppendString([]byte(`{"jsonrpc":"2.0","result":0,"id":`), key), '}')
}

// WriteObject implements jsonrpc2.ObjectStream: the only thing the library writes is the token of a call. The call itself is queued: a peer
// that does not read must hold up neither callers nor the reading.
func (s stream) WriteObject(v any) error {
	j, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("token of a call: %w", err)
	}
	var token struct {
		Method string `json:"method"`
		ID     string `json:"id"`
	}
	if err := json.Unmarshal(j, &token); err != nil || token.Method == "" {
		return errors.New("rpc: replies and notifications go through the outbox")
	}
	s.c.mu.Lock()
	call := s.c.calls[token.ID]
	s.c.mu.Unlock()
	if call == nil {
		return errors.New("rpc: a call of nobody")
	}
	s.c.o.Send(call.out)
	return nil
}

// Close implements jsonrpc2.ObjectStream; the input belongs to who opened it.
func (stream) Close() error { return nil }

// handler is the jsonrpc2.Handler of a Conn.
type handler struct{ c *Conn }

// Handle implements jsonrpc2.Handler. The library calls it on the reading goroutine, one after the other.
func (h handler) Handle(_ context.Context, _ *jsonrpc2.Conn, token *jsonrpc2.Request) {
	req, ok := h.c.requests[token.ID.Num]
	if !ok {
		return
	}
	delete(h.c.requests, token.ID.Num)
	if h.c.o.Panicked != nil {
		defer func() {
			if v := recover(); v != nil {
				h.c.o.Panicked(req, v, debug.Stack())
			}
		}()
	}
	h.c.peer.Request(req)
}
