package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

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

// tryLock takes the OS lock on f for as long as it is open; false when another process has it.
func tryLock(f *os.File) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// sameFile reports whether f is still the file that name leads to.
func sameFile(f *os.File, name string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Stat(name)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

func pidText() string { return strconv.Itoa(os.Getpid()) }
