package mcp

import (
	"net/http"

	"github.com/rind-dev/rind/session"
)

// Described is a server as a program is told of it that connects to it by itself: what its variables stand for is looked up. Env and Headers
// may hold secrets.
type Described struct {
	Name    string
	Command string // of a program; "" for a server over HTTP
	Args    []string
	Env     map[string]string
	URL     string
	Headers http.Header
	// Own says what only we do for it, which is lost where it is handed on: a folder of its own, tools left out; "" for nothing.
	Own string
}

// Describe describes the servers that a session has now, sorted by name. Those that are disabled or cannot be used are left out. It starts none.
func (r *Roster) Describe(id session.SessionID, workspace string) []Described {
	all := r.Workspace(workspace).servers()
	r.mu.Lock()
	own := r.sessions[id]
	r.mu.Unlock()
	if own != nil {
		all = merged(all, own.servers())
	}
	var list []Described
	for _, s := range all {
		e, err := readEntry(s.raw, s.cfg)
		if err != nil || e.disabled {
			continue
		}
		d := Described{Name: s.name, Command: e.command, Args: e.args, Env: e.env, Headers: e.headers}
		if e.url != nil {
			d.URL = e.url.String()
		}
		switch {
		case e.only != nil:
			d.Own = "tools"
		case e.command != "" && e.dir != s.cfg.Dir:
			d.Own = "cwd"
		}
		list = append(list, d)
	}
	return list
}
