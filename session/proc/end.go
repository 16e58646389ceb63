package proc

import (
	"errors"
	"fmt"
	"time"
)

const (
	// Grace is how long a child has between being asked to end and being killed.
	Grace = time.Second
	// confirmAfter is how long the end of what was killed is waited for.
	confirmAfter = 2 * time.Second
)

// ErrNotConfirmed says that a child was killed and is not known to have ended: the kernel holds it, in a system call that does not end.
var ErrNotConfirmed = errors.New("termination not confirmed")

// Terminate asks the child and what it started to end.
func (p *Process) Terminate() {
	p.signal(func() { p.group.terminate(p.cmd) })
	signalStrays(p.token, false)
}

// Kill ends the child and what it started at once.
func (p *Process) Kill() {
	p.signal(func() { p.group.kill(p.cmd) })
	signalStrays(p.token, true)
}

// signal does nothing once the child was reaped: its id may be somebody else's.
func (p *Process) signal(send func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		send()
	}
}

// End ends the child and what it started, also what left its group (Linux): asked first, killed after grace, or as soon as the owner refuses
// new children. It returns when the end is confirmed; ErrNotConfirmed when it is not, 2 s after the kill.
func (p *Process) End(grace time.Duration) error {
	var refused <-chan struct{} // never, without an owner
	if p.owner != nil {
		refused = p.owner.refused
	}
	select {
	case <-refused:
		grace = 0
	default:
	}
	if grace > 0 {
		p.Terminate()
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-refused:
		case <-timer.C:
		}
	}
	p.Kill()
	deadline := time.Now().Add(confirmAfter)
	timer := time.NewTimer(confirmAfter)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		return fmt.Errorf("process %d: %w", p.PID(), ErrNotConfirmed)
	}
	if !endStrays(p.token, deadline) {
		return fmt.Errorf("processes started by %d: %w", p.PID(), ErrNotConfirmed)
	}
	return nil
}
