//go:build unix

package main

import (
	"os"
	"syscall"
)

// stopSignals end a turn at first, the program at second.
func stopSignals() []os.Signal { return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} }

// endSignals start the graceful end of a server.
func endSignals() []os.Signal { return []os.Signal{syscall.SIGTERM, syscall.SIGHUP} }

// ignorePipe keeps a closed stdout from killing the process before it has written its end.
func ignorePipe() { swallow(syscall.SIGPIPE) }
