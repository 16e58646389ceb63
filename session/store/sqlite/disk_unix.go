//go:build unix

package sqlite

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// diskFull reports whether the file system of path has no room for a page.
func diskFull(path string) bool {
	var st unix.Statfs_t
	if unix.Statfs(filepath.Dir(path), &st) != nil {
		return false
	}
	return uint64(st.Bavail)*uint64(st.Bsize) < 64<<10
}

// writable asks whether the file and its folder, where its side files are made, may be written.
func writable(path string) error {
	for _, p := range []string{path, filepath.Dir(path)} {
		if err := unix.Faccessat(unix.AT_FDCWD, p, unix.W_OK, unix.AT_EACCESS); err != nil {
			return &os.PathError{Op: "write", Path: p, Err: err}
		}
	}
	return nil
}

// replaced reports whether path leads no more to what it led to once.
func replaced(path string, once os.FileInfo) bool {
	now, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(now, once)
}
