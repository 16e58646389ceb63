//go:build unix

package main

import (
	"os"
	"syscall"
)

// private reports whether a file is ours and nobody else can read it.
func private(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}
