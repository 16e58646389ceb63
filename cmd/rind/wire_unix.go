//go:build unix

package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// wireOf takes the protocol's stream out of the way of everything else: descriptor 1 is duplicated, and then leads to standard error, so that
// a stray print of a library, or of a child that inherits it, cannot reach the wire (docs/protocol/acp.md section 1). A stream that is not
// this process's standard output is given back as it is, and so is one that cannot be duplicated: being served unguarded is better than not at all.
func wireOf(out io.Writer) io.Writer {
	if out != io.Writer(os.Stdout) {
		return out
	}
	fd, err := unix.FcntlInt(os.Stdout.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return out
	}
	if unix.Dup2(int(os.Stderr.Fd()), int(os.Stdout.Fd())) != nil {
		_ = unix.Close(fd)
		return out
	}
	return os.NewFile(uintptr(fd), "wire")
}
