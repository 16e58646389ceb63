package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// forgetTyped drops what was typed before it was asked for: it is no answer.
func forgetTyped(f *os.File) { _ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
