package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Roster knows which servers a turn has: those the settings name for its workspace, read anew for each turn, and those a client named for its
// session. Of two with one name the session's counts, taken whole. It owns no goroutine beside those of its sets; Close ends them. Safe for
// concurrent use.
type Roster struct {
	cfg     Config
	entries func(workspace string) (map[string]json.RawMessage, error)

	mu         sync.Mutex // guards what follows
	closed     bool
	workspaces map[string]*Servers
	sessions   map[session.SessionID]*Servers
	told       map[session.SessionID]map[string]string // how servers fare, as the session was told last; by name
	watches    map[*watch]bool
}

// watch is a turn that is told how its servers fare.
type watch struct {
	session session.SessionID
	servers map[*server]bool // true where the turn has its tools
	note    func(severity, title string)
}

// NewRoster makes a Roster. entries reads the servers of a workspace; when it fails those of before stay. c.Servers, c.Dir and c.Literal are
// not used.
func NewRoster(c Config, entries func(workspace string) (map[string]json.RawMessage, error)) *Roster {
	r := &Roster{
		cfg: c, entries: entries, workspaces: map[string]*Servers{}, sessions: map[session.SessionID]*Servers{},
		told: map[session.SessionID]map[string]string{}, watches: map[*watch]bool{},
	}
	r.cfg.changed = r.changed
	return r
}

// set makes an empty one.
func (r *Roster) set(workspace string, literal bool) *Servers {
	c := r.cfg
	c.Servers, c.Dir, c.Literal = nil, workspace, literal
	return New(c)
}

// Workspace is the set of a workspace as the settings have it now. It starts nothing.
func (r *Roster) Workspace(dir string) *Servers {
	entries, err := r.entries(dir)
	r.mu.Lock()
	s := r.workspaces[dir]
	if s == nil {
		s = r.set(dir, false)
		r.workspaces[dir] = s
	}
	closed := r.closed
	r.mu.Unlock()
	switch {
	case closed:
		s.Close()
	case err != nil:
		s.cfg.Log.Warn("mcp servers cannot be read, those of before stay", "err", err)
	default:
		s.Set(entries)
	}
	return s
}

// Name makes entries the servers that a client named for a session, and starts them, unless the roster is lazy. Values in them stand for themselves.
func (r *Roster) Name(id session.SessionID, workspace string, entries map[string]json.RawMessage) {
	r.mu.Lock()
	s := r.sessions[id]
	if r.closed || s == nil && len(entries) == 0 {
		r.mu.Unlock()
		return
	}
	if s == nil {
		s = r.set(workspace, true)
		r.sessions[id] = s
	}
	r.mu.Unlock()
	s.Set(entries)
	if !r.cfg.Lazy {
		s.Start()
	}
}

// Forget ends the servers that a client named for a session, and returns once they have ended.
func (r *Roster) Forget(id session.SessionID) {
	r.mu.Lock()
	s := r.sessions[id]
	delete(r.sessions, id)
	delete(r.told, id)
	r.mu.Unlock()
	if s != nil {
		s.Close()
	}
}

// Close ends all servers. Calls in flight fail.
func (r *Roster) Close() {
	r.mu.Lock()
	r.closed = true
	all := slices.AppendSeq(slices.Collect(maps.Values(r.workspaces)), maps.Values(r.sessions))
	r.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(s.Close)
	}
	wg.Wait()
}

// Tools are those that a turn may use until ctx ends. It starts the servers, and waits for those whose start is less than Config.Wait ago. What
// the session was not told yet of how they fare is put into the turn as notices, now and while it goes on. It never fails.
func (r *Roster) Tools(ctx context.Context, t *session.Turn) []session.Tool {
	return r.tools(ctx, t.Session(), t.Workspace(), func(severity, title string) {
		t.Note(&protocol.Notice{Severity: severity, Title: title})
	})
}

