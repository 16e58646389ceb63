package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/roots"
)

// running is a command and all that belongs to it: it needs neither the call's context nor its goroutine, so that it can outlive the call.
type running struct {
	tool    *bash
	request request
	session session.SessionID
	cwd     string
	process *proc.Process
	output  *output
	sandbox string // its name; "" for none
	temp    string // a folder of its own that goes with it; "" for none
	roots   *roots.Roots
	before  *roots.Snapshot // nil for a command that only reads
	why     string          // status it was ended with; "" when it ended by itself
	limbo   bool            // its end is not confirmed
}

// told is the data of a result.
type told struct {
	Status     string `json:"status"` // completed, failed, cancelled, timed_out
	ExitCode   int    `json:"exit_code"`
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	CWD        string `json:"cwd"`
	Backend    string `json:"shell_backend"`
	Executable string `json:"shell_executable"`
}

// begin starts a command.
func (b *bash) begin(ctx context.Context, call session.ToolCall, req request) (*running, *session.ToolResult, error) {
	if ctx.Err() != nil {
		return nil, notRun("The turn was cancelled before the command was started."), nil
	}
	if b.shell.path == "" {
		return nil, &session.ToolResult{ErrorType: protocol.ErrInternal, Error: "There is no shell in PATH that could run the command."}, nil
	}
	r, err := roots.Open(call.Roots...)
	if err != nil {
		e, ok := errors.AsType[*roots.PathError](err)
		if !ok {
			return nil, nil, err
		}
		status, errorType := e.Outcome()
		return nil, &session.ToolResult{Status: status, ErrorType: errorType, Error: e.Text}, nil
	}
	r.Allow(call.Outside...)
	c := &running{tool: b, request: req, session: call.Session, roots: r}
	refused, err := c.start(ctx, call)
	if err != nil || refused != nil {
		c.close()
		return nil, refused, err
	}
	return c, nil, nil
}

func notRun(text string) *session.ToolResult {
	return &session.ToolResult{Status: protocol.ToolCancelled, ErrorType: protocol.ErrCancelled, Error: text}
}

func (c *running) start(ctx context.Context, call session.ToolCall) (*session.ToolResult, error) {
	b := c.tool
	var refused *session.ToolResult
	var err error
	if c.cwd, refused, err = folder(c.roots, c.request.cwd); err != nil || refused != nil {
		return refused, err
	}
	if !call.Reads {
		c.before = c.roots.Snapshot(ctx, roots.DefaultSnapshot)
	}
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
	if c.process, err = b.Children.Start(spec); err != nil {
		if errors.Is(err, proc.ErrRefused) {
			return notRun("The runtime is shutting down; the command was not started."), nil
		}
		return &session.ToolResult{ErrorType: protocol.ErrInternal, Error: fmt.Sprintf("The command could not be started: %s.", cause(err))}, nil
	}
	return nil, nil
}

// cause is the last, exact part of an error of the operating system.
func cause(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
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
func (c *running) end(why string) {
	c.why = why
	c.limbo = c.process.End(proc.Grace) != nil
}

// close gives back what the command held. It has ended, or was never started.
func (c *running) close() {
	c.roots.Close()
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
}

// result tells how an ended command ended.
func (c *running) result(ctx context.Context) session.ToolResult {
	c.output.close()
	d := told{
		Status: c.why, ExitCode: -1, CWD: filepath.ToSlash(c.cwd), Backend: c.tool.shell.backend, Executable: c.tool.shell.shown(),
	}
	if !c.limbo {
		exit, _ := c.process.Wait(ctx) // it has ended; an error is one of reading its output
		d.ExitCode = exit.Code
		if exit.Number != 0 {
			d.ExitCode = 128 + exit.Number // as shells say it
		}
	}
	shown := c.output.shown()
	d.Stdout, d.Stderr = shown.text[stdout], shown.text[stderr]
	res := session.ToolResult{Meta: shown.meta(), Touched: c.touched(ctx)}
	if c.sandbox != "" {
		res.Meta["sandbox"] = c.sandbox
	}
	if note := c.note(); note != "" {
		res.Meta["note"] = note
	}
	switch {
	case c.why == protocol.ToolCancelled:
		res.Status, res.ErrorType, res.Error = c.why, protocol.ErrCancelled, "The command was cancelled; data holds what it wrote until then."
	case c.why == protocol.ToolTimedOut && c.request.limited:
		res.Status, res.ErrorType = c.why, protocol.ErrTimedOut
		res.Error = fmt.Sprintf("The command did not end within %d ms and was ended; data holds what it wrote until then.", c.request.timeout.Milliseconds())
	case c.why == protocol.ToolTimedOut:
		res.Status, res.ErrorType = c.why, protocol.ErrTimedOut
		res.Error = fmt.Sprintf("The command was ended after %s, the most a command may take; data holds what it wrote until then.", c.request.timeout.Round(time.Second))
	case d.ExitCode == 0:
		d.Status = protocol.ToolCompleted
	default:
		d.Status = protocol.ToolFailed
	}
	res.Data = d
	return res
}

// note says what became of what the command left behind; "" for nothing.
func (c *running) note() string {
	left := c.process.Left()
	switch {
	case c.limbo:
		return "The command was killed, but its end is not confirmed."
	case c.why != "":
		return ""
	case left.Ended > 0 && left.Running > 0:
		return "Background processes of the command were ended; others have detached themselves and run on until the runtime ends."
	case left.Ended > 0:
		return "Background processes that the command left behind were ended."
	case left.Running > 0:
		return "Processes that have detached themselves from the command run on until the runtime ends."
	}
	return ""
}

// touched tells which files are not as they were before the command; nil for none.
func (c *running) touched(ctx context.Context) *protocol.Touched {
	if c.before == nil {
		return nil
	}
	changed, more, known := c.before.Compare(ctx, maxTouched)
	switch {
	case !known:
		return &protocol.Touched{Unknown: true}
	case len(changed) == 0:
		return nil
	}
	t := &protocol.Touched{More: more}
	for _, d := range changed {
		f := protocol.Touch{Path: d.Path, Kind: d.Kind, After: d.After}
		if d.Held && c.tool.Images != nil {
			f.Before, _ = c.tool.Images.Keep(ctx, c.session, d.Before) // without it, it cannot be put back
		}
		t.Files = append(t.Files, f)
	}
	return t
}
