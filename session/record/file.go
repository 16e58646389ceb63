package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// file is the log file and the older ones beside it. Only the goroutine of its queue touches it.
type file struct {
	path     string
	maxSize  int64
	maxFiles int
	f        *os.File
}

// write appends whole lines in one call, so that lines of several processes do not mix.
func (f *file) write(lines []byte) error {
	if err := f.ready(int64(len(lines))); err != nil {
		return err
	}
	_, err := f.f.Write(lines)
	if err != nil {
		f.close() // a disk that was full may have room later, a file that went away is made anew
	}
	return err
}

// ready opens the file where it is not open, and makes room for more bytes. The file may have grown or been moved aside by another
// process since the last time.
func (f *file) ready(more int64) error {
	if f.f != nil && !f.current() {
		f.close()
	}
	if f.f == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	info, err := f.f.Stat()
	if err != nil || info.Size() == 0 || info.Size()+more <= f.maxSize {
		return err
	}
	if !f.rotate() {
		return nil // another process is at it; a little over the size does no harm
	}
	f.close()
	return f.open()
}

func (f *file) open() error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("make the log folder: %w", err)
	}
	opened, err := openAppend(f.path)
	if err != nil {
		return fmt.Errorf("open the log file: %w", err)
	}
	f.f = opened
	return nil
}

func (f *file) close() {
	if f.f != nil {
		_ = f.f.Close()
		f.f = nil
	}
}

// current tells whether the open file is still the one at path.
func (f *file) current() bool {
	mine, err := f.f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(f.path)
	return err == nil && os.SameFile(mine, there)
}

// rotate moves rind.log to rind.log.1 and so on; the oldest goes. One process at a time does it: the one that made the file beside.
// It looks at the file again under that mark, because another one may have just moved it.
func (f *file) rotate() bool {
	mark := f.path + ".rotating"
	m, err := os.OpenFile(mark, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		// A process that died while it rotated leaves its mark; nobody needs seconds for a few renames.
		const stale = 10 * time.Second
		if info, err := os.Stat(mark); err == nil && time.Since(info.ModTime()) > stale {
			_ = os.Remove(mark)
		}
		return false
	}
	_ = m.Close()
	defer os.Remove(mark)
	if !f.current() {
		return true
	}
	// Windows does not rename what is open, so ours is closed before it moves.
	f.close()
	for i := f.maxFiles - 1; i > 0; i-- {
		from := f.path
		if i > 1 {
			from = fmt.Sprintf("%s.%d", f.path, i-1)
		}
		err := os.Rename(from, fmt.Sprintf("%s.%d", f.path, i))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	if f.maxFiles == 1 {
		_ = os.Remove(f.path)
	}
	return true
}
