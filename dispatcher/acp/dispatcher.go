// Package acp serves editors over the Agent Client Protocol (docs/protocol/acp.md), the agent's side: a connection reads their requests, hands
// them to the sessions in reading order, asks the person at the editor what needs consent, and tells from the sessions' logs what happened.
// Like its sibling for rind v2 it keeps no event: an outbox is a cursor over a log.
//
// Goroutines: per connection a reader (on jsonrpc2's read pump), an outbox, and one for each question that is put to the client, which ends
// with its answer, with the question's or with the connection; a few short ones for methods that read files, models or long pages of a log.
// They end with Serve, but for a read of standard input that cannot be interrupted.
package acp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/protocol/rpc"
	"github.com/rind-dev/rind/session"
)

// Config is what a Dispatcher is made of. Sessions is required.
type Config struct {
	Sessions *session.Sessions
	Version  string
	Log      *slog.Logger
	ErrorID  func(err error) string
	// Resolve turns a folder named by a client into an absolute path without links; its error is told.
	Resolve func(path string) (string, error)
	// Images reports whether some configured model takes images.
	Images func() bool

	Policy session.Policy // for /permissions; may be nil
	Undo   session.Undo   // for /undo; may be nil
	Guide  session.Guide  // for /skill; may be nil
}

// Dispatcher serves connections. Safe for concurrent use.
type Dispatcher struct {
	cfg    Config
	models *models

	mu       sync.Mutex // guards what follows
	stopping bool
	covered  map[session.TurnID]bool // turns that a prompt of some connection will be answered with
}

// New makes a Dispatcher.
func New(cfg Config) *Dispatcher {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ErrorID == nil {
		cfg.ErrorID = func(error) string { return protocol.RandomIDs{}.Hex32() }
	}
	if cfg.Resolve == nil {
		cfg.Resolve = func(p string) (string, error) { return p, nil }
	}
	if cfg.Images == nil {
		cfg.Images = func() bool { return false }
	}
	return &Dispatcher{cfg: cfg, models: &models{from: cfg.Sessions.Models()}, covered: map[session.TurnID]bool{}}
}

func (d *Dispatcher) stopped() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopping
}

func (d *Dispatcher) cover(turn session.TurnID, is bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if is {
		d.covered[turn] = true
	} else {
		delete(d.covered, turn)
	}
}

func (d *Dispatcher) isCovered(turn session.TurnID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.covered[turn]
}

// internal makes the answer to an unexpected error; its details go to the log file only.
func (d *Dispatcher) internal(err error) *protocol.Error {
	id := d.cfg.ErrorID(err)
	return &protocol.Error{Kind: protocol.InternalError, Message: "Internal error (id " + id + ").", Details: map[string]any{"error_id": id}, Cause: err}
}

// wire makes any error one that a client is told.
func (d *Dispatcher) wire(err error) *protocol.Error {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*session.ModelError](err); ok && e.Fault == session.FaultConfig {
		return &protocol.Error{Kind: acp.AuthRequired, Message: e.Message, Cause: err}
	}
	return d.internal(err)
}

// How long the end of a connection may take (docs/protocol/acp.md section 6, J24): short requests, and everything.
const (
	shortWithin = time.Second
	endWithin   = 3 * time.Second
)

// Serve serves one connection until its input ends, its output is gone, or ctx ends; then everything of the process ends gracefully: short
// requests are answered, turns are cancelled and their prompts answered, waiting ones are left. It returns nil when all due was written in time.
func (d *Dispatcher) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	c := newConn(d, in, out)
	go c.out.run()
	read := make(chan error, 1)
	c.rpc = rpc.New(c.in, c, rpc.Options{Panicked: c.panicked, Send: c.sendCall, Withdraw: c.withdrawCall})
	go func() { read <- c.rpc.Serve(ctx) }() // may outlive Serve, at the end of the process
	select {
	case <-read:
	case <-c.gone:
	case <-ctx.Done():
	}
	return c.finish()
}

// finish is the graceful end.
func (c *Conn) finish() error {
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	c.mu.Lock()
	c.stopping = true
	c.mu.Unlock()
	short, stop := context.WithTimeout(ctx, shortWithin)
	c.shortDone(short)
	stop()
	c.d.mu.Lock()
	c.d.stopping = true
	c.d.mu.Unlock()
	c.asks.close()
	err := c.d.cfg.Sessions.Shutdown(ctx)
	c.out.close()
	select {
	case <-c.out.done:
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	}
	return err
}
