package roots

import (
	"io/fs"
	"syscall"
)

// identity is what tells one file from another under its name, and when its content or its properties last changed.
func identity(info fs.FileInfo) (inode uint64, changed int64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino, st.Ctimespec.Nano()
	}
	return 0, 0
}
