package proc

import "os"

// SameFile reports whether name still leads to f: somebody may have removed a lock file between its opening and its lock.
func SameFile(f *os.File, name string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Stat(name)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}
