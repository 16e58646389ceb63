package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// appearances counts how often each file was put into a folder, by the kernel's word: a file that is written twice appears twice, however
// alike the contents are.
type appearances struct {
	file *os.File
	done chan struct{}
	mu   sync.Mutex // guards seen
	seen map[string]int
}

// watch begins to count, to the end of the test. Its goroutine ends with it.
func watch(t *testing.T, dirs ...string) *appearances {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	a := &appearances{file: os.NewFile(uintptr(fd), "inotify"), done: make(chan struct{}), seen: map[string]int{}}
	for _, dir := range dirs {
		if _, err := syscall.InotifyAddWatch(fd, dir, syscall.IN_CREATE|syscall.IN_MOVED_TO); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		defer close(a.done)
		buf := make([]byte, 64<<10)
		for {
			n, err := a.file.Read(buf)
			if err != nil {
				return
			}
			a.mu.Lock()
			for at := 0; at+syscall.SizeofInotifyEvent <= n; {
				e := (*syscall.InotifyEvent)(unsafe.Pointer(&buf[at]))
				at += syscall.SizeofInotifyEvent
				name := string(bytes.TrimRight(buf[at:at+int(e.Len)], "\x00"))
				at += int(e.Len)
				a.seen[name]++
				if e.Mask&syscall.IN_Q_OVERFLOW != 0 {
					t.Error("more happened in the workspace than could be counted")
				}
			}
			a.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = a.file.Close()
		<-a.done
	})
	return a
}

// count is how often a file of this name appeared.
func (a *appearances) count(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen[name]
}

// marked is a process that carries a mark of the test in its environment.
type marked struct {
	pid     int
	mark    string
	command string
}

// processesOf finds the processes whose environment says NAME=value with a value that begins so; every other process is none of the test's.
func processesOf(name, prefix string) []marked {
	var found []marked
	dirs, _ := os.ReadDir("/proc")
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", d.Name(), "environ")) // empty for one that has ended
		if err != nil {
			continue
		}
		for kv := range strings.SplitSeq(string(env), "\x00") {
			if value, ok := strings.CutPrefix(kv, name+"="); ok && strings.HasPrefix(value, prefix) {
				line, _ := os.ReadFile(filepath.Join("/proc", d.Name(), "cmdline"))
				found = append(found, marked{pid, value, strings.ReplaceAll(string(line), "\x00", " ")})
			}
		}
	}
	return found
}

// eventually tries until ok is true, for a bounded time.
func eventually(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}
