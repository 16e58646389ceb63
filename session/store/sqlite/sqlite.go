// Package sqlite is the durable store: one SQLite file in WAL mode, shared by any number of processes.
//
// Open touches nothing: the file is opened by the first call that needs it, so that a locked or broken file delays no start. A
// Store owns one writer goroutine and connection (started with the first write, ended by Close after the last acknowledge), a few
// reading connections, a goroutine that opens the file (at most some seconds, waited for by Close) and one goroutine and connection a
// Watch (ended by its context or Close). What is waiting when the writer becomes free is one transaction: with synchronous=FULL when
// it holds a fact, NORMAL otherwise. See docs/architecture.md for the promises of the log.
package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Options of a Store; the zero value is what a program wants.
type Options struct {
	Instance string // default: 32 random hex digits
	Locks    string // directory of the instances' lock files; default: locks beside the folder of the file
	ReadOnly bool   // every write gives session.ErrReadOnly; a file that does not exist is not made
	Now      func() time.Time
	Log      *slog.Logger
	// Kill is called at named points of a write ("before-begin", "after-insert", "before-commit", "after-commit", "before-ack") and of
	// a migration ("migrating"); chaos tests end the process there. nil does nothing.
	Kill func(point string)
}

// Store is a session.Store on one file.
type Store struct {
	path string
	opt  Options
	inst *instance
	life context.Context // ended by Close
	end  context.CancelFunc

	mu       sync.Mutex // guards what follows; never held over I/O
	closed   bool
	read     *readers    // nil until the file is open
	opening  *opening    // nil while nobody opens it
	mode     mode        // of the open file
	file     os.FileInfo // the open file, to be known again
	readOnly error       // why it cannot be written; nil when it can
	probed   probed
	queue    []*op
	writing  chan struct{} // closed when the writer goroutine has ended; nil while there is none
	watchers sync.WaitGroup

	bell  chan struct{} // rings the writer: something waits
	close sync.Once
}

var _ session.Store = (*Store)(nil)

// Open names the file; see the package comment.
func Open(path string, opt Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("store path: %w", err)
	}
	if opt.Instance == "" {
		opt.Instance = protocol.RandomIDs{}.Hex32()
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
	s := &Store{path: path, opt: opt, inst: &instance{dir: opt.Locks, id: opt.Instance}, bell: make(chan struct{}, 1)}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Close implements session.Log.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.mu.Lock()
		s.closed = true
		writing := s.writing
		s.mu.Unlock()
		s.end()
		s.ring()
		if writing != nil {
			<-writing
		}
		s.watchers.Wait()
		s.mu.Lock()
		o := s.opening
		s.mu.Unlock()
		if o != nil {
			<-o.done
		}
		s.mu.Lock()
		read := s.read
		s.mu.Unlock()
		if read != nil {
			read.close()
		}
		s.inst.release()
	})
	return nil
}
