package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
)

// link carries messages to a server.
type link interface {
	// start begins; messages then come to the peer's receive, one at a time over a child's streams.
	start() error
	// send hands a message over and does not wait for the server. id is that of the call it is, 0 for none.
	send(msg []byte, id int64) error
	// opened tells that the handshake is done; msg says so to the server.
	opened(ctx context.Context, version string, msg []byte) error
	// withdraw tells that nobody waits for the answer to a call any more.
	withdraw(id int64)
	// close ends the link and all it owns, and waits for that.
	close()
}

// peer is one connection to a server: calls and their answers, whatever carries them. It owns no goroutine.
type peer struct {
	log     *slog.Logger
	limit   int // bytes of a message that is received
	link    link
	request func(method string) (any, *remoteError) // answers the server's own requests
	notice  func(method string, params json.RawMessage)
	quiet   func(text string, n int) string // without what no log may hold
	ended   chan struct{}                   // closed when the connection is lost

	words meter

	mu     sync.Mutex // guards what follows
	last   int64
	calls  map[int64]*pending
	reason error // why it ended
}

type pending struct {
	answer   chan answer // of room for one
	progress func(progress)
}

type answer struct {
	result json.RawMessage
	err    error
}

// progress is what a server says of a call that runs.
type progress struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress json.Number     `json:"progress"`
	Total    json.Number     `json:"total"`
	Message  string          `json:"message"`
}

// remoteError is an error a server answered with.
type remoteError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error is the server's own text, whole and as it is: who shows it takes the secrets out first, and cuts it then.
func (e *remoteError) Error() string { return fmt.Sprintf("%s (error %d)", e.Message, e.Code) }

// lostError says that a connection ended, or broke for one call. The call may have been worked on.
type lostError struct{ cause error }

func (e *lostError) Error() string { return e.cause.Error() }
func (e *lostError) Unwrap() error { return e.cause }

var errTooLong = fmt.Errorf("its answer is longer than %d MiB", maxMessage>>20)

// message is any JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *remoteError    `json:"error"`
}

func newPeer(log *slog.Logger, limit int) *peer {
	return &peer{log: log, limit: limit, calls: map[int64]*pending{}, ended: make(chan struct{}), quiet: clean}
}

// call asks the server and waits for its answer: the result, a *remoteError, a *lostError, or the cause of ctx; the server is then told that
// nobody waits. params may hold {token} where the call's own id goes, as a number.
func (p *peer) call(ctx context.Context, method string, params func(token int64) any, told func(progress)) (json.RawMessage, error) {
	own := &pending{answer: make(chan answer, 1), progress: told}
	p.mu.Lock()
	if p.reason != nil {
		defer p.mu.Unlock()
		return nil, &lostError{p.reason}
	}
	p.last++
	id := p.last
	p.calls[id] = own
	p.mu.Unlock()
	defer p.forget(id)
	msg, err := protocol.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params(id)})
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", method, err)
	}
	if err := p.link.send(msg, id); err != nil {
		return nil, &lostError{err}
	}
	select {
	case a := <-own.answer:
		return a.result, a.err
	case <-ctx.Done():
	case <-p.ended:
		select {
		case a := <-own.answer:
			return a.result, a.err
		default:
			return nil, &lostError{p.why()}
		}
	}
	p.forget(id)
	if method != "initialize" { // which may not be cancelled
		p.tell("notifications/cancelled", map[string]any{"requestId": id, "reason": clean(context.Cause(ctx).Error(), 200)})
	}
	p.link.withdraw(id)
	return nil, context.Cause(ctx)
}

func (p *peer) forget(id int64) {
	p.mu.Lock()
	delete(p.calls, id)
	p.mu.Unlock()
}

// waits reports whether somebody waits for the answer to a call.
func (p *peer) waits(id int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[id] != nil
}

