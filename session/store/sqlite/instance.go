package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
)

// instance is this process as others see it: alive exactly while it holds the OS lock on its file in the locks folder.
type instance struct {
	dir, id string

	mu     sync.Mutex // also held while the lock is taken, which waits for nobody but those who ask whether we live
	file   *os.File
	closed bool
}

const (
	// holdLimit is how long others may keep our fresh lock file busy by asking.
	holdLimit = 2 * time.Second
	// sweepLimit is how many files of the dead are looked for at the start.
	sweepLimit = 256
)

func (i *instance) name(id string) string { return filepath.Join(i.dir, id) }

// hold takes the lock, once, and then removes the files of instances that died.
func (i *instance) hold() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return session.ErrClosed
	}
	if i.file != nil {
		return nil
	}
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return fmt.Errorf("%w: lock folder: %w", session.ErrReadOnly, err)
	}
	for deadline := time.Now().Add(holdLimit); ; jitter() {
		f, err := os.OpenFile(i.name(i.id), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return fmt.Errorf("%w: lock file: %w", session.ErrReadOnly, err)
		}
		ok, err := proc.TryLock(f, true)
		if ok && err == nil && proc.SameFile(f, i.name(i.id)) { // somebody may have removed it as dead between the two
			_, _ = fmt.Fprintln(f, os.Getpid()) // for a person who looks; nothing reads it
			i.file = f
			i.sweep()
			return nil
		}
		_ = f.Close()
		if err != nil {
			return fmt.Errorf("lock %s: %w", i.name(i.id), err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("lock %s: taken by another process", i.name(i.id))
		}
	}
}

// sweep removes what processes that were killed left behind.
func (i *instance) sweep() {
	dir, err := os.Open(i.dir)
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(sweepLimit)
	for _, id := range names {
		_ = i.alive(id)
	}
}

// alive reports whether an instance's process lives. The file of a dead one is removed. Those who ask take the lock together, so
// that two who ask at once do not take each other for the owner.
func (i *instance) alive(id string) bool {
	if id == "" || filepath.Base(id) != id || id == "." || id == ".." {
		return false
	}
	if id == i.id {
		return true
	}
	f, err := os.OpenFile(i.name(id), os.O_RDWR, 0)
	if err != nil {
		return os.IsPermission(err) // it is there, of somebody else: not for us to call it dead
	}
	ok, err := proc.TryLock(f, false)
	if err != nil || !ok {
		_ = f.Close()
		return true
	}
	err = os.Remove(i.name(id)) // while the lock is held: an owner that starts just now sees that its file is gone, and makes it anew
	_ = f.Close()
	if err != nil {
		_ = os.Remove(i.name(id)) // where open files cannot be removed
	}
	return false
}

func (i *instance) release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	if i.file == nil {
		return
	}
	err := os.Remove(i.name(i.id))
	_ = i.file.Close()
	if err != nil {
		_ = os.Remove(i.name(i.id)) // where open files cannot be removed
	}
	i.file = nil
}
