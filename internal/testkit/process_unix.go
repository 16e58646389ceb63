//go:build unix

package testkit

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the process the head of a new group, so that killGroup meets its children and not the test.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills what is left of the group. Its number stays taken as long as one member lives, also when the head is gone.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
