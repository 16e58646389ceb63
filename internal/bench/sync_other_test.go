//go:build unix && !linux

package bench

import "syscall"

func fdatasync(fd int) error { return syscall.Fsync(fd) }
