package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"modernc.org/sqlite"

	"github.com/rind-dev/rind/session"
)

var tuneOnce sync.Once

// tune sets what holds for every connection of the process, before the first file is opened.
func tune() {
	tuneOnce.Do(func() {
		_, _ = sqlite.OFDLocking(true) // a closed descriptor of ours must not drop SQLite's locks; absent on other systems
		_, _ = sqlite.Fdatasync(true)
	})
}

// opening is one try to open the file; everybody who needs it meanwhile waits for the same one.
type opening struct {
	done chan struct{}
	err  error
}

// db opens the file if nobody has, and returns the reading connections.
func (s *Store) db(ctx context.Context) (*readers, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, session.ErrClosed
	}
	return s.opened(ctx)
}

// opened is db without the question whether the store is closed: the writer may still open the file for what was handed over before. It
// is called with mu held and gives it back.
func (s *Store) opened(ctx context.Context) (*readers, error) {
	if s.read != nil {
		defer s.mu.Unlock()
		return s.read, nil
	}
	o := s.opening
	if o == nil {
		o = &opening{done: make(chan struct{})}
		s.opening = o
		go s.openFile(o)
	}
	s.mu.Unlock()
	select {
	case <-o.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if o.err != nil {
		return nil, o.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read, nil
}

func (s *Store) openFile(o *opening) {
	tune()
	m, why, err := s.prepare()
	var file os.FileInfo
	if err == nil {
		file, err = os.Stat(s.path)
		err = s.fault("open", err)
	}
	s.mu.Lock()
	if err == nil {
		s.read = newReaders(s.life, m != immutable, func() (*connection, error) {
			c, err := s.connect(m)
			return c, s.locked(err)
		})
		s.mode, s.readOnly, s.file = m, why, file
	}
	o.err, s.opening = err, nil
	s.mu.Unlock()
	close(o.done)
}

// moved is the error of a file that is not where it was when it was opened: what is written to it, nobody would find again.
func (s *Store) moved() error {
	s.mu.Lock()
	file := s.file
	s.mu.Unlock()
	if file != nil && replaced(s.path, file) {
		return fmt.Errorf("%w: %s was removed or replaced while rind was running: put it back, or start rind again", session.ErrReadOnly, s.path)
	}
	return nil
}

// prepare makes sure that the file is ours, of a version we can work on, and private. It says how the file can be used, and why it
// cannot be written when that is so.
func (s *Store) prepare() (m mode, why, err error) {
	info, err := os.Stat(s.path)
	switch {
	case err == nil && info.IsDir():
		return 0, nil, fmt.Errorf("%w: %s is a directory, not a file: move it away", session.ErrCorrupt, s.path)
	case err == nil && info.Size() == 0 && !s.opt.ReadOnly:
		s.opt.Log.Warn("store file is empty: starting a new one", "path", s.path)
		s.keepOrphan()
	case errors.Is(err, os.ErrNotExist) && s.opt.ReadOnly:
		return 0, nil, fmt.Errorf("%w: there is no store at %s", session.ErrNotFound, s.path)
	case errors.Is(err, os.ErrNotExist):
		if err := s.make(); err != nil {
			return 0, nil, fmt.Errorf("%w: %s: check the permissions of its folder: %w", session.ErrReadOnly, s.path, err)
		}
	case err != nil:
		return 0, nil, fmt.Errorf("%w: %s: check its permissions: %w", session.ErrReadOnly, s.path, err)
	}
	if s.opt.ReadOnly {
		why = fmt.Errorf("%w: %s was opened for reading only", session.ErrReadOnly, s.path)
	} else {
		s.private()
		if why = s.migrate(); !errors.Is(why, session.ErrReadOnly) {
			return readWrite, nil, why
		}
	}
	for _, m := range []mode{readOnly, immutable} {
		if m == immutable {
			if wal, statErr := os.Stat(s.path + "-wal"); statErr == nil && wal.Size() > 0 {
				break // what it holds would not be seen
			}
		}
		var at int
		if at, err = s.peek(m); err == nil && at < schemaNumber {
			err = why // it would have to be migrated first
		}
		if err == nil {
			return m, why, nil
		}
		if !errors.Is(err, session.ErrReadOnly) {
			break
		}
	}
	return 0, nil, err
}

// make creates the file here rather than in SQLite, so that it is private from its first byte whatever the umask; -wal and -shm take its
// mode.
func (s *Store) make() error {
	s.keepOrphan()
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// keepOrphan gives a WAL whose file is gone a second name: SQLite removes the first, and it may be all that is left of somebody's work.
func (s *Store) keepOrphan() {
	if wal, err := os.Stat(s.path + "-wal"); err != nil || wal.Size() == 0 {
		return
	}
	if main, err := os.Stat(s.path); err == nil && main.Size() > 0 {
		return // another process has begun the file meanwhile, and the WAL is its
	}
	kept := s.path + "-wal.orphan"
	if os.Link(s.path+"-wal", kept) == nil {
		s.opt.Log.Warn("store file is gone, its write-ahead log is not: kept aside", "path", kept)
	}
}

// private takes the rights of others from a file that was copied here without care.
func (s *Store) private() {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(s.path + suffix); err == nil && info.Mode().Perm()&0o077 != 0 {
			_ = os.Chmod(s.path+suffix, 0o600)
		}
	}
}
