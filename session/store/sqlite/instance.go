package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// instance is this process as others see it: alive exactly while it holds the OS lock on its file in the locks folder.
type instance struct {
	dir, id string

	mu   sync.Mutex
	file *os.File
}

func (i *instance) name(id string) string { return filepath.Join(i.dir, id) }

// hold takes the lock, once.
func (i *instance) hold() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.file != nil {
		return nil
	}
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return fmt.Errorf("lock folder: %w", err)
	}
	for range 10 {
		f, err := os.OpenFile(i.name(i.id), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return fmt.Errorf("lock file: %w", err)
		}
		ok, err := tryLock(f)
		if ok && err == nil && sameFile(f, i.name(i.id)) { // somebody may have removed it as dead between the two
			_, _ = f.WriteString(pidText() + "\n") // for a person who looks; nothing reads it
			i.file = f
			return nil
		}
		_ = f.Close()
		if err != nil {
			return fmt.Errorf("lock %s: %w", i.name(i.id), err)
		}
	}
	return fmt.Errorf("lock %s: taken by another process", i.name(i.id))
}

// alive reports whether an instance's process lives. The file of a dead one is removed.
func (i *instance) alive(id string) bool {
	if id == "" || filepath.Base(id) != id {
		return false
	}
	if id == i.id {
		return true
	}
	f, err := os.OpenFile(i.name(id), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	ok, err := tryLock(f)
	if err != nil || !ok {
		return true
	}
	_ = os.Remove(i.name(id)) // while the lock is held, so that nobody else has it
	return false
}

func (i *instance) release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.file == nil {
		return
	}
	_ = os.Remove(i.name(i.id))
	_ = i.file.Close()
	i.file = nil
}
