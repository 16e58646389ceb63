//go:build unix

package main

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// killAt ends this process with SIGKILL when point is reached the nth time; spec is "point:n". With "stop-point:n" it is SIGSTOP, and the process
// can go on from there. A signal takes a moment, in which nothing more may happen.
func killAt(spec string) func(string) {
	point, count, _ := strings.Cut(spec, ":")
	point, stop := strings.CutPrefix(point, "stop-")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		n = 1
	}
	var seen atomic.Int64
	return func(at string) {
		switch {
		case at != point || seen.Add(1) != n:
		case stop:
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			time.Sleep(100 * time.Millisecond)
		default:
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}
