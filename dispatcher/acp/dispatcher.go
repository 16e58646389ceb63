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

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/protocol/frame"
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

	Servers Servers // that clients name for their sessions; nil: none are started

	Policy session.Policy // for /permissions; may be nil
	Undo   session.Undo   // for /undo; may be nil
	Guide  session.Guide  // for /skill; may be nil
	// Trust trusts a workspace with what it enables now, and names the files of that; for /trust, may be nil.
	Trust    func(workspace string) ([]string, error)
	DataRoot string // for /init user; "" for none

	// FileSize tells how long a regular file in one of the roots is; false for what is none or lies outside, also by a link. nil: it is not known.
	FileSize func(roots []string, path string) (bytes int64, ok bool)

	// ClientFiles and ClientTerminal report whether an editor's own files and terminals are used where it offers them (the settings of these
	// names); nil: they are not.
	ClientFiles, ClientTerminal func() bool

	MaxLine  int  // bytes of the longest line read; 0 for frame.MaxBytes
	Unstable bool // session/fork is offered
	Draft    bool // a client that asks for version 2 is answered with it
}

// Dispatcher serves connections. Safe for concurrent use.
type Dispatcher struct {
	cfg    Config
	models *models
	sweep  sweep

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
	if cfg.MaxLine <= 0 {
		cfg.MaxLine = frame.MaxBytes
	}
	never := func() bool { return false }
	if cfg.ClientFiles == nil {
		cfg.ClientFiles = never
	}
	if cfg.ClientTerminal == nil {
		cfg.ClientTerminal = never
	}
	if cfg.Images == nil {
		cfg.Images = never
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
	return outlet.Internal(d.cfg.ErrorID(err), err)
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

// unpromptedFor is how long a session lives that was opened and never prompted (docs/protocol/acp.md section 2.2).
const unpromptedFor = 24 * time.Hour

// sweep removes sessions that were never prompted, once in the life of a process, beside everything else. One goroutine; close ends it.
type sweep struct {
	once sync.Once
	done chan struct{}
	stop context.CancelFunc
}

func (d *Dispatcher) sweepOnce() {
	d.sweep.once.Do(func() {
		ctx, stop := context.WithCancel(context.Background())
		d.sweep.done, d.sweep.stop = make(chan struct{}), stop
		go func() {
			defer close(d.sweep.done)
			n, err := d.cfg.Sessions.SweepUnprompted(ctx, time.Now().Add(-unpromptedFor))
			if err != nil && ctx.Err() == nil || n > 0 {
				d.cfg.Log.Info("sessions without a prompt", "removed", n, "err", err)
			}
		}()
	})
}

// close ends the goroutine and waits for it; nothing is started any more.
func (s *sweep) close() {
	s.once.Do(func() {})
	if s.stop != nil {
		s.stop()
		<-s.done
	}
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
	go c.out.Run()
	read := make(chan error, 1)
	c.rpc = rpc.New(c.in, c, rpc.Options{Panicked: c.panicked, Send: c.sendCall, Withdraw: c.withdrawCall})
	go func() { read <- c.rpc.Serve(ctx) }() // may outlive Serve, at the end of the process
	select {
	case <-read:
	case <-c.out.Done(): // nobody reads any more
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
	c.requests.Wait(short, c.out.Done(), func(k *call) bool { return !k.long })
	stop()
	c.d.mu.Lock()
	c.d.stopping = true
	c.d.mu.Unlock()
	c.asks.close()
	c.d.sweep.close()
	err := c.d.cfg.Sessions.Shutdown(ctx)
	return errors.Join(err, c.out.Drain(ctx))
}
