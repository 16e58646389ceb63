package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rind-dev/rind/session"
)

// Servers is one set of servers: those of a workspace, or those a client named for a session. Safe for concurrent use.
type Servers struct {
	cfg  Config
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex // guards what follows
	all    []*server  // sorted by name
	begun  bool
	closed bool
}

// New reads the entries. It starts nothing, and an entry that cannot be used is the state of that server only.
func New(c Config) *Servers {
	s := &Servers{cfg: c.filled()}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.Set(c.Servers)
	return s
}

// Set makes entries the servers there are. Those whose entry is as it was go on; others start, where the set has; what is not there any more
// ends once no turn has its tools.
func (s *Servers) Set(entries map[string]json.RawMessage) {
	var gone []*server
	s.mu.Lock()
	kept := map[string]*server{}
	for _, one := range s.all {
		if raw, ok := entries[one.name]; ok && bytes.Equal(raw, one.raw) {
			kept[one.name] = one
		} else {
			gone = append(gone, one)
		}
	}
	all := make([]*server, 0, len(entries))
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		one := kept[name]
		if one == nil {
			one = newServer(s.ctx, &s.cfg, name, entries[name])
			s.run(one)
		}
		all = append(all, one)
	}
	s.all = all
	s.mu.Unlock()
	for _, one := range gone {
		one.retire()
	}
}

// run starts a server, where the set has started; s.mu is held.
func (s *Servers) run(one *server) {
	if s.begun && !s.closed {
		s.wg.Go(one.live)
	}
}

// Start connects to the servers in the background. Further calls do nothing.
func (s *Servers) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun || s.closed {
		return
	}
	s.begun = true
	for _, one := range s.all {
		s.run(one)
	}
}

func (s *Servers) servers() []*server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Tools are those of the servers that are connected, that rest, or that are being restarted, sorted by name. It starts the servers, and waits
// for those whose start is less than Config.Wait ago. It never fails.
func (s *Servers) Tools(ctx context.Context) []session.Tool {
	s.Start()
	all := s.servers()
	for _, one := range all {
		one.awaitFirst(ctx, s.cfg.Wait)
	}
	offered, _ := share(all)
	return named(offered)
}

// Wait waits until each server has connected or failed to once, or ctx ends.
func (s *Servers) Wait(ctx context.Context) {
	for _, one := range s.servers() {
		one.awaitFirst(ctx, 0)
	}
}

// List tells how the servers fare, sorted by name.
func (s *Servers) List() []Status {
	all := s.servers()
	list := make([]Status, 0, len(all))
	for _, one := range all {
		list = append(list, one.status())
	}
	offered, _ := share(all)
	for _, t := range named(offered) {
		own := t.(*namedTool)
		if i, ok := slices.BinarySearchFunc(list, own.server.name, func(st Status, name string) int { return strings.Compare(st.Name, name) }); ok {
			list[i].Tools = append(list[i].Tools, own.name)
		}
	}
	return list
}

// Close ends the servers: asked first, killed after a second, or at once when Children refuses new ones. Calls in flight fail.
func (s *Servers) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.wg.Wait()
}

// share takes the tools that a turn is offered. Where there are more than it may have, each server gives the same number, and those that have
// fewer leave their part to the others; left says how many tools of a server are not offered.
func share(all []*server) (offered []*tool, left map[*server]int) {
	left = map[*server]int{}
	lists := make([][]*tool, len(all))
	order := make([]int, len(all))
	for i, one := range all {
		var more int
		lists[i], more = one.offered()
		if more > 0 {
			left[one] = more
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(lists[a]) - len(lists[b]) })
	room := maxTools
	for n, i := range order {
		part := min(len(lists[i]), room/(len(order)-n))
		if part < len(lists[i]) {
			left[all[i]] += len(lists[i]) - part
			lists[i] = lists[i][:part]
		}
		room -= part
	}
	return slices.Concat(lists...), left
}
