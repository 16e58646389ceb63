package images

import (
	"errors"
	"syscall"
)

// full reports whether err says that nothing more can be written: ERROR_DISK_FULL, ERROR_HANDLE_DISK_FULL.
func full(err error) bool {
	return errors.Is(err, syscall.Errno(112)) || errors.Is(err, syscall.Errno(39))
}

// syncFolder does nothing: folders cannot be flushed here.
func syncFolder(string) {}
