// Package acpagent hosts agents that speak the Agent Client Protocol as children of ours (docs/protocol/acp.md section 5): a child has its own
// loop and tools, so it answers whole turns, and what it says becomes facts of our log. It serves the child files and terminals inside the
// workspace, and puts its requests for consent to the person.
//
// It promises: a child never gets a variable of our environment that section 5.1 does not name; what it says is in the log before anybody is told;
// every turn ends within a bound, whatever the child does; nothing it writes brings us down; no process is left when a session or the runtime
// ends; a session that comes back goes on with the child's own session where it can, else with a summary of the log.
//
// Goroutines of a child: one reads what it says and turns it into facts, one writes to it, one awaits its end, one per request of the child that
// takes time, at most 64, and while it answers one that gives it steering, where it takes that. All end with the child. A host (the child of one session over its restarts) owns none but timers; Hosts.Close and
// Hosts.Forget end the children. A turn runs on its caller's goroutine.
package acpagent

import (
	"context"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
)

// Spec says which agent to host.
type Spec struct {
	Provider   string // the name sessions are set to
	Command    string // in PATH, or absolute
	Args       []string
	Env        map[string]string // set for the child
	PassEnv    []string          // names of our variables it gets too
	AuthMethod string            // id of the way to authenticate before the first session; "" for none
	FS         bool              // it may read and write files through us
	Terminal   bool              // it may run commands through us
}

