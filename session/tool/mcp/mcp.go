// Package mcp offers the tools of servers of the Model Context Protocol as mcp__SERVER__TOOL (docs/mcp.md). It is a client of the parts
// that tools need, over a child's standard streams or streamable HTTP: initialize, tools/list, tools/call, list_changed, progress,
// cancelled, logging, ping, roots. What servers say is material, whoever wrote it: bounded, cleaned, never trusted with a decision.
//
// Servers owns a goroutine per server, which connects, lists, and connects again; a connection owns those that write to it and await its
// end (over HTTP one per request and one that listens). Close ends them all and waits for them. Nothing is started before Start.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
)

// Bounds (docs/mcp.md).
const (
	maxMessage     = 16 << 20 // bytes of one message
	maxTools       = 128      // of one server
	maxPages       = 256      // of one tool list
	maxSchema      = 64 << 10 // bytes
	maxDescription = 1024     // characters
	maxAttached    = 8 << 20  // bytes of one result's attachments

	defaultTimeout = time.Minute      // of a call without progress
	longestCall    = 10 * time.Minute // of a call that tells progress
	startTimeout   = time.Minute      // from the start of a server to its list of tools
	turnWait       = 2 * time.Second  // that turns wait for servers that start

	restarts      = 5 // within restartWindow
	restartWindow = 10 * time.Minute
	longestPause  = 30 // seconds between restarts
)

// Config says which servers there are. Only Servers is needed for servers that are reached over HTTP.
type Config struct {
	// Servers are the entries of mcpServers by name, as the settings have them.
	Servers  map[string]json.RawMessage
	Children *proc.Children // starts servers that are programs
	Log      *slog.Logger   // nil: nothing is logged
	Dir      string         // workspace, absolute: where servers run, and the root they are told of
	Env      []string       // "NAME=value", what $NAME stands for and children get a part of; nil is the process's own
	Literal  bool           // entries name no variables: they come from a client, not from a file
	Version  string         // of this program, told to servers
	Wait     time.Duration  // that the first turn waits for servers that start; 0 is 2 s

	second   time.Duration // of the pauses between restarts; 0 is a real one
	message  int           // bytes of a message; 0 is maxMessage
	attached int           // bytes of a result's attachments; 0 is maxAttached
	starts   time.Duration // 0 is startTimeout
}

func (c Config) filled() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Env == nil {
		c.Env = os.Environ()
	}
	c.Version = cmp.Or(c.Version, "dev")
	c.second = cmp.Or(c.second, time.Second)
	c.message = cmp.Or(c.message, maxMessage)
	c.attached = cmp.Or(c.attached, maxAttached)
	c.starts = cmp.Or(c.starts, startTimeout)
	c.Wait = cmp.Or(c.Wait, turnWait)
	return c
}

// Servers are the configured servers. Safe for concurrent use.
type Servers struct {
	cfg  Config
	all  []*server // sorted by name
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex // guards what follows
	begun  bool
	closed bool
	waited bool // a turn has waited as long as one may
}

// New reads the entries. It starts nothing, and an entry that cannot be used is the state of that server only.
func New(c Config) *Servers {
	s := &Servers{cfg: c.filled()}
	s.ctx, s.stop = context.WithCancel(context.Background())
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		s.all = append(s.all, newServer(&s.cfg, name, c.Servers[name]))
	}
	return s
}

// Start connects to the servers in the background. Further calls do nothing.
func (s *Servers) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun || s.closed {
		return
	}
	s.begun = true
	for _, one := range s.all {
		s.wg.Go(func() { one.live(s.ctx) })
	}
}

// Tools are those of the servers that are connected, and of those that were and are being restarted, sorted by name. It starts the servers;
// the first call waits up to Config.Wait for those that are not connected yet, later ones go without. It never fails.
func (s *Servers) Tools(ctx context.Context) []session.Tool {
	s.Start()
	s.mu.Lock()
	waited := s.waited
	s.mu.Unlock()
	if !waited {
		wait, cancel := context.WithTimeout(ctx, s.cfg.Wait)
		s.Wait(wait)
		cancel()
		if ctx.Err() == nil {
			s.mu.Lock()
			s.waited = true
			s.mu.Unlock()
		}
	}
	var found []*tool
	for _, one := range s.all {
		found = append(found, one.offered()...)
	}
	return named(found)
}

// Wait waits until each server has connected or failed to once, or ctx ends.
func (s *Servers) Wait(ctx context.Context) {
	for _, one := range s.all {
		one.awaitFirst(ctx)
	}
}

// Status is how a server fares.
type Status struct {
	Name      string   `json:"name"`
	State     string   `json:"state"`           // StateReady …
	Transport string   `json:"transport"`       // stdio, http; "" when the entry says neither
	Where     string   `json:"where"`           // command or address, without arguments and keys
	Server    string   `json:"server"`          // what it calls itself
	Tools     []string `json:"tools"`           // as the model is offered them; never nil
	Error     string   `json:"error,omitempty"` // one line
}

// States of a server.
const (
	StateDisabled   = "disabled"
	StateStarting   = "starting"
	StateReady      = "ready"
	StateRestarting = "restarting" // it was lost, and will be started again
	StateFailed     = "failed"
)

// List tells how the servers fare, sorted by name.
func (s *Servers) List() []Status {
	list := make([]Status, 0, len(s.all))
	var found []*tool
	for _, one := range s.all {
		list = append(list, one.status())
		found = append(found, one.offered()...)
	}
	for _, t := range named(found) {
		for i := range list {
			if own := t.(*namedTool); own.server.name == list[i].Name {
				list[i].Tools = append(list[i].Tools, own.name)
			}
		}
	}
	return list
}

// Secrets are the values of the entries that no log may hold.
func (s *Servers) Secrets() []string {
	var all []string
	for _, one := range s.all {
		all = append(all, one.entry.secrets...)
	}
	return all
}

// Close ends the servers: asked first, killed after a second, or at once when Children refuses new ones. Calls in flight fail.
func (s *Servers) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.wg.Wait()
}
