package proc

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxLooked bounds a look through /proc, and maxEnviron what is read of an environment.
	maxLooked  = 65_536
	maxEnviron = 256 << 10
	// lookAgain is the pause between looks while the end of what was killed is awaited.
	lookAgain = 10 * time.Millisecond
)

// stray is a process that something of ours has started.
type stray struct {
	pid, group int
	start      string
}

// strays looks through /proc for living processes of this user that are in the group (0 for none) or carry the token. A process is known by
// the environment its program was started with; one that was given an empty environment and left the group is not found.
func strays(token string, group int) []stray {
	return straysAmong(token, group, func(int) bool { return true })
}

// straysSince is strays for processes that are younger than pid. Their ids are those given since, unless the ids began anew meanwhile: then it
// looks at all. It is for telling, not for ending: with more processes started than there are ids, it may miss one.
func straysSince(pid int, token string, group int) []stray {
	last := 0
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		if f := bytes.Fields(data); len(f) == 5 {
			last, _ = strconv.Atoi(string(f[4])) // the id given last
		}
	}
	if last < pid {
		return strays(token, group)
	}
	return straysAmong(token, group, func(n int) bool { return n >= pid && n <= last })
}

func straysAmong(token string, group int, may func(pid int) bool) []stray {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	self, uid := os.Getpid(), uint32(os.Getuid())
	var found []stray
	for looked := 0; looked < maxLooked; {
		names, _ := d.Readdirnames(1024)
		if len(names) == 0 {
			break
		}
		looked += len(names)
		for _, name := range names {
			pid, err := strconv.Atoi(name)
			if err != nil || pid == self || !may(pid) {
				continue
			}
			var st unix.Stat_t
			if unix.Stat("/proc/"+name, &st) != nil || st.Uid != uid {
				continue
			}
			s, ok := lookAt(pid)
			if ok && (group != 0 && s.group == group || carries(pid, token)) {
				found = append(found, s)
			}
		}
	}
	return found
}

// lookAt reads what the kernel says of a process; false when it is gone, or dead and not yet reaped.
func lookAt(pid int) (stray, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stray{}, false
	}
	// The name, in parentheses, may hold anything; after it come: state ppid pgrp … and, 20th, the start time.
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return stray{}, false
	}
	f := bytes.Fields(data[end+1:])
	if len(f) < 20 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return stray{}, false
	}
	group, err := strconv.Atoi(string(f[2]))
	return stray{pid: pid, group: group, start: string(f[19])}, err == nil
}

// carries reports whether a process was started with the token in its environment.
func carries(pid int, token string) bool {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	defer f.Close()
	env := make([]byte, 0, 8<<10)
	for len(env) < maxEnviron {
		if len(env) == cap(env) {
			env = append(env, 0)[:len(env)]
		}
		n, err := f.Read(env[len(env):cap(env)])
		env = env[:len(env)+n]
		if err != nil || n == 0 {
			break
		}
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := bytes.CutPrefix(kv, []byte(tokenName+"=")); ok {
			return marked(string(value), token)
		}
	}
	return false
}

// send signals a process if it is still the one that was looked at.
func (s stray) send(sig syscall.Signal) {
	fd, err := unix.PidfdOpen(s.pid, 0)
	if err != nil {
		if now, ok := lookAt(s.pid); ok && now.start == s.start { // before Linux 5.3
			_ = syscall.Kill(s.pid, sig)
		}
		return
	}
	defer unix.Close(fd)
	if now, ok := lookAt(s.pid); ok && now.start == s.start {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// signalStrays signals what carries the token, once.
func signalStrays(token string, kill bool) {
	if token == "" {
		return
	}
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	for _, s := range strays(token, 0) {
		s.send(sig)
	}
}

// endStrays kills what carries the token until there is none left, as what is being killed may start more; false when the deadline passes.
func endStrays(token string, deadline time.Time) bool {
	if token == "" {
		return true
	}
	for {
		left := strays(token, 0)
		if len(left) == 0 {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		for _, s := range left {
			s.send(syscall.SIGKILL)
		}
		time.Sleep(lookAgain)
	}
}

// identity is how a process is known again: its start time, on this boot of the machine.
func identity(pid int) (start, boot string) {
	s, ok := lookAt(pid)
	if !ok {
		return "", ""
	}
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return s.start, string(bytes.TrimSpace(id))
}
