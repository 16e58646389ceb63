//go:build unix

package roots

import (
	"io/fs"
	"os"
	"syscall"
)

// noWait keeps open from waiting for the other end of a pipe that took a file's place.
const noWait = syscall.O_NONBLOCK

// keepOwner gives f the owner of the file it is to replace, where this process may.
func keepOwner(f *os.File, old fs.FileInfo) {
	want, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	info, err := f.Stat()
	if err != nil {
		return
	}
	if have, ok := info.Sys().(*syscall.Stat_t); ok && (have.Uid != want.Uid || have.Gid != want.Gid) {
		_ = f.Chown(int(want.Uid), int(want.Gid))
	}
}

// syncFolder makes a rename outlive a power cut, where the file system can.
func syncFolder(h *os.Root) {
	d, err := h.Open(".")
	if err != nil {
		return
	}
	_ = d.Sync()
	_ = d.Close()
}
