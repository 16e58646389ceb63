package proc

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// identity is how a process is known again: its start time, to the microsecond.
func identity(pid int) (start, boot string) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return "", ""
	}
	return fmt.Sprintf("%d.%06d", k.Proc.P_starttime.Sec, k.Proc.P_starttime.Usec), ""
}
