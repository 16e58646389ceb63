//go:build unix && !linux

package proc

import (
	"syscall"
	"time"
)

// attributes: these systems have no signal for the death of the parent. A child of a runtime that was killed is found by the next one.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// onlyStandardFiles keeps descriptors that this process was itself started with from being handed on; those it opens never are.
func onlyStandardFiles() { closeOnExec("/dev/fd") }

// awaitEnd reaps the child at once: here its end cannot be awaited without.
func (p *Process) awaitEnd() error { return p.cmd.Wait() }

func (p *Process) reap(err error) error { return err }

// leftBehind reports whether the group outlives the child, without counting.
func (p *Process) leftBehind() (l Left) {
	if p.token != "" && syscall.Kill(-p.PID(), 0) == nil {
		l.Ended = 1
	}
	return l
}

// Processes that left their group are not looked for.

func signalStrays(string, bool) {}

func endStrays(string, time.Time) bool { return true }