func (r *Roster) tools(ctx context.Context, id session.SessionID, workspace string, note func(severity, title string)) []session.Tool {
	set := r.Workspace(workspace)
	set.Start()
	all := set.servers()
	r.mu.Lock()
	own := r.sessions[id]
	r.mu.Unlock()
	if own != nil {
		own.Start()
		all = merged(all, own.servers())
	}
	if len(all) == 0 {
		return nil
	}
	for _, s := range all {
		context.AfterFunc(ctx, s.use())
		s.askAgain()
	}
	for _, s := range all {
		s.awaitFirst(ctx, set.cfg.Wait)
	}
	w := &watch{session: id, servers: map[*server]bool{}, note: note}
	offered, left := share(all)
	for _, s := range all {
		w.servers[s] = false
	}
	for _, t := range offered {
		w.servers[t.server] = true
	}
	r.mu.Lock()
	r.watches[w] = true
	r.mu.Unlock()
	context.AfterFunc(ctx, func() {
		r.mu.Lock()
		delete(r.watches, w)
		r.mu.Unlock()
	})
	for _, s := range all {
		r.tell(w, s, true)
	}
	r.tellLeft(w, left)
	return named(offered)
}

// merged are the servers of both, sorted by name; of two with one name the one of over.
func merged(under, over []*server) []*server {
	by := map[string]*server{}
	for _, s := range slices.Concat(under, over) {
		by[s.name] = s
	}
	all := make([]*server, 0, len(by))
	for _, name := range slices.Sorted(maps.Keys(by)) {
		all = append(all, by[name])
	}
	return all
}

// changed tells the turns that have a server how it fares now.
func (r *Roster) changed(s *server) {
	var to []*watch
	r.mu.Lock()
	for w := range r.watches {
		if _, has := w.servers[s]; has {
			to = append(to, w)
		}
	}
	r.mu.Unlock()
	for _, w := range to {
		r.tell(w, s, false)
	}
}

// How a server fares, as far as a person has to know.
const (
	faresWell = ""
	faresSlow = "slow"
	faresLost = "lost" // and is being started again
	faresDown = "down"
)

func (st *Status) fares() string {
	switch {
	case st.State == StateStarting:
		return faresSlow
	case st.State == StateFailed:
		return faresDown
	case st.State == StateRestarting && st.Error != "": // else it was resting, and is needed
		return faresLost
	}
	return faresWell
}

// tell puts into a turn how a server fares, where its session was not told that. first: the turn begins, and what is told holds for it.
func (r *Roster) tell(w *watch, s *server, first bool) {
	st := s.status()
	now := st.fares()
	before := r.mark(w.session, s.name, now)
	if now == before {
		return
	}
	name, reason := clean(s.name, 64), strings.TrimSuffix(st.Error, ".")
	switch {
	case now == faresSlow:
		w.note("info", fmt.Sprintf("The MCP server %s is still starting: this turn goes without its tools.", name))
	case now == faresLost:
		w.note("warning", fmt.Sprintf("The MCP server %s was lost, and is started again: %s.", name, reason))
	case now == faresDown:
		w.note("warning", fmt.Sprintf("The MCP server %s is down, its tools are missing: %s.", name, reason))
	case !first && !w.servers[s]:
		w.note("info", fmt.Sprintf("The MCP server %s is connected: the next turn has its tools.", name))
	case before == faresSlow:
		w.note("info", fmt.Sprintf("The MCP server %s is connected.", name))
	default:
		w.note("info", fmt.Sprintf("The MCP server %s is back.", name))
	}
}

// mark remembers what a session is told, and returns what it was told before.
func (r *Roster) mark(id session.SessionID, what, now string) (before string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before = r.told[id][what]
	switch {
	case now == before:
	case now == "":
		if delete(r.told[id], what); len(r.told[id]) == 0 {
			delete(r.told, id)
		}
	default:
		if r.told[id] == nil {
			r.told[id] = map[string]string{}
		}
		r.told[id][what] = now
	}
	return before
}

// tellLeft says once which servers have more tools than a turn is offered.
func (r *Roster) tellLeft(w *watch, left map[*server]int) {
	var names []string
	for s := range left {
		names = append(names, clean(s.name, 64))
	}
	slices.Sort(names)
	now := strings.Join(names, ", ")
	if r.mark(w.session, "\x00left", now) != now && now != "" {
		w.note("warning", fmt.Sprintf("MCP servers have more tools than the %d that a turn may have; some are left out of %s. Name those you use in its entry, as tools.", maxTools, now))
	}
}
