package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/roots"
)

// running is a command and all that belongs to it: it needs neither the call's context nor its goroutine, so that it can outlive the call. It
// is the session.Job of a call that handed it off (job.go).
type running struct {
	tool    *bash
	request request
	session session.SessionID
	cwd     string
	process *proc.Process
	output  *output
	sandbox string    // its name; "" for none
	temp    string    // a folder of its own that goes with it; "" for none
	started time.Time // just before it was
	done    chan struct{}
	once    sync.Once // of release

	mu    sync.Mutex // guards what follows
	why   string     // status it was ended with; "" when it ended by itself
	limbo bool       // its end is not confirmed
}

// foreground is a command while its call looks after it.
type foreground struct {
	*running
	roots  *roots.Roots
	before *roots.Snapshot // nil for a command that only reads
	limit  time.Duration   // how long the call waits for it
	full   bool            // there was no place for it in the background
	handed bool            // it is a task by now
}

// told is the data of a result.
type told struct {
	Status     string `json:"status"` // completed, failed, cancelled, timed_out, running
	ExitCode   int    `json:"exit_code"`
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	CWD        string `json:"cwd"`
	Backend    string `json:"shell_backend"`
	Executable string `json:"shell_executable"`
	Task       string `json:"task_id,omitempty"` // of running
	Background string `json:"bg_id,omitempty"`   // the same
}

// prepare finds what a command needs; start starts it.
func (b *bash) prepare(ctx context.Context, call session.ToolCall, req request) (*foreground, *session.ToolResult, error) {
	if ctx.Err() != nil {
		return nil, notRun("The turn was cancelled before the command was started."), nil
	}
	if b.shell.path == "" {
		return nil, &session.ToolResult{ErrorType: protocol.ErrInternal, Error: "There is no shell in PATH that could run the command."}, nil
	}
	r, err := roots.OpenAllowing(call.Roots, call.Outside)
	if err != nil {
		refused, err := session.Refused(err)
		return nil, &refused, err
	}
	cwd, refused, err := folder(r, req.cwd)
	if err != nil || refused != nil {
		r.Close()
		return nil, refused, err
	}
	c := &running{tool: b, request: req, session: call.Session, cwd: cwd, done: make(chan struct{})}
	limit := b.MaxTime
	if req.timeout > 0 {
		limit = min(limit, req.timeout)
	}
	return &foreground{running: c, roots: r, limit: limit}, nil, nil
}

func notRun(text string) *session.ToolResult {
	return &session.ToolResult{Status: protocol.ToolCancelled, ErrorType: protocol.ErrCancelled, Error: text}
}

func (c *running) start(call session.ToolCall) (*session.ToolResult, error) {
	b := c.tool
	user := b.Environ()
	spec := proc.Spec{
		Path: b.shell.path, Args: append(b.shell.args[:len(b.shell.args):len(b.shell.args)], c.request.command), Dir: c.cwd,
		Env: environ(user, b.Secrets, c.cwd),
	}
	if err := c.enclose(&spec, user, call); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	c.output = newOutput(c.createOutput)
	spec.Stdout, spec.Stderr = c.output.writer(stdout), c.output.writer(stderr)
	c.started = time.Now()
	var err error
	if c.process, err = b.Children.Start(spec); err != nil {
		if errors.Is(err, proc.ErrRefused) {
			return notRun("The runtime is shutting down; the command was not started."), nil
		}
		return &session.ToolResult{ErrorType: protocol.ErrInternal, Error: fmt.Sprintf("The command could not be started: %s.", protocol.Innermost(err))}, nil
	}
	if b.began != nil {
		b.began(c.process)
	}
	return nil, nil
}

// createOutput makes the file for output that is too long to show.
func (c *running) createOutput() (*os.File, error) {
	if c.tool.Outputs == nil {
		return nil, os.ErrNotExist
	}
	dir := c.tool.Outputs(c.session)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.CreateTemp(dir, "output-*.txt") // 0600
}

// end ends a command that is still running, for a reason.
func (c *running) end(why string) error {
	select {
	case <-c.process.Done():
		return nil
	default:
	}
	c.mu.Lock()
	if c.why == "" { // the first reason is the one
		c.why = why
	}
	c.mu.Unlock()
	err := c.process.End(proc.Grace)
	c.mu.Lock()
	c.limbo = err != nil
	c.mu.Unlock()
	return err
}

