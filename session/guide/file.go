package guide

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"
)

// file is a regular file that was found and not yet opened.
type file struct {
	path string // absolute
	info fs.FileInfo
	open func() (*os.File, fs.FileInfo, error)
}

var errNoFile = errors.New("it is no regular file")

// userFile finds a file of the user's own folders, where links may lead anywhere. It does not open it: opening a pipe may never return.
func userFile(path string) (file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return file{}, err
	}
	if !info.Mode().IsRegular() {
		return file{}, errNoFile
	}
	return file{path: path, info: info, open: func() (*os.File, fs.FileInfo, error) {
		f, err := os.OpenFile(path, os.O_RDONLY|noWait, 0)
		if err != nil {
			return nil, nil, err
		}
		now, err := f.Stat()
		if err == nil && !now.Mode().IsRegular() { // somebody may have put a pipe there meanwhile
			err = errNoFile
		}
		if err != nil {
			_ = f.Close()
			return nil, nil, err
		}
		return f, now, nil
	}}, nil
}

// cause is an error of the operating system without the path it is about.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// memory keeps what was made of files, as long as they stay what they were. It is bounded: a runtime may see many workspaces.
type memory struct {
	mu    sync.Mutex // guards the fields below, never held over I/O
	known map[string]kept
	size  int
}

// Bounds of a memory.
const (
	maxKept      = 2048
	maxKeptBytes = 4 << 20
	// unsure is how old a file must be when it is read for its time to tell the next change: some file systems count in 2 s.
	unsure = 2 * time.Second
)

type kept struct {
	info fs.FileInfo
	made any
	size int
}

// remembered gives what make made of f, anew when f changed. make gets the open file and says how many bytes its result holds,
// -1 where the next look may find something else; fresh tells that it ran.
func remembered[T any](m *memory, purpose string, f file, make func(*os.File) (T, int)) (made T, fresh bool, err error) {
	key := purpose + " " + f.path
	m.mu.Lock()
	k, ok := m.known[key]
	m.mu.Unlock()
	if ok && os.SameFile(k.info, f.info) && k.info.Size() == f.info.Size() && k.info.ModTime().Equal(f.info.ModTime()) {
		if made, ok := k.made.(T); ok {
			return made, false, nil
		}
	}
	at := time.Now()
	open, info, err := f.open()
	if err != nil {
		return made, true, err
	}
	defer open.Close()
	made, size := make(open)
	if size >= 0 && at.Sub(info.ModTime()) > unsure {
		m.keep(key, kept{info: info, made: made, size: size + len(key)})
	}
	return made, true, nil
}

func (m *memory) keep(key string, k kept) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.size -= m.known[key].size
	delete(m.known, key)
	if m.known == nil || len(m.known) >= maxKept || m.size+k.size > maxKeptBytes {
		m.known, m.size = map[string]kept{}, 0
	}
	m.known[key], m.size = k, m.size+k.size
}
