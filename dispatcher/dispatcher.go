// Package dispatcher connects clients to sessions: a RuntimeDispatcher reads framed requests, checks them, hands them to the sessions in
// reading order, and its connections' outboxes write replies and events. It keeps no event: what a client has to be told lies in the
// sessions' logs.
//
// Goroutines: per connection a reader (the caller of Serve, on jsonrpc2's read pump) and an outbox; a few short ones for methods that read
// files, providers or long pages of a log, which end with their answer.
package dispatcher

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/frame"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/protocol/rpc"
	"github.com/rind-dev/rind/session"
)

// Provider is one row of initialize's and rind/auth/list's providers.
type Provider = rindv2.Provider

// Setup is what commands and initialize show of the settings.
type Setup struct {
	SettingsFound bool
	KeySet        bool
	BaseURL       string
}

// Config is what a dispatcher is made of. Sessions and Workspace are required.
type Config struct {
	Sessions  *session.Sessions
	Workspace string
	Version   string
	Session   session.SessionID // of --session, "" for none
	Latest    bool              // -c
	Providers func() []Provider
	Setup     func() Setup
	HasDoc    func(workspace string) bool
	Log       *slog.Logger
	ErrorID   func(err error) string
	// Resolve turns a workspace named by a client into an absolute path; its error is told.
	Resolve func(path string) (string, error)
	Now     func() time.Time

	DataRoot string         // folder of the user's own RIND.md
	Guide    session.Guide  // nil: nothing
	Policy   session.Policy // for /permissions; may be nil
	Undo     session.Undo   // for /undo; may be nil
	Sandbox  string         // what commands run in, in words; "" says nothing
	// Trust trusts a workspace as it is now, and names the files that this enables; its error is told.
	Trust func(workspace string) ([]string, error)

	Auth    Auth    // nil: nobody logs in here
	Folders Folders // nil: folders have no defaults here

	Executions *executions.Commands // nil: there are no providers
}

// RuntimeDispatcher serves connections. Safe for concurrent use.
type RuntimeDispatcher struct {
	cfg Config

	mu       sync.Mutex // guards stopping and conns
	stopping bool
	conns    map[*Conn]bool
	end      chan struct{} // closed when the end has begun
}

// New makes a dispatcher.
func New(cfg Config) *RuntimeDispatcher {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ErrorID == nil {
		cfg.ErrorID = func(error) string { return protocol.RandomIDs{}.Hex32() }
	}
	if cfg.Providers == nil {
		cfg.Providers = func() []Provider { return []Provider{} }
	}
	if cfg.Setup == nil {
		cfg.Setup = func() Setup { return Setup{} }
	}
	if cfg.Guide == nil {
		cfg.Guide = session.PlainGuide("")
	}
	if cfg.HasDoc == nil {
		cfg.HasDoc = func(string) bool { return false }
	}
	if cfg.Resolve == nil {
		cfg.Resolve = func(p string) (string, error) { return p, nil }
	}
	if cfg.Executions == nil {
		cfg.Executions = executions.New(executions.Config{Sessions: cfg.Sessions, Version: cfg.Version})
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &RuntimeDispatcher{cfg: cfg, conns: map[*Conn]bool{}, end: make(chan struct{})}
}

func (d *RuntimeDispatcher) log() *slog.Logger { return d.cfg.Log }

func (d *RuntimeDispatcher) stopped() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopping
}

// internal makes the answer to an unexpected error; its details go to the log file only.
func (d *RuntimeDispatcher) internal(err error) *protocol.Error {
	return outlet.Internal(d.cfg.ErrorID(err), err)
}

// wire makes any error one that a client is told.
func (d *RuntimeDispatcher) wire(err error) *protocol.Error {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e
	}
	return d.internal(err)
}

// endWithin is how long the graceful end may take in all (docs/protocol/rind-v2.md section 1.4).
const endWithin = 900 * time.Millisecond

// writeWithin is what is left of that to write what is due, whatever the end itself comes to.
const writeWithin = 100 * time.Millisecond

// How long requests that were read before the end are given for their answers, before the sessions they ask are ended and behind that: together
// with the end itself within endWithin, and with time left to write.
const (
	answerFirst = 100 * time.Millisecond
	answerLast  = 300 * time.Millisecond
)

// Options of one connection.
type Options struct {
	Envelope *rindv2.Envelope // nil: the first frame decides
}

// Serve serves one connection until its input ends, its output is gone, shutdown was answered, or ctx ends; then everything of the process
// ends gracefully. It returns nil when all due was written in time, ShutdownFailed when that was the answer to shutdown.
func (d *RuntimeDispatcher) Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	c := newConn(d, in, out)
	if o.Envelope != nil {
		c.env, c.decided = *o.Envelope, true
	}
	d.mu.Lock()
	d.conns[c] = true
	d.mu.Unlock()
	go c.out.Run()
	read := make(chan error, 1)
	go func() { // a blocking read of standard input cannot be interrupted: this goroutine may outlive Serve, at the end of the process
		if how, _, err := c.in.Sniff(1); err == nil && how == frame.Headers && (o.Envelope == nil || *o.Envelope == rindv2.JSONRPC) { // a forced rind v2 has lines only
			c.mu.Lock()
			c.env, c.how, c.decided = rindv2.JSONRPC, frame.Headers, true
			c.mu.Unlock()
			c.in.SetFraming(frame.Headers)
		}
		c.asks.conn = rpc.New(c.in, c, rpc.Options{Panicked: c.panicked, Send: c.sendCall, Withdraw: c.withdrawCall, Grace: time.Millisecond})
		read <- c.asks.conn.Serve(ctx)
	}()
	select {
	case <-read:
	case <-c.out.Done(): // nobody reads any more
	case <-ctx.Done():
	case <-d.end:
	}
	return d.finish(c)
}

// finish is the graceful end: no new work, running turns cancelled, terminals recorded, what is due written.
func (d *RuntimeDispatcher) finish(c *Conn) error {
	d.mu.Lock()
	d.stopping = true
	delete(d.conns, c)
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	work, stop := context.WithTimeout(ctx, endWithin-writeWithin)
	defer stop()
	asked := c.endQuestions()
	c.out.Rest(work, answerFirst) // they may open sessions, which nobody can any more behind Shutdown
	err := d.cfg.Sessions.Shutdown(work)
	c.out.Rest(work, answerLast)
	select {
	case <-asked:
	case <-work.Done():
	}
	return errors.Join(c.finalAnswer(err), c.out.Drain(ctx))
}

// shutdown begins the end of the process; k is answered last.
func (d *RuntimeDispatcher) shutdown(k *call) {
	k.c.mu.Lock()
	k.c.stopping, k.c.final = true, k
	k.c.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.stopping {
		d.stopping = true
		close(d.end)
	}
}

// finalAnswer answers shutdown, if it was asked for, as the last line; err says how the end went, and is what is returned, as it was told.
func (c *Conn) finalAnswer(err error) error {
	c.mu.Lock()
	k := c.final
	c.mu.Unlock()
	if k == nil {
		return err
	}
	if err != nil {
		err = &protocol.Error{Kind: protocol.ShutdownFailed, Message: "The log could not be written to its end.", Cause: err}
	}
	k.At(&outlet.Hold{Last: true, Reply: func(outlet.Stream) (any, error) { return okResult, err }})
	return err
}
