//go:build unix

package images

import (
	"errors"
	"os"
	"syscall"
)

// full reports whether err says that nothing more can be written: the disk, a quota, a file size limit.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// syncFolder makes names outlive a power cut, where the file system can.
func syncFolder(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	_ = d.Sync()
	_ = d.Close()
}
