//go:build unix

package record

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// openAppend opens the log file for its owner only. What is no file is refused before a write could wait on it: O_NONBLOCK keeps the
// opening of a pipe from waiting.
func openAppend(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return f, nil
}

// withoutSignal gives standard error under another number: a write to file 1 or 2 whose reader is gone ends a Go program, one to any
// other is just an error.
func withoutSignal(w io.Writer) io.Writer {
	f, ok := w.(*os.File)
	if !ok || f.Fd() > 2 {
		return w
	}
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return io.Discard
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), f.Name())
}
