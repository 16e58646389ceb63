// Package proc is the only room that starts processes. A child runs in a process group of its own with an empty standard input, inherits
// no descriptor but the three standard ones, and has its output drained whatever the reader does; the whole group is ended with it.
//
// Each Process owns the goroutines that drain its output and reap it; they end when the child has ended and its pipes are closed, at the
// latest a second after the group was killed.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// drainAfter is how long output is still read after the child itself has ended: a grandchild may hold the pipe.
const drainAfter = time.Second

// Spec says what to run.
type Spec struct {
	Path   string // executable, absolute or looked up in PATH
	Args   []string
	Dir    string
	Env    []string  // the whole environment; nil is an empty one
	Stdin  io.Reader // nil is empty; it must come to an end for the child to be reaped
	Stdout io.Writer // nil discards
	Stderr io.Writer // nil discards
}

// Process is a running child.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex // guards err
	err error
}

// Exit is how a child ended.
type Exit struct {
	Code   int    // -1 when a signal ended it
	Signal string // "" for none
}

// Start starts a child.
func Start(s Spec) (*Process, error) {
	cmd := exec.Command(s.Path, s.Args...)
	cmd.Dir, cmd.Env = s.Dir, s.Env
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Stdin, s.Stdout, s.Stderr
	cmd.WaitDelay = drainAfter
	cmd.SysProcAttr = group()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	go func() {
		err := cmd.Wait()
		killGroup(cmd) // what the child left behind in its group
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(p.done)
	}()
	return p, nil
}

// PID is the child's process id, which is its group's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended and was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the child; when ctx ends first, the group is killed.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Kill()
		<-p.done
	}
	p.mu.Lock()
	err := p.err
	p.mu.Unlock()
	if _, ok := errors.AsType[*exec.ExitError](err); ok || err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return exitOf(p.cmd), nil
	}
	return exitOf(p.cmd), err
}

// Kill ends the whole group at once.
func (p *Process) Kill() { killGroup(p.cmd) }

// Terminate asks the whole group to end.
func (p *Process) Terminate() { terminateGroup(p.cmd) }
