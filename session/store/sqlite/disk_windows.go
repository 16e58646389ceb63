package sqlite

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// diskFull reports whether the volume of path has no room for a page.
func diskFull(path string) bool {
	dir, err := windows.UTF16PtrFromString(filepath.Dir(path))
	if err != nil {
		return false
	}
	var free uint64
	return windows.GetDiskFreeSpaceEx(dir, &free, nil, nil) == nil && free < 64<<10
}

// writable asks whether the file may be written. Rights on a folder say little on this system.
func writable(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// replaced reports whether path leads no more to what it led to once. Here a file that is open can neither be removed nor replaced.
func replaced(string, os.FileInfo) bool { return false }
