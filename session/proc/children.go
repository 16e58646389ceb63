package proc

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tokenName is the variable that marks what a runtime has started: <instance>.<number of the child>.
const tokenName = "RIND_CHILD"

// ErrRefused says that the registry starts nothing any more.
var ErrRefused = errors.New("the runtime is shutting down")

// Children starts processes and knows the living ones, so that the end of the runtime is theirs. Each is noted in a journal folder, for the
// runtime that comes after one that was killed (Sweep). A journal that cannot be written holds up no child: it is then not found again.
// Safe for concurrent use.
type Children struct {
	id      string
	journal journal
	refused chan struct{} // closed by Refuse

	mu       sync.Mutex // guards what follows
	closed   bool
	count    int
	living   map[*Process]struct{}
	starting sync.WaitGroup // added to under mu, while not closed
}

// NewChildren makes a registry with its journal in the folder dir, which is made when the first child starts; "" for none.
func NewChildren(dir string) *Children {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	id := hex.EncodeToString(b[:])
	return &Children{
		id: id, journal: journal{dir: dir, id: id}, refused: make(chan struct{}), living: map[*Process]struct{}{},
	}
}

// Start starts a child. ErrRefused after Refuse or KillAll.
func (c *Children) Start(s Spec) (*Process, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, fmt.Errorf("start %s: %w", s.Path, ErrRefused)
	}
	c.count++
	token := c.id + "." + strconv.Itoa(c.count)
	c.starting.Add(1)
	c.mu.Unlock()
	defer c.starting.Done()

	c.journal.open()
	p, err := start(s, c, token)
	if err != nil {
		return nil, err
	}
	c.journal.note(token, p.PID())
	c.mu.Lock()
	gone := p.gone // it may have ended before it was noted
	if !gone {
		c.living[p] = struct{}{}
	}
	c.mu.Unlock()
	if gone {
		c.journal.forget(token)
	}
	return p, nil
}

// ended is called by a child that has ended, before its Done is closed.
func (c *Children) ended(p *Process) {
	c.mu.Lock()
	p.gone = true
	delete(c.living, p)
	c.mu.Unlock()
	c.journal.forget(p.token)
}

// Refuse starts nothing from now on, and takes the grace from every End: the runtime is about to end.
func (c *Children) Refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.refused)
	}
}

// KillAll refuses new children, kills all that live and what they left running, and waits for their end; ErrNotConfirmed when that takes more
// than 2 s. What is left then stays in the journal.
func (c *Children) KillAll() error {
	c.Refuse()
	c.starting.Wait()
	c.mu.Lock()
	started := c.count > 0
	living := make([]*Process, 0, len(c.living))
	for p := range c.living {
		living = append(living, p)
	}
	c.mu.Unlock()
	if !started {
		return nil
	}
	for _, p := range living {
		p.signal(func() { p.group.kill(p.cmd) })
	}
	deadline := time.Now().Add(confirmAfter)
	ended := endStrays(c.id+".", deadline)
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	for _, p := range living {
		select {
		case <-p.done:
		case <-timer.C:
			return fmt.Errorf("process %d: %w", p.PID(), ErrNotConfirmed)
		}
	}
	if !ended {
		return fmt.Errorf("processes that commands left running: %w", ErrNotConfirmed)
	}
	c.journal.close()
	return nil
}

// marked reports whether a token found in an environment is the one looked for: itself, or all of an instance ("<instance>.").
func marked(found, want string) bool {
	return found == want || strings.HasSuffix(want, ".") && strings.HasPrefix(found, want)
}
