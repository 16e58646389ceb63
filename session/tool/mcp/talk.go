package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// protocolVersion is the newest version of the protocol that is spoken; older ones differ in nothing that is used here.
const protocolVersion = "2025-11-25"

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
	cursor, more := "", 0
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
				p.said("mcp tool left out", "err", s.quiet(err.Error(), 250))
			case !s.entry.offers(t.original) || seen[t.original]:
			case len(tools) == maxTools:
				more++
			default:
				seen[t.original] = true
				tools = append(tools, t)
			}
		}
		if got.Next == "" || got.Next == cursor || page == maxPages || more > 0 {
			break
		}
		cursor = got.Next
	}
	if more > 0 {
		p.said("mcp server has too many tools; name those you use in its entry, as tools", "limit", maxTools)
	}
	for _, name := range s.entry.only {
		if !seen[name] {
			p.said("mcp server has no such tool", "tool", clean(name, 80))
		}
	}
	s.mu.Lock()
	s.tools, s.more = tools, more
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
	case "elicitation/create", "sampling/createMessage":
		return nil, &remoteError{Code: -32601, Message: "This client asks neither its user nor a model for a server."}
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
			s.log.Debug("mcp server log", "level", clean(m.Level, 20), "data", s.quiet(string(m.Data[:min(len(m.Data), 1000)]), 200))
		}
	}
}
