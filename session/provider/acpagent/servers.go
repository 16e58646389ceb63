package acpagent

import (
	"maps"
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// Server is a server of the Model Context Protocol that a child is told of (docs/protocol/acp.md section 5.1): a program, or an address.
type Server struct {
	Name    string
	Command string // "" for a server over HTTP
	Args    []string
	Env     map[string]string
	URL     string
	Headers map[string][]string
	// Kept says why it stays with us: a member of its entry that cannot be handed on; "" where it is told.
	Kept string
}

// sameServers reports whether two lists tell a child the same.
func sameServers(a, b []Server) bool {
	return slices.EqualFunc(a, b, func(x, y Server) bool {
		return x.Name == y.Name && x.Command == y.Command && x.URL == y.URL && x.Kept == y.Kept && slices.Equal(x.Args, y.Args) &&
			maps.Equal(x.Env, y.Env) && maps.EqualFunc(x.Headers, y.Headers, slices.Equal[[]string])
	})
}

// tools are the servers the child can be told of, in the form of the wire, and the names of those it cannot: HTTP is for children that take it.
func (c *child) tools() (list []any, left []string) {
	list = []any{}
	for _, s := range c.servers {
		switch {
		case s.Kept != "":
			left = append(left, s.Name+" ("+s.Kept+")")
		case s.Command != "":
			list = append(list, object{"name": s.Name, "command": s.Command, "args": append([]string{}, s.Args...), "env": pairs(s.Env, func(v string) []string { return []string{v} })})
		case c.about.HTTP:
			list = append(list, object{"type": "http", "name": s.Name, "url": s.URL, "headers": pairs(s.Headers, func(v []string) []string { return v })})
		default:
			left = append(left, s.Name+" (HTTP)")
		}
	}
	return list, left
}

// pairs are a map's values with their names, sorted by name.
func pairs[V any](m map[string]V, values func(V) []string) []object {
	all := []object{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		for _, v := range values(m[name]) {
			all = append(all, object{"name": name, "value": v})
		}
	}
	return all
}

// untold says in the turn which servers the child is not told of; nil for none.
func (c *child) untold() protocol.Body {
	_, left := c.tools()
	if len(left) == 0 {
		return nil
	}
	for i := range left {
		left[i] = oneLine(left[i], 80)
	}
	return &protocol.Notice{Severity: "warning", Title: "The agent is not given these MCP servers: " + strings.Join(left, ", ") + "."}
}