// settle gives a call its answer; one that nobody waits for is dropped.
func (p *peer) settle(id int64, a answer) {
	p.mu.Lock()
	own := p.calls[id]
	delete(p.calls, id)
	p.mu.Unlock()
	if own != nil {
		own.answer <- a
	}
}

// fail ends one call, or for 0 every call in flight: its answer is lost.
func (p *peer) fail(id int64, err error) {
	if id != 0 {
		p.settle(id, answer{err: &lostError{err}})
		return
	}
	p.mu.Lock()
	ids := make([]int64, 0, len(p.calls))
	for id := range p.calls {
		ids = append(ids, id)
	}
	p.mu.Unlock()
	for _, id := range ids {
		p.fail(id, err)
	}
}

// end says that the connection is lost. The first reason counts.
func (p *peer) end(reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason == nil {
		p.reason = reason
		close(p.ended)
	}
}

func (p *peer) why() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reason
}

// tell sends a notification, if there is room.
func (p *peer) tell(method string, params any) {
	if err := p.link.send(notification(method, params), 0); err != nil {
		p.log.Debug("mcp notification not sent", "method", method, "err", err)
	}
}

func notification(method string, params any) []byte {
	m := map[string]any{"jsonrpc": "2.0", "method": method}
	if params != nil {
		m["params"] = params
	}
	return protocol.MustMarshal(m)
}

// receive takes one message, or a list of them. It does not wait and keeps nothing of raw. What is no message is logged.
func (p *peer) receive(raw []byte) {
	raw = bytes.TrimSpace(raw)
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	if len(raw) > 0 && raw[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err == nil {
			for _, one := range list {
				p.one(one)
			}
			return
		}
	}
	p.one(raw)
}

func (p *peer) one(raw []byte) {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		p.said("mcp server wrote what is no message", "bytes", len(raw), "begins", p.quiet(string(raw[:min(len(raw), 400)]), 100))
		return
	}
	id, known := number(m.ID)
	switch {
	case m.Method != "" && len(m.ID) > 0 && string(m.ID) != "null":
		p.reply(m.ID, m.Method)
	case m.Method == "notifications/progress":
		p.progressed(m.Params)
	case m.Method != "":
		p.notice(m.Method, m.Params)
	case known && m.Error != nil:
		p.settle(id, answer{err: m.Error})
	case known && m.Result != nil:
		p.settle(id, answer{result: m.Result})
	case known:
		p.settle(id, answer{err: &lostError{errors.New("its answer holds neither a result nor an error")}})
	case m.Error != nil:
		p.said("mcp server told an error", "code", m.Error.Code, "message", p.quiet(m.Error.Message, 200))
	}
}

// said logs what the server says, as far as it does not fill the log.
func (p *peer) said(what string, args ...any) {
	ok, left := p.words.take(time.Now())
	if left > 0 {
		p.log.Info("mcp server said more than is logged", "lines_left_out", left)
	}
	if ok {
		p.log.Info(what, args...)
	}
}

// number reads an id of ours; some servers answer with it as a string.
func number(raw json.RawMessage) (int64, bool) {
	n, err := strconv.ParseInt(string(bytes.Trim(raw, `"`)), 10, 64)
	return n, err == nil
}

func (p *peer) reply(id json.RawMessage, method string) {
	m := map[string]any{"jsonrpc": "2.0", "id": id}
	if result, err := p.request(method); err != nil {
		m["error"] = err
	} else {
		m["result"] = result
	}
	msg, err := protocol.Marshal(m)
	if err == nil {
		err = p.link.send(msg, 0)
	}
	if err != nil {
		p.log.Debug("mcp answer not sent", "method", clean(method, 80), "err", err)
	}
}

func (p *peer) progressed(params json.RawMessage) {
	var told progress
	if json.Unmarshal(params, &told) != nil {
		return
	}
	id, ok := number(told.Token)
	if !ok {
		return
	}
	p.mu.Lock()
	own := p.calls[id]
	p.mu.Unlock()
	if own != nil && own.progress != nil {
		own.progress(told)
	}
}
