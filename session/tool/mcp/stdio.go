package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/rind-dev/rind/session/proc"
)

const (
	maxUnsent = 2 * maxMessage // bytes that wait for a server to read them
	errorLine = 2048           // bytes of a line of standard error that are looked at
)

var errUnread = errors.New("the server does not read what it is sent")

// child is the link to a program: one message a line, over its standard streams. It owns a goroutine that writes and one that awaits the
// end of the program; both end with it, at the latest in close.
type child struct {
	peer     *peer
	entry    *entry
	env      []string
	children *proc.Children

	process *proc.Process
	out     *messages
	errors  *errorLines
	in      *os.File
	wg      sync.WaitGroup

	mu     sync.Mutex // guards what follows
	wake   *sync.Cond
	queue  [][]byte
	queued int // bytes
	shut   bool
}

func newChild(p *peer, e *entry, c *Config) *child {
	l := &child{peer: p, entry: e, env: environ(c.Env, e.env), children: c.Children, out: &messages{peer: p}, errors: &errorLines{peer: p, entry: e}}
	l.wake = sync.NewCond(&l.mu)
	return l
}

// start implements link.
func (l *child) start() error {
	if l.children == nil {
		return &lasting{errors.New("programs cannot be started here")}
	}
	if info, err := os.Stat(l.entry.dir); err != nil || !info.IsDir() {
		return &lasting{fmt.Errorf("its working folder %s is not there", clean(l.entry.dir, 200))}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	l.in = w
	l.process, err = l.children.Start(proc.Spec{
		Path: l.entry.command, Args: l.entry.args, Dir: l.entry.dir, Env: l.env, Stdin: r, Stdout: l.out, Stderr: l.errors,
	})
	_ = r.Close() // the child has its own
	if err != nil {
		_ = w.Close()
		if errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "executable file not found") {
			return &lasting{fmt.Errorf("there is no program %s; install it or correct command", clean(l.entry.command, 200))}
		}
		return err
	}
	l.wg.Go(l.write)
	l.wg.Go(l.await)
	return nil
}

// write sends what is queued until the link is shut, or nobody reads any more.
func (l *child) write() {
	for {
		l.mu.Lock()
		for len(l.queue) == 0 && !l.shut {
			l.wake.Wait()
		}
		if l.shut {
			l.mu.Unlock()
			return
		}
		msg := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		l.queued -= len(msg)
		l.mu.Unlock()
		if _, err := l.in.Write(msg); err != nil {
			l.stop()
			return
		}
	}
}

// stop takes no more to send and closes the child's input.
func (l *child) stop() {
	l.mu.Lock()
	l.shut = true
	l.queue = nil
	l.mu.Unlock()
	l.wake.Broadcast()
	_ = l.in.Close()
}

// await tells the peer how the program ended.
func (l *child) await() {
	<-l.process.Done()
	l.out.finish() // nothing writes there any more; a last line may lack its end
	exit, err := l.process.Wait(context.Background())
	text := fmt.Sprintf("the server ended with exit code %d", exit.Code)
	switch {
	case err != nil:
		text = "the server ended: " + err.Error()
	case exit.Signal != "":
		text = "the server was ended by signal " + exit.Signal
	}
	if last := l.errors.tail(); last != "" {
		text += ": " + last
	}
	l.peer.end(errors.New(text))
	l.stop()
}

// send implements link.
func (l *child) send(msg []byte, _ int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.shut:
		return errors.New("the server has closed its input")
	case l.queued+len(msg) > maxUnsent:
		return errUnread
	}
	l.queue = append(l.queue, append(bytes.Clone(msg), '\n'))
	l.queued += len(msg) + 1
	l.wake.Signal()
	return nil
}

// opened implements link.
func (l *child) opened(_ context.Context, _ string, msg []byte) error { return l.send(msg, 0) }

// withdraw implements link.
func (l *child) withdraw(int64) {}

// close implements link.
func (l *child) close() {
	if l.process == nil {
		return
	}
	l.stop()
	if err := l.process.End(proc.Grace); err != nil {
		l.peer.log.Warn("end of mcp server", "err", err)
	}
	l.wg.Wait()
}

// messages splits a child's output into messages. A line that is too long is dropped, and the call it answers fails.
type messages struct {
	peer *peer
	line []byte
	over bool   // the line is too long: only its ends are kept
	tail []byte // of such a line
}

const sniffed = 4 << 10 // bytes at each end of a long line that are searched for its id

// Write implements io.Writer. It never fails: a child whose output is not taken would hang.
func (m *messages) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		part := b
		if end >= 0 {
			part = b[:end]
		}
		m.add(part)
		if end < 0 {
			break
		}
		b = b[end+1:]
		m.finish()
	}
	return n, nil
}

func (m *messages) add(part []byte) {
	if !m.over && len(m.line)+len(part) > m.peer.limit {
		m.over = true
		m.tail = bytes.Clone(m.line[max(0, len(m.line)-sniffed):])
		m.line = bytes.Clone(m.line[:min(len(m.line), sniffed)])
	}
	if m.over {
		m.tail = append(m.tail, part[max(0, len(part)-sniffed):]...)
		m.tail = m.tail[max(0, len(m.tail)-sniffed):]
		return
	}
	m.line = append(m.line, part...)
}

func (m *messages) finish() {
	switch {
	case m.over:
		id := answered(m.line, m.tail)
		m.peer.said("mcp server wrote a line that is too long", "limit_bytes", m.peer.limit, "call", id)
		if mayAnswer().Match(m.line) && !noAnswer().Match(m.line) {
			m.peer.fail(id, errTooLong) // 0, where it cannot be told which: all of them
		}
	case len(bytes.TrimSpace(m.line)) == 0:
	default:
		m.peer.receive(m.line)
	}
	if m.line = m.line[:0]; cap(m.line) > 1<<20 {
		m.line = nil
	}
	m.over, m.tail = false, nil
}

var (
	mayAnswer = pattern(`^\s*[\[{]\s*[\["{]`)
	noAnswer  = pattern(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"method"`)
	idFirst   = pattern(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*"?([0-9]{1,18})"?\s*,`)
	idLast    = pattern(`,\s*"id"\s*:\s*"?([0-9]{1,18})"?\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$|,\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"?([0-9]{1,18})"?\s*\}\s*$`)
)

// answered is the id of the call that a message answers, told by its ends; 0 when they do not tell.
func answered(head, tail []byte) int64 {
	found := idFirst().FindSubmatch(head)
	if found == nil {
		found = idLast().FindSubmatch(tail)
	}
	for i := 1; i < len(found); i++ {
		if n, err := strconv.ParseInt(string(found[i]), 10, 64); err == nil {
			return n
		}
	}
	return 0
}

// errorLines puts a child's standard error into the log, bounded, and remembers the last line.
type errorLines struct {
	peer  *peer
	entry *entry
	line  []byte

	mu   sync.Mutex
	last string
}

// Write implements io.Writer. It never fails.
func (e *errorLines) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		part, rest, whole := bytes.Cut(b, []byte{'\n'})
		e.line = append(e.line, part[:min(len(part), errorLine-len(e.line))]...)
		if whole {
			e.finish()
		}
		b = rest
	}
	return n, nil
}

func (e *errorLines) finish() {
	text := clean(e.entry.quiet.Replace(string(e.line)), 240)
	e.line = e.line[:0]
	if text == "" {
		return
	}
	e.mu.Lock()
	e.last = text
	e.mu.Unlock()
	e.peer.said("mcp server stderr", "line", text)
}

func (e *errorLines) tail() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last
}
