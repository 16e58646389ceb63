package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// protocolVersion is the newest version of the protocol that is spoken; older ones differ in nothing that is used here.
const protocolVersion = "2025-11-25"

// lasting marks an error that trying again does not cure.
type lasting struct{ error }

func (e *lasting) Unwrap() error { return e.error }

// server is one configured server over all its connections.
type server struct {
	cfg   *Config
	name  string
	entry entry
	log   *slog.Logger
	stale chan struct{} // of room for one: its list of tools has changed

	mu      sync.Mutex // guards what follows
	state   string
	reason  string // of a state that is not ready; one line
	tools   []*tool
	self    string // what the server calls itself
	peer    *peer  // nil while not connected
	changed chan struct{}
	first   chan struct{} // closed once it has connected or failed to
	tried   bool
}

func newServer(c *Config, name string, raw json.RawMessage) *server {
	s := &server{
		cfg: c, name: name, log: c.Log.With("mcp_server", clean(name, 80)), stale: make(chan struct{}, 1),
		state: StateStarting, changed: make(chan struct{}), first: make(chan struct{}),
	}
	var err error
	if s.entry, err = readEntry(raw, c); err != nil {
		s.set(StateFailed, fmt.Sprintf("mcpServers.%s: %s", clean(name, 80), err))
		s.log.Warn("mcp server cannot be used", "err", err)
	} else if s.entry.disabled {
		s.set(StateDisabled, "")
	}
	return s
}

