package acpagent

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session/proc"
)

// Bounds of terminals (docs/protocol/acp.md section 5.4).
const (
	maxTerminals = 16
	maxOutput    = 1 << 20
)

// terminal is one command the child runs through us: it owns the process, its output and its folder.
type terminal struct {
	id      string
	process *proc.Process
	out     *ring
	temp    string // a folder of its own, removed with it; "" for none
}

// output is the newest output, cut at its start between characters. Once the command has ended, which over says, it is all there is.
func (t *terminal) output() (text string, cut, over bool) {
	over = t.ended() // first
	text, cut = t.out.tail(t.out.max, over)
	return text, cut, over
}

func (t *terminal) ended() bool {
	select {
	case <-t.process.Done():
		return true
	default:
		return false
	}
}

// exitStatus is how a command ended; exactly one is set.
type exitStatus struct {
	Code   *int    `json:"exitCode"`
	Signal *string `json:"signal"`
}

// exit says how the command ended; it has.
func (t *terminal) exit() exitStatus {
	exit, _ := t.process.Wait(context.Background())
	if exit.Signal != "" {
		return exitStatus{Signal: &exit.Signal}
	}
	return exitStatus{Code: &exit.Code}
}

// status is how a call ends that was made for the command.
func (t *terminal) status() string {
	if exit, err := t.process.Wait(context.Background()); err != nil || exit.Code != 0 {
		return protocol.ToolFailed
	}
	return protocol.ToolCompleted
}

// release ends the command, where it started, and removes its folder.
func (t *terminal) release() {
	if t.process != nil {
		_ = t.process.End(0)
	}
	if t.temp != "" {
		_ = os.RemoveAll(t.temp)
	}
}

// terminals are those of a child. Safe for concurrent use.
type terminals struct {
	mu     sync.Mutex // guards what follows
	list   map[string]*terminal
	making int // places that are taken for terminals which do not run yet
	closed bool
}

// reserve takes a place, which is given back with add or giveBack.
func (s *terminals) reserve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.list)+s.making >= maxTerminals {
		return protocol.Errorf(protocol.Overloaded, "There are %d terminals already; release one.", maxTerminals)
	}
	s.making++
	return nil
}

// giveBack gives back a place that was not needed.
func (s *terminals) giveBack() {
	s.mu.Lock()
	s.making--
	s.mu.Unlock()
}

// add puts a terminal in the place that was reserved; false when the child has ended meanwhile.
func (s *terminals) add(t *terminal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making--
	if s.closed {
		return false
	}
	if s.list == nil {
		s.list = map[string]*terminal{}
	}
	s.list[t.id] = t
	return true
}

// find returns a terminal by its id. The error is for the child.
func (s *terminals) find(id string) (*terminal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.list[id]; t != nil {
		return t, nil
	}
	return nil, &protocol.Error{Kind: acp.NoResource, Message: "There is no such terminal."}
}

// text is the output of a terminal, for the call that shows it; "" for one that is not there.
func (s *terminals) text(id string) string {
	t, err := s.find(id)
	if err != nil {
		return ""
	}
	text, _, _ := t.output()
	return text
}

// remove forgets a terminal and ends it.
func (s *terminals) remove(t *terminal) {
	s.mu.Lock()
	delete(s.list, t.id)
	s.mu.Unlock()
	t.release()
}

// close ends all of them. Their output is kept: calls that show it may not have ended yet.
func (s *terminals) close() {
	s.mu.Lock()
	s.closed = true
	all := slices.Collect(maps.Values(s.list))
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, t := range all {
		wg.Go(t.release)
	}
	wg.Wait()
}
