//go:build unix

package proc

import (
	"os"
	"os/exec"
	"syscall"
)

// group is the process group of a child. Its id is the child's.
type group struct{}

func (group) adopt(*os.Process) {}

func (group) release() {}

func (group) kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

func (group) terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func exitOf(cmd *exec.Cmd) Exit {
	if cmd.ProcessState == nil {
		return Exit{Code: -1}
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Code: -1, Signal: ws.Signal().String(), Number: int(ws.Signal())}
	}
	return Exit{Code: cmd.ProcessState.ExitCode()}
}
