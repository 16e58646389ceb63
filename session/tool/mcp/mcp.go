// Package mcp offers the tools of servers of the Model Context Protocol as mcp__SERVER__TOOL (docs/mcp.md). It is a client of the parts
// that tools need, over a child's standard streams or streamable HTTP: initialize, tools/list, tools/call, list_changed, progress,
// cancelled, logging, ping, roots. What servers say is material, whoever wrote it: bounded, cleaned, never trusted with a decision.
//
// A Roster knows the servers of each workspace and of each session, and which of them a turn has. Each set of them, Servers, owns a goroutine
// per server, which connects, lists, lets it rest while nobody has its tools, and connects again; a connection owns those that write to it and
// await its end (over HTTP one per request and one that listens). Close ends them all and waits for them. Nothing is started before Start, or a
// turn.
package mcp

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"os"
	"time"

	"github.com/rind-dev/rind/session/proc"
)

// Bounds (docs/mcp.md).
const (
	maxMessage     = 16 << 20 // bytes of one message
	maxTools       = 100      // of one server, and of a turn: some providers take 128 in all, ours among them
	maxPages       = 256      // of one tool list
	maxSchema      = 64 << 10 // bytes
	maxDescription = 1024     // characters
	maxAttached    = 8 << 20  // bytes of one result's attachments

	defaultTimeout = time.Minute      // of a call without progress
	longestCall    = 10 * time.Minute // of a call that tells progress
	startTimeout   = time.Minute      // from the start of a server to its list of tools
	turnWait       = 10 * time.Second // from its start that turns wait for a server
	restAfter      = 10 * time.Minute // without a turn that has its tools
	askAgain       = time.Minute      // before a server that was given up is tried once more

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
	Wait     time.Duration  // from its start that turns wait for a server; 0 is 10 s
	Lazy     bool           // servers that a client names start when a turn has their tools, not before
	// Secrets is told the values that no log may hold, when entries are read; may be nil.
	Secrets func(values ...string)

	second   time.Duration // of the pauses between restarts; 0 is a real one
	message  int           // bytes of a message; 0 is maxMessage
	attached int           // bytes of a result's attachments; 0 is maxAttached
	starts   time.Duration // 0 is startTimeout
	rest     time.Duration // 0 is restAfter
	again    time.Duration // 0 is askAgain
	call     time.Duration // 0 is longestCall
	changed  func(*server) // told when a server's state has changed; may be nil
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
	c.rest = cmp.Or(c.rest, restAfter)
	c.again = cmp.Or(c.again, askAgain)
	c.call = cmp.Or(c.call, longestCall)
	if c.changed == nil {
		c.changed = func(*server) {}
	}
	if c.Secrets == nil {
		c.Secrets = func(...string) {}
	}
	return c
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
	StateResting    = "resting"    // nobody has had its tools for a while: it starts again when one is called
	StateRestarting = "restarting" // it was lost, and will be started again
	StateFailed     = "failed"
)
