package acpagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/protocol/rpc"
	"github.com/rind-dev/rind/session/proc"
)

const (
	stderrRing  = 64 << 10
	stderrShown = 8 << 10
	lastRead    = 500 * time.Millisecond // for what an ended process wrote
)

// setup is what a child is started with, and keeps.
type setup struct {
	spec    Spec
	dir     string   // absolute; it works there
	further []string // folders it may use beside
	servers []Server // of the Model Context Protocol, of its session
}

// same reports whether a child that was started with one is as good as one started with the other.
func (s *setup) same(o *setup) bool {
	return s.spec.id() == o.spec.id() && s.dir == o.dir && slices.Equal(s.further, o.further) && sameServers(s.servers, o.servers)
}

// phase is how far a child is, which decides what becomes of its updates.
type phase int

const (
	phaseOpening   phase = iota // its session is not known yet: they wait
	phaseReplaying              // it says again what is in our log: only how things stand counts
	phaseOpen                   // they are told
)

// child is one process of a hosted agent and the connection to it: it owns the process, its pipes and terminals, and the goroutines in wg, which
// all end with the process. What it says goes to its host.
type child struct {
	host *host
	setup
	tag       string   // in front of its tool call ids
	env       []string // its whole environment
	mask      func(string) string
	process   *proc.Process
	out       *os.File // our end of its output
	outbox    *outbox
	noise     *noise
	conn      *rpc.Conn
	stderr    *ring
	terminals terminals
	wg        sync.WaitGroup
	done      chan struct{} // closed when it has ended and all it said was read
	broken    chan struct{} // closed when it cannot be used any more: see fault
	spent     spent         // owned by the turn that is answered
	phase     phase         // guarded by host.mu, as what it said in it waits there

	mu       sync.Mutex                    // guards what follows; never held over I/O
	about    acp.Hosted                    // set before its session is opened, and never again
	self     acp.HostSession               // its session as it stands; without an id before that is known
	lastID   int64                         // of our calls
	fault    error                         // why broken is closed
	requests map[string]context.CancelFunc // of the child, in flight
	heard    time.Time                     // the last time it said anything, or was asked anew
	seen     map[string]bool               // what it was seen to do, for its manifest
}

// start starts a process and connects to it; it is not spoken to yet.
func (ho *host) start(s setup) (*child, error) {
	c := &child{
		host: ho, setup: s, tag: ho.nextTag(), env: environ(ho.cfg.Environ(), s.spec.Env, s.spec.PassEnv), stderr: &ring{max: stderrRing},
		done: make(chan struct{}), broken: make(chan struct{}), requests: map[string]context.CancelFunc{}, heard: time.Now(), seen: map[string]bool{},
	}
	c.mask = masker(c.env, &s.spec, secrets(s.servers), ho.cfg.Redact)
	if err := c.spawn(); err != nil {
		return nil, err
	}
	c.connect()
	return c, nil
}

// spawn starts the process on pipes of ours.
func (c *child) spawn() error {
	inR, inW, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		_, _ = inR.Close(), inW.Close()
		return fmt.Errorf("make a pipe: %w", err)
	}
	c.process, err = c.host.cfg.Children.Start(proc.Spec{
		Path: c.spec.Command, Args: c.spec.Args, Dir: c.dir, Env: c.env, Stdin: inR, Stdout: outW, Stderr: c.stderr,
	})
	_, _ = inR.Close(), outW.Close() // the child has its own
	if err != nil {
		_, _ = inW.Close(), outR.Close()
		if noProgram(err) {
			return fail(protocol.FailUnavailable, fmt.Sprintf("There is no program %s; install it, or correct the command of this agent.", oneLine(c.spec.Command, 200)))
		}
		return fail(protocol.FailUnavailable, "The agent could not be started: "+oneLine(err.Error(), 300))
	}
	c.outbox, c.out = newOutbox(inW), outR
	return nil
}

// noProgram reports whether a process could not be started because there is no such program.
func noProgram(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "executable file not found")
}

