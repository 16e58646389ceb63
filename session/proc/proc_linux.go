package proc

import (
	"errors"
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes: the child dies when the thread that forked it does, at the latest with this process, however that ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// onlyStandardFiles keeps descriptors that this process was itself started with from being handed on; those it opens never are.
func onlyStandardFiles() {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		closeOnExec("/proc/self/fd")
	}
}

// awaitEnd waits until the child has ended and leaves it to be reaped: until then its id, which is its group's, is given to nobody else.
func (p *Process) awaitEnd() error {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.PID(), &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return nil // an error is told by reap as well
		}
	}
}

func (p *Process) reap(error) error { return p.cmd.Wait() }

// leftBehind looks for what a child that has just ended left: in its group, and out of it.
func (p *Process) leftBehind() (l Left) {
	if p.token == "" {
		return l
	}
	for _, s := range straysSince(p.PID(), p.token, p.PID()) {
		switch {
		case s.pid == p.PID():
		case s.group == p.PID():
			l.Ended++
		default:
			l.Running++
		}
	}
	return l
}

func firstThread() bool { return unix.Gettid() == unix.Getpid() }
