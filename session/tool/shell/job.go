package shell

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

var _ session.Job = (*running)(nil)

// wait looks after a started command until it has ended, or goes on as a task: after yield_time_ms, or when the session releases the call.
// Where all places for tasks are taken it is waited for to its end.
func (f *foreground) wait(ctx context.Context, bg session.Background) (session.ToolResult, error) {
	limit := time.NewTimer(f.limit)
	defer limit.Stop()
	var yield <-chan time.Time
	var released <-chan struct{}
	if bg != nil {
		timer := time.NewTimer(f.request.yield)
		defer timer.Stop()
		yield, released = timer.C, bg.Released()
	}
	for {
		select {
		case <-f.process.Done():
			return f.result(context.WithoutCancel(ctx)), nil
		case <-ctx.Done():
			return f.stop(ctx, protocol.ToolCancelled), nil
		case <-limit.C:
			return f.stop(ctx, protocol.ToolTimedOut), nil
		case <-yield:
		case <-released:
		}
		if ctx.Err() != nil {
			return f.stop(ctx, protocol.ToolCancelled), nil
		}
		yield, released = nil, nil
		spec := f.spec(f.started)
		free, ok, err := bg.Reserve(spec, false)
		switch {
		case err != nil:
			res := f.stop(ctx, protocol.ToolCancelled)
			if ctx.Err() != nil {
				return res, nil
			}
			return session.ToolResult{}, err
		case !ok:
			f.full = true
			continue
		}
		select {
		case <-f.process.Done():
			free()
			continue
		case <-ctx.Done():
			free()
			continue
		default:
		}
		return f.handOff(ctx, bg, spec, free)
	}
}

// detach starts a command in the background: its place is taken, and the intent on disk, before it starts.
func (f *foreground) detach(ctx context.Context, call session.ToolCall, bg session.Background) (session.ToolResult, error) {
	spec := f.spec(time.Now())
	free, ok, err := bg.Reserve(spec, true)
	if err != nil {
		return session.ToolResult{}, err
	}
	if !ok {
		return session.ToolResult{
			Status: protocol.ToolRejected, ErrorType: protocol.ErrTaskLimit,
			Error: fmt.Sprintf("The command was not started: this session has %d commands in the background, the most it may have. "+
				"Wait until one has ended, or end one with task_control.", liveTasks),
		}, nil
	}
	if ctx.Err() != nil {
		free()
		return *notRun("The turn was cancelled before the command was started."), nil
	}
	if refused, err := f.start(call); err != nil || refused != nil {
		free()
		return session.Ended(refused, err)
	}
	return f.handOff(ctx, bg, spec, free)
}

// spec is what the record of a task says of it.
func (c *running) spec(started time.Time) session.JobSpec {
	return session.JobSpec{
		Command: c.request.command, CWD: filepath.ToSlash(c.cwd), Backend: c.tool.shell.backend, Executable: c.tool.shell.shown(),
		Notify: c.request.notify, Started: started,
	}
}

// stop ends the command and tells so.
func (f *foreground) stop(ctx context.Context, why string) session.ToolResult {
	_ = f.end(why) // the result says when it is not confirmed
	return f.result(context.WithoutCancel(ctx))
}

// handOff makes a running command a task. Its output goes to a file from now on, with all that was so far. What is told as touched is what
// had changed by now.
func (f *foreground) handOff(ctx context.Context, bg session.Background, spec session.JobSpec, free func()) (session.ToolResult, error) {
	f.output.store()
	v := f.output.shown() // before the session has it, which may close it
	res := session.ToolResult{Meta: f.meta(v), Touched: f.touched(context.WithoutCancel(ctx))}
	go f.watch()
	id, err := bg.HandOff(f.running, spec)
	if err != nil {
		free()
		res := f.stop(ctx, protocol.ToolCancelled)
		switch {
		case res.ErrorType == "" || ctx.Err() != nil: // it has ended by itself meanwhile, or with its turn
			return res, nil
		case protocol.KindOf(err) == protocol.PersistenceError:
			res.Status, res.ErrorType = protocol.ToolFailed, protocol.ErrTaskPersistence
			res.Error = "The command was ended: that it goes on in the background could not be saved. data holds what it wrote until then."
			return res, nil
		}
		return session.ToolResult{}, err
	}
	f.handed = true
	d := f.told(protocol.TaskRunning, -1, v)
	d.Task, d.Background = id, id
	res.Status, res.Data = protocol.ToolCompleted, d
	return res, nil
}

// watch awaits the end of a task, and ends it when its time is up.
func (c *running) watch() {
	var up <-chan time.Time
	if c.request.timeout > 0 {
		timer := time.NewTimer(time.Until(c.started.Add(c.request.timeout)))
		defer timer.Stop()
		up = timer.C
	}
	select {
	case <-c.process.Done():
	case <-up:
		_ = c.end(protocol.TaskTimedOut) // while it is not confirmed the task runs
		<-c.process.Done()
	}
	c.output.close()
	close(c.done)
}

// Output implements session.Job.
func (c *running) Output(from int64, max int) (out, err string, start, next int64) {
	parts, start, next := c.output.read(from, max)
	return parts[stdout], parts[stderr], start, next
}

// Tail implements session.Job. A stream's last 64 KiB are there.
func (c *running) Tail(max int) (out, err string) {
	parts := c.output.tails(max)
	return parts[stdout], parts[stderr]
}

// Sum implements session.Job. Bytes are those of the text, as Output counts them.
func (c *running) Sum() session.JobSum { return c.output.sum() }

// Done implements session.Job. All output is there by then.
func (c *running) Done() <-chan struct{} { return c.done }

// Exit implements session.Job. A code of 128 and more is that of a signal, as shells say it.
func (c *running) Exit() (status string, code int) {
	select {
	case <-c.done:
	default:
		return protocol.TaskRunning, -1
	}
	why, _, code := c.ending()
	switch {
	case why != "":
		return why, code
	case code == 0:
		return protocol.TaskCompleted, 0
	}
	return protocol.TaskFailed, code
}

// End implements session.Job. It may be called again, also while it runs.
func (c *running) End() error {
	if err := c.end(protocol.TaskCancelled); err != nil {
		return &unconfirmed{err}
	}
	<-c.done
	return nil
}

// unconfirmed is the error of End.
type unconfirmed struct{ cause error }

func (*unconfirmed) Error() string { return "Termination not confirmed" }

func (e *unconfirmed) Unwrap() error { return e.cause }

// Close implements session.Job. What a command that has not ended writes from now on is dropped.
func (c *running) Close() { c.release() }
