package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// server is one configured server over all its connections.
type server struct {
	cfg   *Config
	name  string
	raw   json.RawMessage // its entry as it was read
	entry entry
	log   *slog.Logger
	ctx   context.Context // ends with the set, or when the server is not among its entries any more
	stop  context.CancelFunc
	stale chan struct{} // of room for one: its list of tools has changed
	doze  chan struct{} // of room for one: the connection is to end, as nobody has its tools
	need  chan struct{} // of room for one: a server that is parked is to start

	mu      sync.Mutex // guards what follows
	state   string
	reason  string // of a state that is not ready; one line
	tools   []*tool
	more    int       // tools it has beside those, as far as they were counted
	self    string    // what the server calls itself
	peer    *peer     // nil while not connected
	begun   time.Time // when it was first started
	changed chan struct{}
	first   chan struct{} // closed once it has connected or failed to
	tried   bool
	uses    int         // turns and calls that have its tools
	used    time.Time   // when there was last one
	timer   *time.Timer // of its rest
	resting bool        // it was told to doze, and nothing has needed it since
	parked  time.Time   // since when it waits for somebody to ask again, having failed; zero when it does not
	retired bool
}

func newServer(ctx context.Context, c *Config, name string, raw json.RawMessage) *server {
	s := &server{
		cfg: c, name: name, raw: raw, log: c.Log.With("mcp_server", clean(name, 80)), stale: make(chan struct{}, 1), doze: make(chan struct{}, 1),
		need: make(chan struct{}, 1), state: StateStarting, changed: make(chan struct{}), first: make(chan struct{}), used: time.Now(),
	}
	s.ctx, s.stop = context.WithCancel(ctx)
	s.timer = time.AfterFunc(c.rest, s.tire)
	var err error
	if s.entry, err = readEntry(raw, c); err != nil {
		s.state, s.reason = StateFailed, fmt.Sprintf("mcpServers.%s: %s", clean(name, 80), err)
		s.log.Warn("mcp server cannot be used", "err", err)
	} else if s.entry.disabled {
		s.state = StateDisabled
	}
	if s.state != StateStarting {
		s.tried = true
		close(s.first)
	}
	c.Secrets(s.entry.secrets...)
	return s
}

// quiet is a text of the server's, or about it, without what may not be in a log, on one line of at most n characters.
func (s *server) quiet(text string, n int) string { return clean(s.entry.quiet.Replace(text), n) }

// set changes the state and wakes who waits for that.
func (s *server) set(state, reason string) {
	s.mu.Lock()
	s.put(state, s.quiet(reason, 500))
	s.mu.Unlock()
	s.cfg.changed(s)
}

// put changes the state; s.mu is held.
func (s *server) put(state, reason string) {
	s.state, s.reason = state, reason
	if state == StateFailed || state == StateDisabled {
		s.tools, s.more = nil, 0
	}
	if state != StateStarting && !s.tried {
		s.tried = true
		close(s.first)
	}
	if state == StateReady && s.uses == 0 {
		s.timer.Reset(s.cfg.rest)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// use says that somebody has the server's tools, until done is called: it does not rest meanwhile, nor end because its entry is gone.
func (s *server) use() (done func()) {
	s.mu.Lock()
	s.uses++
	s.timer.Stop()
	s.mu.Unlock()
	return sync.OnceFunc(func() {
		s.mu.Lock()
		s.uses--
		s.used = time.Now()
		if s.uses == 0 {
			s.timer.Reset(s.cfg.rest)
		}
		gone := s.uses == 0 && s.retired
		s.mu.Unlock()
		if gone {
			s.stop()
		}
	})
}

// retire ends the server once nobody has its tools.
func (s *server) retire() {
	s.mu.Lock()
	s.retired = true
	gone := s.uses == 0
	s.mu.Unlock()
	if gone {
		s.stop()
	}
}

// tire lets a server rest that nobody has had the tools of for a while. They stay offered.
func (s *server) tire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses > 0 || s.state != StateReady {
		return
	}
	s.peer, s.resting = nil, true
	s.put(StateResting, "")
	signal(s.doze)
}

// unused reports whether nobody has had the server's tools for a while.
func (s *server) unused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uses == 0 && time.Since(s.used) >= s.cfg.rest
}

// askAgain lets a server that was given up try once more, if that is not just over.
func (s *server) askAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.parked.IsZero() && time.Since(s.parked) >= s.cfg.again {
		s.parked = time.Time{}
		signal(s.need)
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// offered are the tools of a server that is connected, that rests, or that is being restarted, and how many it has beside them.
func (s *server) offered() (tools []*tool, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != StateReady && s.state != StateRestarting && s.state != StateResting {
		return nil, 0
	}
	return s.tools, s.more
}

// awaitFirst waits until the server has connected or failed to once, or ctx ends, or for a within that is not 0 until its start is that long ago.
func (s *server) awaitFirst(ctx context.Context, within time.Duration) {
	if within > 0 {
		s.mu.Lock()
		begun := s.begun
		s.mu.Unlock()
		if begun.IsZero() {
			begun = time.Now()
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, begun.Add(within))
		defer cancel()
	}
	select {
	case <-s.first:
	case <-ctx.Done():
	}
}

// errDown says that a server is not there and will not be soon.
type errDown struct{ reason string }

func (e *errDown) Error() string { return e.reason }

// await waits until the server is connected, and starts one that rests: *errDown when it has failed, or the cause of ctx.
func (s *server) await(ctx context.Context) (*peer, error) {
	for {
		s.mu.Lock()
		state, reason, p := s.state, s.reason, s.peer
		if state == StateResting {
			s.put(StateRestarting, "")
			signal(s.need)
		}
		changed := s.changed
		s.mu.Unlock()
		switch {
		case state == StateReady && p != nil:
			if p.why() == nil {
				return p, nil
			}
		case state == StateFailed || state == StateDisabled:
			return nil, &errDown{reason}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{
		Name: s.name, State: s.state, Transport: s.entry.transport(), Where: s.entry.where(), Server: s.self, Tools: []string{}, Error: s.reason,
	}
}
