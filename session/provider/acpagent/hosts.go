package acpagent

import (
	"context"
	"log/slog"
	"os"
	"sync"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

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
