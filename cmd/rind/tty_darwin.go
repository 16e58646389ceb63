package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// forgetTyped drops what was typed before it was asked for: it is no answer.
func forgetTyped(f *os.File) {
	const read = 1 // FREAD: what waits to be read
	_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, read)
}
