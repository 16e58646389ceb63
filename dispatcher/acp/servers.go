package acp

import (
	"encoding/json"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// Servers runs the servers of the Model Context Protocol that clients name for their sessions (docs/protocol/acp.md section 2.2).
type Servers interface {
	// Name makes entries, of the form they have in the settings, the servers of a session in the place of those named before, and starts them.
	// It does not wait for them.
	Name(id session.SessionID, workspace string, entries map[string]json.RawMessage)
	// Forget ends them, and returns when they have ended.
	Forget(id session.SessionID)
}

// checkServers refuses what cannot be told apart later.
func checkServers(servers []acp.Server) error {
	seen := map[string]bool{}
	for i, s := range servers {
		if s.Name == "" {
			return acp.Bad("mcpServers[%d].name must not be empty.", i)
		}
		if seen[s.Name] {
			return acp.Bad("mcpServers[%d].name is used twice: %s", i, protocol.Prefix(s.Name, 60))
		}
		seen[s.Name] = true
	}
	return nil
}

// serve starts the servers that came with the request that opened a session.
func (c *Conn) serve(s *session.Session, p acp.OpenParams) {
	if c.d.cfg.Servers == nil {
		return
	}
	entries := map[string]json.RawMessage{}
	for _, one := range p.Servers {
		entries[one.Name] = entry(&one)
	}
	c.d.cfg.Servers.Name(s.ID, s.Workspace(), entries)
}

// forget ends the servers of a session that is let go of.
func (c *Conn) forget(id session.SessionID) {
	if c.d.cfg.Servers != nil {
		c.d.cfg.Servers.Forget(id)
	}
}

// entry is a server as the settings would have it.
func entry(s *acp.Server) json.RawMessage {
	pairs := func(list []acp.Pair) map[string]string {
		m := map[string]string{}
		for _, p := range list {
			m[p.Name] = p.Value
		}
		return m
	}
	if s.Type == "http" {
		return protocol.MustMarshal(map[string]any{"type": s.Type, "url": s.URL, "headers": pairs(s.Headers)})
	}
	return protocol.MustMarshal(map[string]any{"type": s.Type, "command": s.Command, "args": s.Args, "env": pairs(s.Env)})
}
