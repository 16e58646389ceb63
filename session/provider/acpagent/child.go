package acpagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/protocol/frame"
	"github.com/rind-dev/rind/protocol/rpc"
	"github.com/rind-dev/rind/session/proc"
)

// Bounds of a child.
const (
	maxUnsent   = 2 * frame.MaxBytes // bytes that wait for it to read them
	stderrRing  = 64 << 10
	stderrShown = 8 << 10
	maxRequests = 64 // of the child, in flight
	noiseLogged = 20
	noiseShown  = 200     // bytes of a line
	noiseLines  = 1000    // before the first message
	noiseBytes  = 1 << 20 // likewise
	lastRead    = 500 * time.Millisecond
)

var errUnread = errors.New("the agent does not read what it is sent")

// child is one process of a hosted agent and the connection to it.
type child struct {
	host      *host
	spec      Spec
	dir       string   // absolute; it works there
	further   []string // folders it may use beside
	servers   []Server // of the Model Context Protocol, of its session
	tag       string   // in front of its tool call ids
	process   *proc.Process
	env       []string
	mask      func(string) string
	conn      *rpc.Conn
	stderr    *ring
	terminals terminals
	in        *os.File // our end of its input
	out       *os.File // our end of its output
	wg        sync.WaitGroup
	done      chan struct{} // closed when it has ended and all it said was read
	broken    chan struct{} // closed when it cannot be used any more: see fault

	// Known once it was opened.
	about  acp.Hosted
	self   acp.HostSession
	opened bool
	spent  spent

	// Owned by the reading goroutine.
	meter  *meter
	noise  int  // lines that are no message
	spoken bool // it has sent a message

	mu       sync.Mutex // guards what follows; never held over I/O
	wake     *sync.Cond
	queue    [][]byte
	queued   int // bytes
	shut     bool
	lastID   int64
	fault    error // why broken is closed
	requests map[string]context.CancelFunc
	heard    time.Time
	early    backlog // updates that came before the answer that names their session
	opening  bool
	silent   bool // what it says is a replay
	asked    bool // seen to ask for consent
	seen     map[string]bool
}

// start starts the process; it is not spoken to yet.
func (ho *host) start(spec Spec, dir string, further []string, servers []Server) (*child, error) {
	cfg := &ho.hosts.cfg
	c := &child{
		host: ho, spec: spec, dir: dir, further: further, servers: servers, env: environ(cfg.Environ(), spec.Env, spec.PassEnv), done: make(chan struct{}), broken: make(chan struct{}),
		stderr: &ring{max: stderrRing}, requests: map[string]context.CancelFunc{}, heard: time.Now(), seen: map[string]bool{},
	}
	c.mask = masker(c.env, &spec, secrets(servers), cfg.Redact)
	c.wake = sync.NewCond(&c.mu)
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		_, _ = inR.Close(), inW.Close()
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	c.in, c.out = inW, outR
	c.process, err = cfg.Children.Start(proc.Spec{
		Path: spec.Command, Args: spec.Args, Dir: dir, Env: c.env, Stdin: inR, Stdout: outW, Stderr: c.stderr,
	})
	_, _ = inR.Close(), outW.Close() // the child has its own
	if err != nil {
		_, _ = inW.Close(), outR.Close()
		if errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "executable file not found") {
			return nil, fail(protocol.FailUnavailable, fmt.Sprintf("There is no program %s; install it, or correct the command of this agent.", oneLine(spec.Command, 200)))
		}
		return nil, fail(protocol.FailUnavailable, "The agent could not be started: "+oneLine(err.Error(), 300))
	}
	c.tag = strconv.FormatInt(int64(ho.count()), 36) + ho.run
	c.meter = &meter{from: outR, long: func() { c.fails(errTooLong) }, early: func() { c.fails(errNoAgent) }}
	c.conn = rpc.New(frame.NewReader(c.meter), c, rpc.Options{
		Send:     func(call protocol.Call) { c.send(acp.AppendCall(nil, call)) },
		Withdraw: func(id string) { c.send(acp.AppendWithdrawal(nil, id)) },
		Panicked: func(req protocol.Request, value any, stack []byte) {
			ho.hosts.cfg.Log.Error("panic in a message of a hosted agent", "method", req.Method, "panic", value, "stack", string(stack))
			if req.ID != nil {
				c.reply(protocol.Reply{ID: req.ID, Err: protocol.Errorf(protocol.InternalError, "Internal error.")})
			}
		},
	})
	served := make(chan struct{})
	c.wg.Go(c.write)
	c.wg.Go(func() {
		_ = c.conn.Serve(context.Background())
		close(served)
		c.fails(errClosed)
	})
	c.wg.Go(func() { c.await(served) })
	return c, nil
}

