// Package sqlite is the durable store: one SQLite file in WAL mode, shared by any number of processes.
//
// Open touches nothing: the file is opened by the first call that needs it, so that a locked or broken file delays no start. A
// Store owns one writer goroutine and connection (started with the first write, ended by Close after the last acknowledge) and a few
// reading connections. What is waiting when the writer becomes free is one transaction: with synchronous=FULL when
// it holds a fact, NORMAL otherwise. See docs/architecture.md for the promises of the log.
package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite"

	"github.com/rind-dev/rind/session"
)

// Options of a Store; the zero value is what a program wants.
type Options struct {
	Instance string // default: 32 random hex digits
	Locks    string // directory of the instances' lock files; default: locks beside the folder of the file
	Now      func() time.Time
	Log      *slog.Logger
	// Kill is called at named points of a write ("before-begin", "after-insert", "before-commit", "after-commit", "before-ack");
	// chaos tests end the process there. nil does nothing.
	Kill func(point string)
}

// Store is a session.Store on one file.
type Store struct {
	path string
	opt  Options
	inst *instance

	mu     sync.Mutex // guards what follows; not held over I/O but for opening the file
	opened bool
	closed bool
	read   *sql.DB

	write    chan *op
	writing  bool
	stop     chan struct{}
	finished chan struct{}
}

var _ session.Store = (*Store)(nil)

var tuneOnce sync.Once

// tune sets what holds for every connection of the process, before the first file is opened.
func tune() {
	tuneOnce.Do(func() {
		_, _ = sqlite.OFDLocking(true) // a closed descriptor of ours must not drop SQLite's locks; absent on other systems
		_, _ = sqlite.Fdatasync(true)
	})
}

// Open names the file; see the package comment.
func Open(path string, opt Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("store path: %w", err)
	}
	if opt.Instance == "" {
		var b [16]byte
		_, _ = rand.Read(b[:])
		opt.Instance = hex.EncodeToString(b[:])
	}
	if opt.Locks == "" {
		opt.Locks = filepath.Join(filepath.Dir(filepath.Dir(path)), "locks")
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Kill == nil {
		opt.Kill = func(string) {}
	}
	return &Store{
		path: path, opt: opt, inst: &instance{dir: opt.Locks, id: opt.Instance},
		write: make(chan *op, 1024), stop: make(chan struct{}), finished: make(chan struct{}),
	}, nil
}

// dsn names the file for database/sql with the pragmas of every connection.
func (s *Store) dsn(readOnly bool) string {
	q := url.Values{}
	for _, p := range []string{"busy_timeout(0)", "foreign_keys(0)", "secure_delete(1)", "trusted_schema(0)", "temp_store(2)", "cache_size(-4096)"} {
		q.Add("_pragma", p)
	}
	if readOnly {
		q.Set("mode", "ro")
	} else {
		q.Set("mode", "rwc")
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(s.path), RawQuery: q.Encode()}).String()
}

// db opens the file if nobody has, and returns the reading connections.
func (s *Store) db() (*sql.DB, error) { return s.dbFor(false) }

// dbFor is db; the writer may still open the file for what was handed over before Close.
func (s *Store) dbFor(writer bool) (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed && !writer {
		return nil, session.ErrClosed
	}
	if s.opened {
		return s.read, nil
	}
	tune()
	if err := s.prepare(); err != nil {
		return nil, err
	}
	read, err := sql.Open("sqlite", s.dsn(false))
	if err != nil {
		return nil, s.fault("open", err)
	}
	read.SetMaxOpenConns(4)
	read.SetMaxIdleConns(2)
	s.read, s.opened = read, true
	return read, nil
}

// prepare makes sure that the file is ours, of a version we can work on, and private.
func (s *Store) prepare() error {
	info, err := os.Stat(s.path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%w: %s is a directory, not a file: move it away", session.ErrCorrupt, s.path)
	case err == nil && info.Size() == 0:
		s.opt.Log.Warn("store file is empty: starting a new one", "path", s.path)
	case errors.Is(err, os.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
			return fmt.Errorf("%w: %s: %w", session.ErrReadOnly, s.path, err)
		}
		// Made here rather than by SQLite, so that it is private from its first byte whatever the umask; -wal and -shm take its mode.
		f, err := os.OpenFile(s.path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", session.ErrReadOnly, s.path, err)
		}
		_ = f.Close()
	case err != nil:
		return fmt.Errorf("%w: %s: %w", session.ErrReadOnly, s.path, err)
	}
	return s.migrate()
}

// retry runs f until the file is not locked by another process, for at most 5 s. SQLite's own handler starves writers of several
// processes under synchronous=FULL, so it is off.
func retry[T any](ctx context.Context, f func() (T, error)) (T, error) {
	deadline := time.Now().Add(busyLimit)
	for {
		v, err := f()
		if err == nil || !isBusy(err) || time.Now().After(deadline) || ctx.Err() != nil {
			return v, err
		}
		jitter()
	}
}

// Close implements session.Log.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	writing, read := s.writing, s.read
	s.mu.Unlock()
	if writing {
		close(s.stop)
		<-s.finished
	}
	var err error
	if read != nil {
		err = read.Close()
	}
	s.inst.release()
	return err
}
