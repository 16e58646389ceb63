package sqlite

import (
	"errors"
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

// tryLock takes the OS lock on f for as long as it is open, alone or together with others that only ask; false when somebody has it alone.
func tryLock(f *os.File, alone bool) (bool, error) {
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if alone {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// replaced reports whether path leads no more to what it led to once. Here a file that is open can neither be removed nor replaced.
func replaced(string, os.FileInfo) bool { return false }