var (
	errTooLong = errors.New("it wrote a line of more than 16 MiB")
	errNoAgent = errors.New("it is not an ACP agent: what it writes on its standard output are no messages")
	errClosed  = errors.New("it closed its output")
)

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
	c.stop()
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

// write sends what is queued until the connection is shut or nobody reads any more.
func (c *child) write() {
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && !c.shut {
			c.wake.Wait()
		}
		if len(c.queue) == 0 {
			c.mu.Unlock()
			_ = c.in.Close()
			return
		}
		msg := c.queue[0]
		c.queue[0] = nil
		c.queue = c.queue[1:]
		c.queued -= len(msg)
		c.mu.Unlock()
		if _, err := c.in.Write(msg); err != nil {
			c.stop()
			_ = c.in.Close()
			return
		}
	}
}

// stop takes no more to send and closes the child's input, also under a write that nobody reads.
func (c *child) stop() {
	c.mu.Lock()
	c.shut = true
	c.queue, c.queued = nil, 0
	c.mu.Unlock()
	c.wake.Broadcast()
	_ = c.in.Close()
}

// finish closes its input once all that is queued was written.
func (c *child) finish() {
	c.mu.Lock()
	c.shut = true
	c.mu.Unlock()
	c.wake.Broadcast()
}

// send queues a line, without its newline.
func (c *child) send(line []byte) {
	c.mu.Lock()
	if c.shut {
		c.mu.Unlock()
		return
	}
	full := c.queued+len(line) > maxUnsent && len(c.queue) > 0
	if !full {
		c.queue = append(c.queue, append(line, '\n'))
		c.queued += len(line) + 1
		c.wake.Signal()
	}
	c.mu.Unlock()
	if full {
		c.fails(errUnread)
	}
}

func (c *child) notify(method string, params any) {
	c.send(acp.AppendNotification(nil, method, params))
}

func (c *child) reply(r protocol.Reply) {
	line, err := acp.AppendReply(nil, r)
	if err != nil {
		line, _ = acp.AppendReply(nil, protocol.Reply{ID: r.ID, Err: protocol.Errorf(protocol.InternalError, "Internal error.")})
	}
	c.send(line)
}

// call asks the child and waits: for the answer, for ctx, or until the child cannot be used any more.
func (c *child) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	type answer struct {
		result json.RawMessage
		err    error
	}
	ch := make(chan answer, 1)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil) // withdraws it, where it was not answered
	id := c.nextID()
	raw := protocol.MustMarshal(params)
	c.wg.Go(func() {
		result, err := c.conn.Call(ctx, protocol.Call{ID: id, Method: method, Params: raw})
		ch <- answer{result, err}
	})
	select {
	case a := <-ch:
		if errors.Is(a.err, rpc.ErrEnded) {
			c.fails(errClosed)
			return nil, c.why()
		}
		return a.result, a.err
	case <-c.broken:
		select {
		case a := <-ch: // it answered, and broke then
			if a.err == nil {
				return a.result, nil
			}
		default:
		}
		return nil, c.why()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c *child) nextID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	return strconv.FormatInt(c.lastID, 10)
}