// ending says why a command was ended, if it was, and its exit code; -1 where that is not known.
func (c *running) ending() (why string, limbo bool, code int) {
	c.mu.Lock()
	why, limbo = c.why, c.limbo
	c.mu.Unlock()
	select {
	case <-c.process.Done():
	default:
		return why, limbo, -1
	}
	exit, _ := c.process.Wait(context.Background()) // it has ended; an error is one of reading its output
	if exit.Number != 0 {
		return why, limbo, 128 + exit.Number // as shells say it
	}
	return why, limbo, exit.Code
}

// release gives back what the command held. It has ended, or was never started.
func (c *running) release() {
	c.once.Do(func() {
		if c.output != nil {
			c.output.close()
		}
		if c.temp == "" {
			return
		}
		for range 3 { // what has detached itself may be making a file in it
			if os.RemoveAll(c.temp) == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// close is the end of the call.
func (f *foreground) close() {
	f.roots.Close()
	if !f.handed {
		f.release()
	}
}

// told is what a result tells of the command so far.
func (c *running) told(status string, code int, v shown) told {
	return told{
		Status: status, ExitCode: code, Stdout: v.text[stdout], Stderr: v.text[stderr],
		CWD: filepath.ToSlash(c.cwd), Backend: c.tool.shell.backend, Executable: c.tool.shell.shown(),
	}
}

// result tells how an ended command ended.
func (f *foreground) result(ctx context.Context) session.ToolResult {
	f.output.close()
	v := f.output.shown()
	why, limbo, code := f.ending()
	if limbo {
		code = -1
	}
	d := f.told(why, code, v)
	res := session.ToolResult{Meta: f.meta(v), Touched: f.touched(ctx)}
	if note := f.note(why, limbo); note != "" {
		res.Meta["note"] = note
	}
	switch {
	case why == protocol.ToolCancelled:
		res.Status, res.ErrorType, res.Error = why, protocol.ErrCancelled, "The command was cancelled; data holds what it wrote until then."
	case why == protocol.ToolTimedOut && f.limit == f.request.timeout:
		res.Status, res.ErrorType = why, protocol.ErrTimedOut
		res.Error = fmt.Sprintf("The command did not end within %d ms and was ended; data holds what it wrote until then.", f.limit.Milliseconds())
	case why == protocol.ToolTimedOut:
		res.Status, res.ErrorType = why, protocol.ErrTimedOut
		res.Error = fmt.Sprintf("The command was ended after %s, the most a command may take; data holds what it wrote until then.", f.limit.Round(time.Second))
	case code == 0:
		d.Status = protocol.ToolCompleted
	default:
		d.Status = protocol.ToolFailed
	}
	res.Data = d
	return res
}

// meta is the meta of a result.
func (c *running) meta(v shown) map[string]any {
	m := v.meta()
	if c.sandbox != "" {
		m["sandbox"] = c.sandbox
	}
	return m
}

// note says what is to be known beside how an ended command ended; "" for nothing.
func (f *foreground) note(why string, limbo bool) string {
	var notes []string
	if f.full {
		notes = append(notes, fmt.Sprintf("It was waited for to its end: this session has %d commands in the background already.", liveTasks))
	}
	left := f.process.Left()
	switch {
	case limbo:
		notes = append(notes, "The command was killed, but its end is not confirmed.")
	case why != "":
	case left.Ended > 0 && left.Running > 0:
		notes = append(notes, "Background processes of the command were ended; others have detached themselves and run on until the runtime ends.")
	case left.Ended > 0:
		notes = append(notes, "Background processes that the command left behind were ended.")
	case left.Running > 0:
		notes = append(notes, "Processes that have detached themselves from the command run on until the runtime ends.")
	}
	return strings.Join(notes, " ")
}

// touched tells which files are not as they were before the command; nil for none.
func (f *foreground) touched(ctx context.Context) *protocol.Touched {
	if f.before == nil {
		return nil
	}
	changed, more, known := f.before.Compare(ctx, maxTouched)
	switch {
	case !known:
		return &protocol.Touched{Unknown: true}
	case len(changed) == 0:
		return nil
	}
	t := &protocol.Touched{More: more}
	for _, d := range changed {
		touch := protocol.Touch{Path: d.Path, Kind: d.Kind, After: d.After}
		if d.Held && f.tool.Images != nil {
			touch.Before, _ = f.tool.Images.Keep(ctx, f.session, d.Before) // without it, it cannot be put back
		}
		t.Files = append(t.Files, touch)
	}
	return t
}
