package acpagent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// host is the hosted agent of one session over the restarts of its child.
type host struct {
	hosts *Hosts
	id    session.SessionID
	run   string // makes the ids of this process's children unlike those of others

	turns sync.Mutex // held by the turn that is being answered: there is one at a time

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
	return &host{hosts: h, id: id, run: hex.EncodeToString(b[:])}
}

func (ho *host) count() int {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	ho.started++
	return ho.started
}

// ensure returns a child that is ready for a prompt, and what a new one has to be told first.
func (ho *host) ensure(ctx context.Context, spec Spec, t *session.Turn, said *session.Said) (c *child, recap string, err error) {
	servers := ho.hosts.cfg.Servers(ho.id, said.Workspace)
	ho.mu.Lock()
	if ho.idle != nil {
		ho.idle.Stop()
	}
	if ho.closed {
		ho.mu.Unlock()
		return nil, "", fail(protocol.FailUnavailable, "The session is being closed.")
	}
	c = ho.child
	last := ho.last
	blocked := time.Until(ho.blocked)
	ho.mu.Unlock()
	if c != nil && c.usable() && c.spec.id() == spec.id() && said.Before == last && slices.Equal(c.further, said.Roots) && sameServers(c.servers, servers) {
		return c, "", nil
	}
	if c != nil { // it ended between two turns, the session is set to another agent, or there were turns it does not know
		ho.drop(c)
		c.end(ho.hosts.cfg.times.closing)
	}
	if blocked > 0 {
		return nil, "", fail(protocol.FailUnavailable, fmt.Sprintf(
			"The agent ended three times within a minute and is not started again for %d s; look at its own output for the reason.", int(blocked.Seconds())+1))
	}
	if c, err = ho.start(spec, said.Workspace, said.Roots, servers); err != nil {
		return nil, "", err
	}
	ho.mu.Lock()
	if ho.closed {
		ho.mu.Unlock()
		c.kill()
		return nil, "", fail(protocol.FailUnavailable, "The session is being closed.")
	}
	ho.child = c
	ho.mu.Unlock()
	if recap, err = c.open(ctx, t, said); err != nil {
		ho.drop(c)
		c.kill()
		if f, ok := errors.AsType[*session.Failure](err); ok && f.Type == protocol.FailCrashed {
			ho.crash()
		}
		return nil, "", err
	}
	return c, recap, nil
}

// drop forgets a child that is not used any more.
func (ho *host) drop(c *child) {
	ho.mu.Lock()
	if ho.child == c {
		ho.child = nil
	}
	ho.mu.Unlock()
}

// crash counts an end in the middle of a turn; too many in a row stop the starting for a while.
func (ho *host) crash() {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	now := time.Now()
	kept := ho.crashes[:0]
	for _, at := range ho.crashes {
		if now.Sub(at) < ho.hosts.cfg.times.window {
			kept = append(kept, at)
		}
	}
	if ho.crashes = append(kept, now); len(ho.crashes) >= crashes {
		ho.blocked = now.Add(ho.hosts.cfg.times.blocked)
		ho.crashes = nil
	}
}

// crashed is the failure of a turn whose child broke: how it ended, and the last it wrote on standard error. starting: before the first prompt's
// answer, where a missing credential is a likely reason.
func (c *child) crashed(why error, starting bool) error {
	if !errors.Is(why, errClosed) { // it is alive, as far as we know
		kind := protocol.FailUnavailable
		if errors.Is(why, errTooLong) {
			kind = protocol.FailCrashed
		}
		text := "The agent cannot be used: " + oneLine(c.mask(why.Error()), 500) + "."
		if last := lastLine(c.stderr.tail(stderrShown)); starting && last != "" {
			text += " Its last words: " + oneLine(c.mask(last), 300)
		}
		return fail(kind, text)
	}
	timer := time.NewTimer(2 * time.Second)
	defer timer.Stop()
	how := "closed its output"
	select {
	case <-c.done:
		how = c.exit()
	case <-timer.C:
	}
	text := "The agent " + how
	tail := strings.TrimSpace(c.mask(c.stderr.tail(stderrShown)))
	if tail != "" {
		text += ": " + oneLine(lastLine(tail), 300)
	} else {
		text += "."
	}
	if starting {
		text = c.hinted(text)
	}
	if strings.Contains(tail, "\n") {
		text += "\n" + tail
	}
	return fail(protocol.FailCrashed, text)
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
	ho.idle = time.AfterFunc(ho.hosts.cfg.times.idle, func() {
		if !ho.turns.TryLock() {
			return // a turn is being answered, and sets it anew
		}
		defer ho.turns.Unlock()
		ho.mu.Lock()
		c := ho.child
		ho.child = nil
		ho.mu.Unlock()
		if c != nil {
			c.end(ho.hosts.cfg.times.closing)
		}
	})
}

