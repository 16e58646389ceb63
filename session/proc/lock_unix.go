//go:build unix

package proc

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the OS lock on f for as long as it is open; false when somebody has it.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// killLeader kills a child of a dead runtime with its group.
func killLeader(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
