package rpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/frame"
	"github.com/rind-dev/rind/protocol/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errNoRequest = errors.New("no request")

// peer is one side of a connection: a plain JSON-RPC codec, and a record of all it was given.
type peer struct {
	mu   sync.Mutex
	got  []string      // "request ID METHOD PARAMS", "refused REASON"
	more chan struct{} // one token for each of got

	ready   func()
	request func(protocol.Request)
}

func newPeer() *peer { return &peer{more: make(chan struct{}, 1<<16)} }

func (p *peer) note(s string) {
	p.mu.Lock()
	p.got = append(p.got, s)
	p.mu.Unlock()
	p.more <- struct{}{}
}

// wait returns the first n of got.
func (p *peer) wait(t *testing.T, n int) []string {
	t.Helper()
	for range n {
		select {
		case <-p.more:
		case <-time.After(10 * time.Second):
			t.Fatalf("only %q came", p.got)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.got[:n]...)
}

func (p *peer) Ready() {
	if p.ready != nil {
		p.ready()
	}
}

func (p *peer) Decode(b []byte) (protocol.Request, error) {
	m := map[string]json.RawMessage{}
	if json.Unmarshal(b, &m) != nil {
		return protocol.Request{}, errNoRequest
	}
	var method string
	if json.Unmarshal(m["method"], &method) == nil && method != "" {
		return protocol.Request{ID: m["id"], Method: method, Params: m["params"]}, nil
	}
	if m["error"] != nil {
		return protocol.Request{Answer: &protocol.Answer{ID: m["id"], Err: &protocol.Error{Kind: protocol.InternalError, Message: string(m["error"])}}}, nil
	}
	if m["result"] != nil {
		return protocol.Request{Answer: &protocol.Answer{ID: m["id"], Result: m["result"]}}, nil
	}
	return protocol.Request{}, errNoRequest
}

func (p *peer) Request(r protocol.Request) {
	p.note("request " + string(r.ID) + " " + r.Method + " " + string(r.Params))
	if p.request != nil {
		p.request(r)
	}
}

func (p *peer) Refuse(err error) { p.note("refused " + err.Error()) }

// serveAll serves a connection without calls.
func serveAll(ctx context.Context, in *frame.Reader, p rpc.Peer) error {
	return rpc.New(in, p, rpc.Options{}).Serve(ctx)
}

// serve reads in to its end and returns what the peer was given.
func serve(t *testing.T, in []byte) []string {
	t.Helper()
	p := newPeer()
	if err := serveAll(t.Context(), frame.NewReader(bytes.NewReader(in)), p); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Serve = %v", err)
	}
	return p.got
}

// pair is a served connection a test writes into.
type pair struct {
	*peer
	conn *rpc.Conn
	to   *io.PipeWriter
	done chan error // result of Serve
	sent chan protocol.Call
	gone chan string // withdrawn calls
}

// open serves a connection until the test ends.
func open(t *testing.T, p *peer, o rpc.Options) *pair {
	t.Helper()
	r, w := io.Pipe()
	c := &pair{peer: p, to: w, done: make(chan error, 1), sent: make(chan protocol.Call, 100), gone: make(chan string, 100)}
	o.Send = func(call protocol.Call) { c.sent <- call }
	o.Withdraw = func(id string) { c.gone <- id }
	c.conn = rpc.New(frame.NewReader(r), p, o)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { c.done <- c.conn.Serve(ctx) }()
	t.Cleanup(func() {
		w.Close()
		cancel()
		<-c.done
	})
	return c
}

func (c *pair) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c.to, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// receive takes the next value of ch.
func receive[T any](t *testing.T, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came")
	}
	return v
}

type outcome struct {
	result json.RawMessage
	err    error
}

// call makes a call on a goroutine of its own.
func (c *pair) call(ctx context.Context, id string) <-chan outcome {
	ch := make(chan outcome, 1)
	go func() {
		res, err := c.conn.Call(ctx, protocol.Call{ID: id, Method: "ask", Params: json.RawMessage(`{"q":"<&>"}`)})
		ch <- outcome{res, err}
	}()
	return ch
}
