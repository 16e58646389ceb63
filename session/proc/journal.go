package proc

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	lockSuffix   = ".lock"
	recordSuffix = ".child"
	// holdLimit is how long a fresh lock file may be kept busy by those who ask whether its owner lives.
	holdLimit = 500 * time.Millisecond
	// sweepLimit bounds how many files a sweep looks at, sweepTime how long it waits for what it has killed.
	sweepLimit = 4096
	sweepTime  = 2 * time.Second
)

// journal is the folder of what runtimes have running: <instance>.lock, which is locked for as long as the instance lives, and a file
// <instance>.<number>.child for each living child. Nothing in it is flushed: after a power cut there is nothing to find.
type journal struct {
	dir, id string

	mu   sync.Mutex // guards lock; held while the folder is made, which those who start the first children wait for
	once bool
	lock *os.File
}

// record is what a child's file holds.
type record struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
	Boot  string `json:"boot,omitempty"`
}

func (j *journal) path(name string) string { return filepath.Join(j.dir, name) }

// open makes the folder and takes the lock, once.
func (j *journal) open() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.once || j.dir == "" {
		return
	}
	j.once = true
	if os.MkdirAll(j.dir, 0o700) != nil {
		return
	}
	name := j.path(j.id + lockSuffix)
	for deadline := time.Now().Add(holdLimit); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return
		}
		if ok, err := TryLock(f, true); err == nil && ok && SameFile(f, name) { // a sweep may have removed it between the two
			j.lock = f
			return
		}
		_ = f.Close()
	}
}

func (j *journal) held() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lock != nil
}

func (j *journal) note(token string, pid int) {
	if !j.held() {
		return
	}
	start, boot := identity(pid)
	if start == "" {
		return // it has ended, or cannot be known again
	}
	data, err := json.Marshal(record{PID: pid, Start: start, Boot: boot})
	if err != nil {
		return
	}
	_ = os.WriteFile(j.path(token+recordSuffix), data, 0o600)
}

func (j *journal) forget(token string) {
	if j.held() {
		_ = os.Remove(j.path(token + recordSuffix))
	}
}

func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lock == nil {
		return
	}
	removeLocked(j.lock)
	j.lock = nil
}

// removeLocked removes a lock file while its lock is held, so that an owner that starts just now sees that its file is gone.
func removeLocked(f *os.File) {
	err := os.Remove(f.Name())
	_ = f.Close()
	if err != nil {
		_ = os.Remove(f.Name()) // where open files cannot be removed
	}
}

// Sweep kills what runtimes that died left running, and removes their records from the journal folder dir. It touches nothing of a runtime
// that lives, and nothing it cannot tell apart from a process that got an id anew: killed are the leaders that still have the start time of
// their record, with their groups, and (Linux) what carries the token of the dead instance. It returns how many instances it found dead.
// A folder that is missing is no error.
func Sweep(dir string) (dead int, err error) {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer d.Close()
	names, _ := d.Readdirnames(sweepLimit)
	records := map[string][]string{} // by instance
	for _, name := range names {
		id, rest, ok := strings.Cut(name, ".")
		switch {
		case !ok || len(id) != 32:
		case "."+rest == lockSuffix:
			if _, known := records[id]; !known {
				records[id] = nil // an instance without a living child
			}
		case strings.HasSuffix(rest, recordSuffix):
			records[id] = append(records[id], name)
		}
	}
	for id, names := range records {
		if swept, e := sweepInstance(dir, id, names); e != nil {
			err = errors.Join(err, e)
		} else if swept {
			dead++
		}
	}
	return dead, err
}

func sweepInstance(dir, id string, names []string) (bool, error) {
	f, err := os.OpenFile(filepath.Join(dir, id+lockSuffix), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	if ok, err := TryLock(f, true); err != nil || !ok {
		_ = f.Close()
		return false, err
	}
	for _, name := range names {
		var r record
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || json.Unmarshal(data, &r) != nil || r.PID <= 1 {
			continue // cut off in the middle of being written
		}
		if start, boot := identity(r.PID); start != "" && start == r.Start && boot == r.Boot {
			killLeader(r.PID)
		}
	}
	if !endStrays(id+".", time.Now().Add(sweepTime)) {
		_ = f.Close() // the next one finds it again
		return false, ErrNotConfirmed
	}
	for _, name := range names {
		_ = os.Remove(filepath.Join(dir, name))
	}
	removeLocked(f)
	return true, nil
}