// set changes the state and wakes who waits for that.
func (s *server) set(state, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.reason = state, clean(s.entry.hide.Replace(reason), 500)
	if state == StateFailed || state == StateDisabled {
		s.tools = nil
	}
	if state != StateStarting && !s.tried {
		s.tried = true
		close(s.first)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// live connects, and again whenever the connection is lost, until ctx ends.
func (s *server) live(ctx context.Context) {
	if s.status().State != StateStarting { // it is disabled, or its entry cannot be used
		return
	}
	var starts []time.Time // those that count against restarts, oldest first
	fails := 0
	for {
		began := time.Now()
		starts = append(starts, began)
		err := s.connected(ctx)
		if ctx.Err() != nil {
			s.set(StateFailed, "the runtime is shutting down")
			return
		}
		s.log.Warn("mcp server is not connected", "err", clean(s.entry.hide.Replace(err.Error()), 250))
		if _, ok := errors.AsType[*lasting](err); ok {
			s.set(StateFailed, err.Error())
			return
		}
		if fails++; time.Since(began) > time.Minute {
			fails = 1
		}
		wait := time.Duration(min(1<<min(fails-1, 10), longestPause)) * s.cfg.second
		state := StateRestarting
		for len(starts) > 0 && time.Since(starts[0]) > restartWindow/time.Second*s.cfg.second {
			starts = starts[1:]
		}
		if len(starts) > restarts { // too often: not before the oldest start is out of sight
			wait, state = time.Until(starts[0].Add(restartWindow/time.Second*s.cfg.second)), StateFailed
			s.log.Warn("mcp server fails again and again", "restarts", restarts, "next_in", wait.Round(time.Second))
		} else if !s.wasReady() {
			state = StateFailed
		}
		s.set(state, err.Error())
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

func (s *server) wasReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.self != ""
}

// connected is one connection, from its start to its end; the error says why it is none any more.
func (s *server) connected(ctx context.Context) error {
	p := newPeer(s.log, s.cfg.message)
	p.request, p.notice = s.answer, s.notice
	if s.entry.url != nil {
		p.link = newRemote(p, &s.entry, s.cfg.Version)
	} else {
		p.link = newChild(p, &s.entry, s.cfg)
	}
	defer func() {
		s.mu.Lock()
		s.peer = nil
		s.mu.Unlock()
		p.end(errors.New("the connection was closed"))
		p.link.close()
	}()
	began, before := time.Now(), -1
	if err := p.link.start(); err != nil {
		return err
	}
	if err := s.bounded(ctx, func(ctx context.Context) error { return s.shake(ctx, p) }); err != nil {
		return err
	}
	for {
		select { // what was told before the list is in it
		case <-s.stale:
		default:
		}
		err := s.bounded(ctx, func(ctx context.Context) error { return s.list(ctx, p) })
		if e, ok := errors.AsType[*remoteError](err); ok && before >= 0 {
			p.said("mcp server does not tell its tools again", "err", s.entry.hide.Replace(e.Error())) // those it told before stay
		} else if err != nil {
			return err
		}
		s.mu.Lock()
		s.peer = p
		count := len(s.tools)
		s.mu.Unlock()
		s.set(StateReady, "")
		switch before {
		case -1:
			s.log.Info("mcp server is connected", "tools", count, "ms", time.Since(began).Milliseconds())
		case count:
		default:
			p.said("mcp server has other tools", "tools", count)
		}
		before = count
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.ended:
			return p.why()
		case <-s.stale:
		}
		timer := time.NewTimer(s.cfg.second) // a server that changes again and again is asked once a second
		select {
		case <-timer.C:
		case <-p.ended:
			timer.Stop()
			return p.why()
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// bounded runs f for as long as a start may take.
func (s *server) bounded(ctx context.Context, f func(context.Context) error) error {
	late := fmt.Errorf("the server did not answer within %v of its start", s.cfg.starts)
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.starts, late)
	defer cancel()
	return f(ctx)
}

// shake does the handshake.
func (s *server) shake(ctx context.Context, p *peer) error {
	raw, err := p.call(ctx, "initialize", func(int64) any {
		return map[string]any{
			"protocolVersion": protocolVersion,
			"capabilities":    map[string]any{"roots": map[string]any{}},
			"clientInfo":      map[string]any{"name": "rind", "version": s.cfg.Version},
		}
	}, nil)
	if err != nil {
		return err
	}
	var hello struct {
		Version string `json:"protocolVersion"`
		Server  struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"serverInfo"`
	}
	if err := json.Unmarshal(raw, &hello); err != nil {
		return fmt.Errorf("its answer to initialize cannot be read: %w", err)
	}
	if hello.Version == "" {
		return errors.New("its answer to initialize names no protocolVersion; is it a server of the Model Context Protocol?")
	}
	if err := p.link.opened(ctx, hello.Version, notification("notifications/initialized", nil)); err != nil {
		return err
	}
	s.mu.Lock()
	s.self = strings.TrimSpace(clean(hello.Server.Name, 80) + " " + clean(hello.Server.Version, 40))
	if s.self == "" {
		s.self = "unnamed"
	}
	s.mu.Unlock()
	return nil
}

// list asks for the tools, page by page.
func (s *server) list(ctx context.Context, p *peer) error {
	var tools []*tool
	seen := map[string]bool{}
	cursor, left := "", 0
	for page := 0; ; page++ {
		raw, err := p.call(ctx, "tools/list", func(int64) any {
			if cursor == "" {
				return map[string]any{}
			}
			return map[string]any{"cursor": cursor}
		}, nil)
		if e, ok := errors.AsType[*remoteError](err); ok && e.Code == -32601 {
			break // it has none
		}
		if err != nil {
			return fmt.Errorf("ask for its tools: %w", err)
		}
		var got struct {
			Tools []json.RawMessage `json:"tools"`
			Next  string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &got); err != nil {
			return fmt.Errorf("its list of tools cannot be read: %w", err)
		}
		for _, one := range got.Tools {
			t, err := newTool(s, one)
			switch {
			case err != nil:
				s.log.Warn("mcp tool left out", "err", err)
			case !s.entry.offers(t.original) || seen[t.original]:
			case len(tools) == maxTools:
				left++
			default:
				seen[t.original] = true
				tools = append(tools, t)
			}
		}
		if got.Next == "" || got.Next == cursor || page == maxPages || left > 0 {
			break
		}
		cursor = got.Next
	}
	if left > 0 {
		s.log.Warn("mcp server has too many tools; name those you use in its entry, as tools", "limit", maxTools)
	}
	for _, name := range s.entry.only {
		if !seen[name] {
			s.log.Warn("mcp server has no such tool", "tool", clean(name, 80))
		}
	}
	s.mu.Lock()
	s.tools = tools
	s.mu.Unlock()
	return nil
}

// answer answers what a server asks: it may know the workspace and that somebody is there.
func (s *server) answer(method string) (any, *remoteError) {
	switch method {
	case "ping":
		return map[string]any{}, nil
	case "roots/list":
		path := filepath.ToSlash(s.cfg.Dir)
		if !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		u := url.URL{Scheme: "file", Path: path}
		return map[string]any{"roots": []any{map[string]any{"uri": u.String(), "name": filepath.Base(s.cfg.Dir)}}}, nil
	case "elicitation/create":
		return map[string]any{"action": "decline"}, nil
	}
	return nil, &remoteError{Code: -32601, Message: "Method not found"}
}

func (s *server) notice(method string, params json.RawMessage) {
	switch method {
	case "notifications/tools/list_changed":
		select {
		case s.stale <- struct{}{}:
		default:
		}
	case "notifications/message":
		var m struct {
			Level string          `json:"level"`
			Data  json.RawMessage `json:"data"`
		}
		if json.Unmarshal(params, &m) == nil {
			s.log.Debug("mcp server log", "level", clean(m.Level, 20), "data", clean(s.entry.hide.Replace(string(m.Data[:min(len(m.Data), 1000)])), 200))
		}
	}
}

// offered are the tools of a server that is connected, or is being restarted.
func (s *server) offered() []*tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != StateReady && s.state != StateRestarting {
		return nil
	}
	return s.tools
}

func (s *server) awaitFirst(ctx context.Context) {
	select {
	case <-s.first:
	case <-ctx.Done():
	}
}

// errDown says that a server is not there and will not be soon.
type errDown struct{ reason string }

func (e *errDown) Error() string { return e.reason }

// await waits until the server is connected: *errDown when it has failed, or the cause of ctx.
func (s *server) await(ctx context.Context) (*peer, error) {
	for {
		s.mu.Lock()
		state, reason, p, changed := s.state, s.reason, s.peer, s.changed
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
