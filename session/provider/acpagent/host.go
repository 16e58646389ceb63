package acpagent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// host is the hosted agent of one session over the restarts of its child: it owns the child, which turn it answers, what it said while there was
// none, and when it may be started.
type host struct {
	hosts *Hosts
	cfg   *Config // of all hosts
	id    session.SessionID
	run   string // makes the ids of this process's children unlike those of others

	lane chan struct{} // has room for the one turn that is being answered

	mu       sync.Mutex // guards what follows; never held over I/O
	child    *child     // nil while none runs
	started  int        // children
	crashes  []time.Time
	blocked  time.Time // no start before
	idle     *time.Timer
	talk     *talk   // the turn that is being answered; nil for none
	late     backlog // updates that came while none was
	dropping bool    // the last turn was cancelled: what comes late is not told
	waking   bool    // a turn for what came late is being started
	closed   bool
	title    string         // the newest the agent gave
	commands []string       // names of the agent's own
	last     session.TurnID // the newest that was answered here
}

func newHost(h *Hosts, id session.SessionID) *host {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails
	return &host{hosts: h, cfg: &h.cfg, id: id, run: hex.EncodeToString(b[:]), lane: make(chan struct{}, 1)}
}

// nextTag tells the next child's calls from those of all others.
func (ho *host) nextTag() string {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	ho.started++
	return strconv.FormatInt(int64(ho.started), 36) + ho.run
}

// enter waits until no other turn is being answered; leave ends the turn that entered.
func (ho *host) enter(t *session.Turn) (leave func()) {
	ho.lane <- struct{}{}
	return func() {
		ho.mu.Lock()
		ho.last = t.ID
		ho.mu.Unlock()
		ho.rest()
		<-ho.lane
	}
}

// ready returns a child that is ready for a prompt, and what a new one has to be told first.
func (ho *host) ready(ctx context.Context, spec Spec, t *session.Turn, said *session.Said) (c *child, recap string, err error) {
	want := setup{spec: spec, dir: said.Workspace, further: said.Roots, servers: ho.cfg.Servers(ho.id, said.Workspace)}
	c, knows, err := ho.running(said.Before)
	switch {
	case err != nil:
		return nil, "", err
	case c != nil && knows && c.usable() && c.same(&want):
		return c, "", nil
	case c != nil: // it ended between two turns, the session is set to another agent, or there were turns it does not know
		ho.drop(c)
		c.end(ho.cfg.times.closing)
	}
	if err := ho.allowed(); err != nil {
		return nil, "", err
	}
	if c, err = ho.start(want); err != nil {
		return nil, "", err
	}
	if err := ho.use(c); err != nil {
		c.kill()
		return nil, "", err
	}
	if recap, err = c.open(ctx, t, said); err != nil {
		ho.giveUp(c, err)
		return nil, "", err
	}
	return c, recap, nil
}

// giveUp ends a child that could not be opened. What it said belongs to no session.
func (ho *host) giveUp(c *child, err error) {
	ho.drop(c)
	c.kill()
	ho.count(err)
	ho.mu.Lock()
	ho.late.forgetEarly()
	ho.mu.Unlock()
}

func closing() error { return fail(protocol.FailUnavailable, "The session is being closed.") }

// running returns the child, nil for none, and whether it knows all turns up to the one before; it is not idle any more.
func (ho *host) running(before session.TurnID) (c *child, knows bool, err error) {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	if ho.idle != nil {
		ho.idle.Stop()
	}
	if ho.closed {
		return nil, false, closing()
	}
	return ho.child, before == ho.last, nil
}

// use makes c the child.
func (ho *host) use(c *child) error {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	if ho.closed {
		return closing()
	}
	ho.child = c
	return nil
}

// drop forgets a child that is not used any more.
func (ho *host) drop(c *child) {
	ho.mu.Lock()
	if ho.child == c {
		ho.child = nil
	}
	ho.mu.Unlock()
}

// release takes the child from the host; nil for none.
func (ho *host) release() *child {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	c := ho.child
	ho.child = nil
	return c
}

// count counts a failure that was a crash; too many in a row stop the starting for a while.
func (ho *host) count(err error) {
	if f, ok := errors.AsType[*session.Failure](err); !ok || f.Type != protocol.FailCrashed {
		return
	}
	ho.mu.Lock()
	defer ho.mu.Unlock()
	now := time.Now()
	ho.crashes = append(slices.DeleteFunc(ho.crashes, func(at time.Time) bool { return now.Sub(at) >= ho.cfg.times.window }), now)
	if len(ho.crashes) >= crashes {
		ho.blocked = now.Add(ho.cfg.times.blocked)
		ho.crashes = nil
	}
}

// allowed reports that no child may be started because too many crashed.
func (ho *host) allowed() error {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	if blocked := time.Until(ho.blocked); blocked > 0 {
		return fail(protocol.FailUnavailable, fmt.Sprintf(
			"The agent ended three times within a minute and is not started again for %d s; look at its own output for the reason.", int(blocked.Seconds())+1))
	}
	return nil
}

// rest lets an idle child go after a while.
func (ho *host) rest() {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	if ho.closed || ho.child == nil {
		return
	}
	if ho.idle != nil {
		ho.idle.Stop()
	}
	ho.idle = time.AfterFunc(ho.cfg.times.idle, func() {
		select {
		case ho.lane <- struct{}{}:
		default:
			return // a turn is being answered, and sets it anew
		}
		defer func() { <-ho.lane }()
		if c := ho.release(); c != nil {
			c.end(ho.cfg.times.closing)
		}
	})
}

// close ends the child for good.
func (ho *host) close(grace time.Duration) {
	ho.mu.Lock()
	ho.closed = true
	if ho.idle != nil {
		ho.idle.Stop()
	}
	ho.mu.Unlock()
	if c := ho.release(); c != nil {
		c.end(grace)
	}
	ho.lane <- struct{}{} // the turn that was being answered has let go of the child
	<-ho.lane
}