// close ends the child for good.
func (ho *host) close(grace time.Duration) {
	ho.mu.Lock()
	ho.closed = true
	c := ho.child
	ho.child = nil
	if ho.idle != nil {
		ho.idle.Stop()
	}
	ho.mu.Unlock()
	if c != nil {
		c.end(grace)
	}
	ho.turns.Lock() // whoever held it has let go of the child
	defer ho.turns.Unlock()
}

// learn keeps what a child is known to do.
func (ho *host) learn(c *child) {
	c.mu.Lock()
	about, asked := c.about, c.asked
	seen := map[string]bool{"asked": asked}
	for k := range c.seen {
		seen[k] = true
	}
	c.mu.Unlock()
	self := c.session()
	k := Known{Name: about.Name(), Manifest: manifest(&about, self, &c.spec, seen, !ho.hosts.cfg.Unattended), Images: &about.Image}
	if o := self.Option("thought_level"); o != nil {
		for _, v := range o.Values {
			k.Efforts = append(k.Efforts, v.Value)
		}
	}
	if o := self.Option("model"); o != nil {
		for _, v := range o.Values {
			k.Models = append(k.Models, session.ModelInfo{Provider: c.spec.Provider, ID: v.Value, Name: v.Name, API: "acp", Images: k.Images, Efforts: k.Efforts})
		}
	}
	ho.mu.Lock()
	k.Commands = ho.commands
	ho.mu.Unlock()
	ho.hosts.learn(c.spec, k)
}

// wake starts a turn for what came late; ho.mu is held.
func (ho *host) wake(c *child) {
	if ho.waking || ho.closed || ho.hosts.all == nil {
		return
	}
	ho.waking = true
	after := ho.last
	go func() { // ends at once: Aside does not wait
		ho.hosts.all.Aside(ho.id, after, func(ctx context.Context, t *session.Turn) (string, error) { return ho.lateTurn(ctx, c, t) }, func(err error) {
			ho.mu.Lock()
			ho.waking = false
			if err != nil && protocol.KindOf(err) != protocol.TurnActive { // somebody else answers the session by now
				ho.late.lose()
			}
			ho.mu.Unlock()
		})
	}()
}

// lateTurn is a turn of what the child says after its answer; it ends after a while of quiet, or when somebody wants the lane.
func (ho *host) lateTurn(ctx context.Context, c *child, t *session.Turn) (string, error) {
	ho.turns.Lock()
	defer ho.turns.Unlock()
	defer ho.rest()
	k := newTalk(ho, c, t)
	ho.begin(k)
	defer ho.answered(t)
	defer func() {
		ho.over(k, false)
		k.close(protocol.ToolFailed)
	}()
	for {
		wait := ho.hosts.cfg.times.late - k.quiet()
		if wait <= 0 {
			return "", nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-t.Hurry():
			timer.Stop()
			return "", nil
		case <-c.broken:
			timer.Stop()
			return "", nil
		case <-ctx.Done():
			timer.Stop()
			return "", context.Cause(ctx)
		}
	}
}

// answered keeps which turn was answered last.
func (ho *host) answered(t *session.Turn) {
	ho.mu.Lock()
	ho.last = t.ID
	ho.mu.Unlock()
}

// begin makes k the turn that is being answered, and tells it what came late.
func (ho *host) begin(k *talk) {
	for {
		ho.mu.Lock()
		late, lost := ho.late.take()
		if len(late) == 0 && lost == 0 {
			ho.talk, ho.dropping = k, false
			ho.mu.Unlock()
			return
		}
		ho.mu.Unlock()
		k.lost(lost)
		for _, params := range late {
			if _, u, ok := acp.ReadHostUpdate(params); ok {
				k.update(&u)
			}
		}
	}
}

// over ends the turn that is being answered. dropping: what comes late is not told.
func (ho *host) over(k *talk, dropping bool) {
	ho.mu.Lock()
	if ho.talk == k {
		ho.talk = nil
	}
	ho.dropping = ho.dropping || dropping
	ho.mu.Unlock()
}
