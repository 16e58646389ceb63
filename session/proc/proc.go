// Package proc is the only room that starts processes. A child runs in a process group of its own with an empty standard input, inherits
// no descriptor but the three standard ones, and has its output drained whatever the reader does; the whole group is ended with it.
// docs/containment.md says what dies when, on which system.
//
// Each Process owns a goroutine, on a thread of its own, that has started it, one that awaits and reaps it, and those that drain its output;
// they end when the child has ended and its pipes are closed, at the latest a second after the group was killed. Children owns none.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"sync"
	"time"
)

const (
	// drainAfter is how long output is still read after the child itself has ended: a grandchild may hold the pipe.
	drainAfter = time.Second
	// lastRead is how long what lies in a pipe is read once its group is dead: who holds it still has left the group.
	lastRead = 50 * time.Millisecond
)

// Spec says what to run.
type Spec struct {
	Path   string // executable, absolute or looked up in PATH
	Args   []string
	Dir    string
	Env    []string  // the whole environment; nil is an empty one
	Stdin  io.Reader // nil is empty; it must come to an end for the child to be reaped
	Stdout io.Writer // nil discards; an error it returns is forgotten, and the rest discarded
	Stderr io.Writer // likewise; the same as Stdout gets both through one pipe, in order
	Bounds *Bounds   // nil: none
}

// Bounds are what a child, and all it starts, may touch (Linux, where Landlock reports a version; elsewhere nothing starts within bounds).
// Paths are absolute. It does not restrict the network, signals, or changing a file's mode, owner and times.
type Bounds struct {
	// Write are the folders and files it may write, with all below; those that do not exist are left out. What lies in a denied folder and is
	// named here may be read and written all the same.
	Write []string
	// Read are folders and files it may read although they lie in what is denied.
	Read []string
	// Deny are the folders and files it may neither write nor read. The names in them stay visible.
	Deny []string
	// Devices lets it use terminals, and shared memory.
	Devices bool
}

// Process is a running child.
type Process struct {
	cmd   *exec.Cmd
	token string // in its environment as RIND_CHILD; "" for none
	owner *Children
	group group
	done  chan struct{}
	gone  bool // guarded by owner.mu: the owner was told of the end

	mu     sync.Mutex // guards what follows; signals are sent under it, so that none goes to a pid that was given back
	reaped bool
	exit   Exit
	err    error
	left   Left
}

// Exit is how a child ended.
type Exit struct {
	Code   int    // -1 when a signal ended it
	Signal string // "" for none
	Number int    // of the signal; 0 for none
}

// Left counts what a child left behind when it ended by itself.
type Left struct {
	Ended   int // members of its group: they were killed
	Running int // those that left the group: they end with the runtime (Children.KillAll, Sweep); Linux only
}

// LookPath finds an executable in PATH, as an absolute path.
func LookPath(name string) (string, error) { return exec.LookPath(name) }

// Start starts a child that no registry knows of: it is ended by its caller, and on Linux dies with this process.
func Start(s Spec) (*Process, error) { return start(s, nil, "") }

func start(s Spec, owner *Children, token string) (*Process, error) {
	cmd := exec.Command(s.Path, s.Args...)
	cmd.Dir = s.Dir
	cmd.Env = append(make([]string, 0, len(s.Env)+1), s.Env...) // never nil, which would inherit ours
	if token != "" {
		cmd.Env = append(cmd.Env, tokenName+"="+token)
	}
	cmd.Stdin = s.Stdin
	cmd.WaitDelay = drainAfter
	cmd.SysProcAttr = attributes()
	p := &Process{cmd: cmd, token: token, owner: owner, done: make(chan struct{})}
	var drains []*drain
	var err error
	if cmd.Stdout, err = newDrain(s.Stdout, &drains); err == nil {
		if same(s.Stdout, s.Stderr) {
			cmd.Stderr = cmd.Stdout // one pipe keeps the order
		} else {
			cmd.Stderr, err = newDrain(s.Stderr, &drains)
		}
	}
	if err != nil {
		closeDrains(drains)
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	started := make(chan error)
	onThread(func() {
		onlyStandardFiles()
		if s.Bounds != nil {
			if err := s.Bounds.restrict(); err != nil {
				started <- fmt.Errorf("sandbox: %w", err)
				return
			}
		}
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		<-p.done
	})
	if err := <-started; err != nil {
		closeDrains(drains)
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	p.group.adopt(cmd.Process)
	go p.run(drains)
	return p, nil
}

// onThread runs f on a thread of its own that ends with it: the kernel ties to the thread that forks what a child may touch, and when it is
// killed. It is never the first thread, which cannot end.
func onThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if !firstThread() {
			f()
			return
		}
		locked := make(chan struct{})
		onThread(func() { // this one is held until that one is on another
			close(locked)
			f()
		})
		<-locked
		runtime.UnlockOSThread()
	}()
}

// run awaits the end of a child.
func (p *Process) run(drains []*drain) {
	copied := make(chan struct{})
	go func() {
		var wg sync.WaitGroup
		for _, d := range drains {
			wg.Go(d.copy)
		}
		wg.Wait()
		close(copied)
	}()
	err := p.awaitEnd()
	timer := time.NewTimer(drainAfter)
	select {
	case <-copied:
	case <-timer.C:
	}
	timer.Stop()
	left := p.leftBehind()
	p.mu.Lock()
	p.group.kill(p.cmd)
	p.reaped = true
	p.mu.Unlock()
	for _, d := range drains {
		d.hurry()
	}
	<-copied
	err = p.reap(err)
	p.group.release()
	p.mu.Lock()
	p.exit, p.err, p.left = exitOf(p.cmd), err, left
	p.mu.Unlock()
	if p.owner != nil {
		p.owner.ended(p)
	}
	close(p.done)
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
	defer p.mu.Unlock()
	if _, ok := errors.AsType[*exec.ExitError](p.err); ok || p.err == nil || errors.Is(p.err, exec.ErrWaitDelay) {
		return p.exit, nil
	}
	return p.exit, p.err
}

// Left says what an ended child left behind. It is all zero before the end.
func (p *Process) Left() Left {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// drain reads one output of a child to its end, whatever becomes of the writer it is for.
type drain struct {
	r, w *os.File
	to   io.Writer
}

// newDrain returns what the child is to write to. A file is given to it as it is.
func newDrain(to io.Writer, all *[]*drain) (io.Writer, error) {
	switch to := to.(type) {
	case nil:
		return nil, nil
	case *os.File:
		return to, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	*all = append(*all, &drain{r, w, to})
	return w, nil
}

// same reports whether two writers are one; such as cannot be compared are not.
func same(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}

func (d *drain) copy() {
	_ = d.w.Close() // the child has its own
	if _, err := io.Copy(d.to, d.r); err != nil {
		_, _ = io.Copy(io.Discard, d.r) // a full pipe would hold the child
	}
	_ = d.r.Close()
}

// hurry ends copy soon.
func (d *drain) hurry() {
	if d.r.SetReadDeadline(time.Now().Add(lastRead)) != nil {
		_ = d.r.Close()
	}
}

func closeDrains(all []*drain) {
	for _, d := range all {
		_ = d.r.Close()
		_ = d.w.Close()
	}
}