// end ends the process: a session that can be closed is closed, its input is closed, then it is asked to end, then killed.
func (c *child) end(grace time.Duration) {
	c.mu.Lock()
	closes := c.opened && c.about.Close && c.fault == nil
	c.mu.Unlock()
	c.fails(errors.New("it was ended"))
	if closes && grace > 0 {
		c.send(acp.AppendCall(nil, protocol.Call{ID: c.nextID(), Method: acp.MethodClose, Params: protocol.MustMarshal(map[string]any{"sessionId": c.self.ID})}))
	}
	if grace > 0 {
		c.finish()
		timer := time.NewTimer(grace)
		select {
		case <-c.process.Done():
		case <-timer.C:
		}
		timer.Stop()
	} else {
		c.stop()
	}
	if err := c.process.End(min(grace, proc.Grace)); err != nil {
		c.host.hosts.cfg.Log.Warn("end of a hosted agent", "session", c.host.id, "err", err)
	}
	c.stop()
	c.wg.Wait()
}

// kill ends the process at once.
func (c *child) kill() { c.end(0) }

// Ready implements rpc.Peer.
func (c *child) Ready() {}

// Decode implements rpc.Peer.
func (c *child) Decode(line []byte) (protocol.Request, error) {
	req, err := acp.Decode(line)
	if err != nil {
		c.odd(line, err)
		if r, ok := errors.AsType[*acp.Refusal](err); ok && r.ID != nil && bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) {
			return req, err // a request that is wrong is answered
		}
		return req, acp.ErrIgnored
	}
	c.mu.Lock()
	c.heard = time.Now()
	c.mu.Unlock()
	c.spoken = true
	c.meter.spoken.Store(true)
	return req, nil
}

// Refuse implements rpc.Peer.
func (c *child) Refuse(err error) {
	switch {
	case errors.Is(err, frame.ErrTooLong):
		c.fails(errTooLong)
	case errors.Is(err, acp.ErrIgnored):
	default:
		if r, ok := errors.AsType[*acp.Refusal](err); ok && r.ID != nil {
			c.reply(protocol.Reply{ID: r.ID, Err: r.Err})
			return
		}
		c.odd(nil, err)
	}
}

// odd counts a line that is no message, and logs the first of them.
func (c *child) odd(line []byte, err error) {
	c.noise++
	if c.noise <= noiseLogged {
		c.host.hosts.cfg.Log.Info("a hosted agent wrote what is no message", "session", c.host.id, "line", oneLine(c.mask(string(line[:min(len(line), noiseShown)])), noiseShown), "err", err)
	}
	if !c.spoken && c.noise >= noiseLines {
		c.fails(errNoAgent)
	}
}

// meter counts what a child writes: a line that does not end and noise before the first message are noticed while they come.
type meter struct {
	from   io.Reader
	long   func()
	early  func()
	spoken flag
	line   int
	total  int
}

// Read implements io.Reader.
func (m *meter) Read(b []byte) (int, error) {
	n, err := m.from.Read(b)
	if at := bytes.LastIndexByte(b[:n], '\n'); at >= 0 {
		m.line = n - at - 1
	} else {
		m.line += n
	}
	if m.line > frame.MaxBytes {
		m.long()
	}
	if m.total += n; m.total > noiseBytes && !m.spoken.Load() && m.line != m.total { // a first message may be long itself
		m.early()
	}
	return n, err
}

// ring keeps the newest bytes written to it. Safe for concurrent use.
type ring struct {
	max int

	mu   sync.Mutex // guards data
	data []byte
}

// Write implements io.Writer. It never fails: a child whose errors are not taken would hang.
func (r *ring) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data = append(r.data, b[max(0, len(b)-r.max):]...)
	if over := len(r.data) - r.max; over > r.max { // moved seldom
		r.data = append(r.data[:0], r.data[over:]...)
	}
	return len(b), nil
}

// tail is the newest text, at most n bytes.
func (r *ring) tail(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.ToValidUTF8(string(r.data[max(0, len(r.data)-n):]), "\uFFFD")
}
