// Package rpc is the only room that knows sourcegraph/jsonrpc2: a read pump and a table of outgoing calls, behind a stream of our own.
//
// The library closes a connection on a malformed line, mangles ids it cannot hold in 64 bits, re-encodes params and has no bounds. So the
// stream here owns framing, size, depth, encoding and malformed lines; it keeps the peer's raw request in a table under a small
// integer and hands the library a tiny object with that integer. The handler only classifies: it finds the request again by its
// integer and passes it on, in the order of reading. Replies and events never go through the library.
//
// Serve reads on the goroutine jsonrpc2 starts for a connection, and returns when that has ended.
package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/frame"
)

// Peer takes what a connection says. All its methods are called on the reading goroutine, in reading order, and must not block for long:
// nothing is read meanwhile.
type Peer interface {
	// Ready is called before each read; it may block while answers are unwritten.
	Ready()
	// Decode reads a frame. Its errors are passed to Refuse.
	Decode(frame []byte) (protocol.Request, error)
	Request(protocol.Request)
	// Refuse answers a frame that is no request: an error of Decode, or a fault of package frame.
	Refuse(err error)
}

// Serve reads frames until the input ends: nil at a clean end, or what broke it. A panic of the Peer ends the program as anywhere else.
func Serve(ctx context.Context, in *frame.Reader, p Peer) error {
	s := &stream{in: in, peer: p, requests: map[uint64]protocol.Request{}}
	conn := jsonrpc2.NewConn(ctx, s, s, jsonrpc2.SetLogger(silent{}))
	<-conn.DisconnectNotify()
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.err, io.EOF) || errors.Is(s.err, io.ErrUnexpectedEOF) {
		return nil
	}
	return s.err
}

// silent drops the library's log lines: standard error is not ours to write to.
type silent struct{}

func (silent) Printf(string, ...any) {}

// stream is both sides of the library: the ObjectStream it reads and the Handler it calls.
type stream struct {
	in   *frame.Reader
	peer Peer

	// Owned by the reading goroutine.
	next     uint64
	requests map[uint64]protocol.Request

	mu  sync.Mutex // guards err
	err error
}

// ReadObject implements jsonrpc2.ObjectStream: it answers what is no request by itself and goes on, so that the library never sees it.
func (s *stream) ReadObject(v any) error {
	for {
		s.peer.Ready()
		b, err := s.in.Next()
		switch {
		case err == nil:
		case errors.Is(err, frame.ErrTooLong), errors.Is(err, frame.ErrUTF8), errors.Is(err, frame.ErrDepth):
			s.peer.Refuse(err)
			continue
		default:
			if errors.Is(err, frame.ErrHeader) {
				s.peer.Refuse(err)
			}
			s.mu.Lock()
			s.err = err
			s.mu.Unlock()
			return err
		}
		req, err := s.peer.Decode(b)
		if err != nil {
			s.peer.Refuse(err)
			continue
		}
		s.next++
		s.requests[s.next] = req
		return json.Unmarshal(token(s.next), v)
	}
}

// token is the object the library is given in a request's place.
func token(n uint64) []byte {
	return append(strconv.AppendUint([]byte(`{"jsonrpc":"2.0","method":"m","id":`), n, 10), '}')
}

// Handle implements jsonrpc2.Handler. It is called on the reading goroutine.
func (s *stream) Handle(_ context.Context, _ *jsonrpc2.Conn, token *jsonrpc2.Request) {
	req, ok := s.requests[token.ID.Num]
	if !ok {
		return
	}
	delete(s.requests, token.ID.Num)
	s.peer.Request(req)
}

// WriteObject implements jsonrpc2.ObjectStream. Nothing is ever written through the library.
func (s *stream) WriteObject(any) error { return errors.New("rpc: writing goes through the outbox") }

// Close implements jsonrpc2.ObjectStream; the input belongs to who opened it.
func (s *stream) Close() error { return nil }
