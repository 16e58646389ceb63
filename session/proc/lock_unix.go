//go:build unix

package proc

import (
	"errors"
	"os"
	"syscall"
)

// TryLock takes the OS lock on f for as long as it is open, alone or together with others that share it, instead of the one f has; false when
// somebody has it alone, or shares what is asked for alone. It waits for nobody.
func TryLock(f *os.File, alone bool) (bool, error) {
	how := syscall.LOCK_SH
	if alone {
		how = syscall.LOCK_EX
	}
	err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// killLeader kills a child of a dead runtime with its group.
func killLeader(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