// fails says that the child cannot be used any more.
func (c *child) fails(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault == nil {
		c.fault = err
		close(c.broken)
	}
}

func (c *child) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}

// usable reports whether it can be spoken to.
func (c *child) usable() bool { return c.why() == nil }

// await closes done once the process has ended and what it said was read. It waits for the process, not for its pipes: others may hold them.
func (c *child) await(served <-chan struct{}) {
	<-c.process.Done()
	_ = c.out.SetReadDeadline(time.Now().Add(lastRead))
	<-served
	_ = c.out.Close()
	c.outbox.stop()
	c.mu.Lock()
	for _, cancel := range c.requests {
		cancel()
	}
	c.mu.Unlock()
	c.terminals.close()
	close(c.done)
}

// exit says how the process ended; it has.
func (c *child) exit() string {
	exit, err := c.process.Wait(context.Background())
	switch {
	case err != nil:
		return "ended: " + err.Error()
	case exit.Signal != "":
		return "was ended by signal " + exit.Signal
	}
	return "ended with exit code " + strconv.Itoa(exit.Code)
}

var errEnded = errors.New("it was ended")

// end ends the process: a session that can be closed is closed, its input is closed, then it is asked to end, then killed. It returns when nothing
// of the child is left, and may be called again.
func (c *child) end(grace time.Duration) {
	closes := c.closes()
	c.fails(errEnded)
	if grace > 0 {
		if closes {
			c.send(acp.AppendCall(nil, protocol.Call{ID: c.nextID(), Method: acp.MethodClose, Params: protocol.MustMarshal(object{"sessionId": c.session().ID})}))
		}
		c.outbox.finish()
		timer := time.NewTimer(grace)
		select {
		case <-c.process.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	c.outbox.stop()
	if err := c.process.End(min(grace, proc.Grace)); err != nil {
		c.host.cfg.Log.Warn("end of a hosted agent", "session", c.host.id, "err", err)
	}
	c.wg.Wait()
}

// closes reports whether it has a session that can be closed.
func (c *child) closes() bool {
	open := c.is(phaseOpen)
	c.mu.Lock()
	defer c.mu.Unlock()
	return open && c.about.Close && c.fault == nil
}

// kill ends the process at once.
func (c *child) kill() { c.end(0) }

// session is the child's session as it stands.
func (c *child) session() acp.HostSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.self
}

// change changes what is known of the child's session.
func (c *child) change(f func(self *acp.HostSession)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.self)
}

// reach says how far the child is.
func (c *child) reach(p phase) {
	c.host.mu.Lock()
	c.phase = p
	c.host.mu.Unlock()
}

func (c *child) is(p phase) bool {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	return c.phase == p
}

// touch counts now as the last time the child was heard of.
func (c *child) touch() {
	c.mu.Lock()
	c.heard = time.Now()
	c.mu.Unlock()
}

// quiet is how long the child has said nothing.
func (c *child) quiet() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.heard)
}

// untilQuiet waits until the child has said nothing for that long; at most until it breaks, ctx ends, or stop is closed.
func (c *child) untilQuiet(ctx context.Context, quiet time.Duration, stop <-chan struct{}) {
	for wait := quiet - c.quiet(); wait > 0; wait = quiet - c.quiet() {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			continue
		case <-stop:
		case <-c.broken:
		case <-ctx.Done():
		}
		timer.Stop()
		return
	}
}

// stalled reports whether the child has said nothing for that long, and waits for nothing from us.
func (c *child) stalled(most time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.requests) == 0 && time.Since(c.heard) > most
}

// seenTo keeps what the child was seen to do.
func (c *child) seenTo(what string) {
	c.mu.Lock()
	c.seen[what] = true
	c.mu.Unlock()
}

func (c *child) wasSeenTo(what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[what]
}

// roots are the folders whose files it may use.
func (c *child) roots() []string { return append(c.host.cfg.Roots(c.dir), c.further...) }
