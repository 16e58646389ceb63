//go:build unix

package main

import (
	"os"
	"syscall"
)

// stopSignals end a turn at first, the program at second.
func stopSignals() []os.Signal { return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} }
