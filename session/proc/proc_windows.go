package proc

import (
	"os/exec"
	"syscall"
)

// group: on Windows the child gets a console group of its own; grandchildren are not reached yet (preview).
func group() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func terminateGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func exitOf(cmd *exec.Cmd) Exit {
	if cmd.ProcessState == nil {
		return Exit{Code: -1}
	}
	return Exit{Code: cmd.ProcessState.ExitCode()}
}
