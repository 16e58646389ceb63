//go:build unix

package guide

import "syscall"

// noWait keeps open from waiting for the other end of a pipe that took a file's place.
const noWait = syscall.O_NONBLOCK