// id tells specs apart: a child that was started with another one is not used again.
func (s *Spec) id() string {
	var b strings.Builder
	for _, w := range append([]string{s.Provider, s.Command, s.AuthMethod}, s.Args...) {
		b.WriteString(w + "\x00")
	}
	for _, k := range sortedKeys(s.Env) {
		b.WriteString(k + "=" + s.Env[k] + "\x00")
	}
	b.WriteString(strings.Join(s.PassEnv, ","))
	if s.FS {
		b.WriteString("\x00fs")
	}
	if s.Terminal {
		b.WriteString("\x00terminal")
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Config is what hosts stand on. Children is required.
type Config struct {
	Children *proc.Children
	Environ  func() []string // our environment; nil is os.Environ
	Policy   session.Policy  // judges writes and commands; nil asks for all of them
	Images   session.Images  // keeps what files held before; may be nil
	Redact   func(string) string
	Log      *slog.Logger
	Version  string
	Roots    func(workspace string) []string // nil: the workspace alone
	// Servers are the tool servers of a session, told to its child; nil for none. It must not block for long.
	Servers func(id session.SessionID, workspace string) []Server
	Private []string // folders commands that only read may not see
	// Unattended: nobody can be asked.
	Unattended bool
	// Memory keeps what is known of agents over the end of the process; nil for none.
	Memory Memory

	times times // of tests
}

// Memory keeps what is known of agents, by what starts them. Safe for concurrent use; what cannot be kept is lost.
type Memory interface {
	Recall(spec Spec) (Known, bool)
	Keep(spec Spec, k Known)
}

// times are the bounds of section 5.
type times struct {
	initialize, open, quiet, cancel, shutdown, idle, stall, late, window, blocked, progress, closing time.Duration
}

var usual = times{
	initialize: time.Minute, open: 2 * time.Minute, quiet: 250 * time.Millisecond, cancel: 5 * time.Second, shutdown: 300 * time.Millisecond,
	idle: 10 * time.Minute, stall: 10 * time.Minute, late: 2 * time.Second, window: time.Minute, blocked: 30 * time.Second,
	progress: 250 * time.Millisecond, closing: time.Second,
}

// crashes that many in a window fail the next prompts at once.
const crashes = 3

// Hosts are the hosted agents of one process, one child per session. Safe for concurrent use.
type Hosts struct {
	cfg Config
	all *session.Sessions // set by Attach

	mu     sync.Mutex // guards what follows; never held over I/O
	of     map[session.SessionID]*host
	seen   map[string]Known // by spec; without a time where nothing is known
	closed bool
	ending sync.WaitGroup // children that are being ended
}

// Known is what is known of an agent from its newest child.
type Known struct {
	Name     string              `json:"name"` // with its version
	At       time.Time           `json:"at"`
	Manifest map[string]string   `json:"manifest"` // capability -> native, emulated, degraded, unsupported
	Images   *bool               `json:"images"`   // whether it takes images; nil until it ran
	Models   []session.ModelInfo `json:"models"`
	Efforts  []string            `json:"efforts"` // of whatever model it chooses
	Commands []string            `json:"commands"`
}

// New makes hosts. Nothing is started before the first turn.
func New(cfg Config) *Hosts {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Environ == nil {
		cfg.Environ = os.Environ
	}
	if cfg.Redact == nil {
		cfg.Redact = func(s string) string { return s }
	}
	if cfg.Roots == nil {
		cfg.Roots = func(workspace string) []string { return []string{workspace} }
	}
	if cfg.Servers == nil {
		cfg.Servers = func(session.SessionID, string) []Server { return nil }
	}
	if cfg.times == (times{}) {
		cfg.times = usual
	}
	return &Hosts{cfg: cfg, of: map[session.SessionID]*host{}, seen: map[string]Known{}}
}

// Attach tells the hosts which sessions they work for: what an agent says outside a turn goes there. Call it before the first turn.
func (h *Hosts) Attach(all *session.Sessions) { h.all = all }

// Known returns what is known of the agent of a spec, in this process or from before; false when it never ran.
func (h *Hosts) Known(spec Spec) (Known, bool) {
	h.mu.Lock()
	k, ok := h.seen[spec.id()]
	h.mu.Unlock()
	if ok || h.cfg.Memory == nil {
		return k, ok && !k.At.IsZero()
	}
	k, _ = h.cfg.Memory.Recall(spec)
	h.mu.Lock()
	defer h.mu.Unlock()
	if newer, ok := h.seen[spec.id()]; ok {
		k = newer
	} else {
		h.seen[spec.id()] = k
	}
	return k, !k.At.IsZero()
}

// About tells what is known of the agent of a spec, and of its commands in a session.
func (h *Hosts) About(id session.SessionID, spec Spec) session.HostedAgent {
	a := session.HostedAgent{Provider: spec.Provider, Manifest: unseen(&spec)}
	if k, ok := h.Known(spec); ok {
		a.Name, a.Seen, a.Manifest, a.Commands = k.Name, k.At, k.Manifest, k.Commands
	}
	h.mu.Lock()
	ho := h.of[id]
	h.mu.Unlock()
	if ho != nil {
		ho.mu.Lock()
		defer ho.mu.Unlock()
		if ho.commands != nil {
			a.Commands = ho.commands
		}
	}
	return a
}

// keepFor is how long what is known is not written again where it did not change.
const keepFor = time.Hour

func (h *Hosts) learn(spec Spec, k Known) {
	k.At = time.Now().UTC().Truncate(time.Second)
	h.mu.Lock()
	before := h.seen[spec.id()]
	h.seen[spec.id()] = k
	h.mu.Unlock()
	fresh := k.At.Sub(before.At) < keepFor
	before.At = k.At
	if h.cfg.Memory != nil && !(fresh && reflect.DeepEqual(before, k)) {
		h.cfg.Memory.Keep(spec, k)
	}
}

// Turn answers a turn with the agent that spec names; see session.Agent.
func (h *Hosts) Turn(ctx context.Context, spec Spec, t *session.Turn) (string, error) {
	said, err := t.Said()
	if err != nil {
		return "", err
	}
	if said.Operation == protocol.OpCompact { // of a session that was set to the agent meanwhile
		return "", fail(protocol.FailRejected, "A hosted agent keeps its own context.")
	}
	ho, err := h.host(t.Session())
	if err != nil {
		return "", err
	}
	stop, err := ho.turn(ctx, spec, t, &said)
	if f, ok := err.(*session.Failure); ok && said.Surface == protocol.SurfacePortable { //nolint:errorlint // ours, as it was made
		c := *f
		c.Message = "Hosted agent failed: " + f.Message
		err = &c
	}
	return stop, err
}

// host returns the host of a session.
func (h *Hosts) host(id session.SessionID) (*host, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, fail(protocol.FailUnavailable, "The runtime is shutting down.")
	}
	ho := h.of[id]
	if ho == nil {
		ho = newHost(h, id)
		h.of[id] = ho
	}
	return ho, nil
}

// Forget ends the child of a session that is not open any more. It does not wait.
func (h *Hosts) Forget(id session.SessionID) {
	h.mu.Lock()
	ho := h.of[id]
	delete(h.of, id)
	if ho == nil || h.closed {
		h.mu.Unlock()
		return
	}
	h.ending.Add(1)
	h.mu.Unlock()
	go func() { // ends when the child has: within its grace, or what is left is killed
		defer h.ending.Done()
		ho.close(h.cfg.times.closing)
	}()
}

// Close ends all children and returns when they are gone. No turn may run any more.
func (h *Hosts) Close() {
	h.mu.Lock()
	h.closed = true
	all := h.of
	h.of = map[session.SessionID]*host{}
	h.mu.Unlock()
	for _, ho := range all {
		h.ending.Add(1)
		go func() {
			defer h.ending.Done()
			ho.close(h.cfg.times.shutdown)
		}()
	}
	h.ending.Wait()
}

// fail is the failure of a turn by its agent.
func fail(kind, text string) *session.Failure {
	f := &session.Failure{Type: kind, Status: "failed", Source: "provider", Message: text}
	switch kind {
	case protocol.FailUnavailable:
		f.Status = "unavailable"
	case protocol.FailStalled, protocol.FailTimeout:
		f.Status = "timed_out"
	case protocol.FailConfiguration, protocol.FailRejected:
		f.Status = "rejected"
	}
	return f
}
