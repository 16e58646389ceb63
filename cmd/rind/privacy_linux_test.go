package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watched names the file that a child of a test writes its connections to.
const watched = "RIND_TEST_CONNECTIONS"

// A child that is watched puts itself under the kernel's eye before anything of it runs: every connection it asks for, every
// address it sends to, and those of the processes it starts, are written down first. What is written there is what the kernel was asked, whatever
// library asked.
func init() {
	if path := os.Getenv(watched); path != "" {
		if err := watchMyself(path); err != nil {
			fmt.Fprintln(os.Stderr, "cannot be watched:", err)
			os.Exit(77)
		}
	}
}

// Numbers of seccomp(2) that the system package does not have.
const (
	filterAllow    = 0x7fff0000
	filterNotify   = 0x7fc00000
	flagAllThreads = 1 << 0
	flagListener   = 1 << 3
	flagErrno      = 1 << 4 // a listener for all threads needs another way to tell that one thread would not
	receiveNotice  = 0xc0502100
	sendNotice     = 0xc0182101
	goOn           = 1
)

// notice is struct seccomp_notif, verdict struct seccomp_notif_resp.
type notice struct {
	id    uint64
	pid   uint32
	flags uint32
	call  int32
	arch  uint32
	at    uint64
	args  [6]uint64
}

type verdict struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// watchMyself has the kernel ask before each connection of this process and its children, and a goroutine that says yes and
// writes it down. The goroutine ends with the process.
func watchMyself(path string) error {
	out, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	// Making a socket is not among them: the Go runtime does not let go of a processor for that call, which the goroutine may need.
	calls := []uint32{unix.SYS_CONNECT, unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_SENDMMSG}
	code := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // the number of the call
	for i, c := range calls {
		code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(calls) - i), K: c})
	}
	code = append(code, unix.SockFilter{Code: unix.BPF_RET, K: filterAllow}, unix.SockFilter{Code: unix.BPF_RET, K: filterNotify})
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, 1, flagAllThreads|flagListener|flagErrno, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	fmt.Fprintln(out, "watching")
	go func() {
		runtime.LockOSThread() // it waits in the kernel
		for {
			var n notice
			if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, receiveNotice, uintptr(unsafe.Pointer(&n))); errno != 0 {
				continue // the call it was about is gone
			}
			if line := n.tells(); line != "" {
				fmt.Fprintln(out, line)
			}
			v := verdict{id: n.id, flags: goOn}
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, sendNotice, uintptr(unsafe.Pointer(&v)))
		}
	}()
	return nil
}

// tells is the line about a call; "" for one that leads nowhere new.
func (n *notice) tells() string {
	switch n.call {
	case unix.SYS_CONNECT:
		return "connect " + n.address(n.args[1], n.args[2])
	case unix.SYS_SENDTO:
		if n.args[4] != 0 {
			return "send " + n.address(n.args[4], n.args[5])
		}
	}
	return "" // on a connection that was told
}

// address reads the address that a call of the process names.
func (n *notice) address(at, size uint64) string {
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.pid))
	if err != nil {
		return "unreadable"
	}
	defer mem.Close()
	raw := make([]byte, min(size, 128))
	if _, err := mem.ReadAt(raw, int64(at)); err != nil || len(raw) < 2 {
		return "unreadable"
	}
	switch family := binary.NativeEndian.Uint16(raw); {
	case family == unix.AF_INET && len(raw) >= 8:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), binary.BigEndian.Uint16(raw[2:])).String()
	case family == unix.AF_INET6 && len(raw) >= 24:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])), binary.BigEndian.Uint16(raw[2:])).String()
	case family == unix.AF_UNIX:
		name, _, _ := bytes.Cut(raw[2:], []byte{0})
		return "unix:" + string(name)
	default:
		return fmt.Sprintf("family %d", family)
	}
}

// connections runs the program and tells what it connected to, each once, sorted.
func connections(t *testing.T, in io.Reader, root, ws string, env []string, args ...string) (ran, []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "connections")
	r := rindWith(t, in, root, ws, append(slices.Clip(env), watched+"="+path), args...)
	if r.code == 77 {
		t.Skipf("this system does not let a process be watched: %s", r.err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if lines[0] != "watching" {
		t.Fatalf("%q", lines)
	}
	lines = lines[1:]
	slices.Sort(lines)
	return r, slices.Compact(lines)
}

// idleFor is input that says nothing for a while and then ends.
type idleFor time.Duration

func (d idleFor) Read([]byte) (int, error) {
	time.Sleep(time.Duration(d)) // time in which a connection would be seen
	return 0, io.EOF
}

// TestWhatNeedsNoNetworkConnectsToNothing runs what docs/privacy.md says is silent, with everything set that could be asked, and has the
// kernel tell of every connection that the program asks for: there is none.
func TestWhatNeedsNoNetworkConnectsToNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	url := "http://" + l.Addr().String()
	settings := `{"provider":"p","providers":{"p":{"baseUrl":"` + url + `/v1","apiKey":"k","model":"m"}},"searchUrl":"` + url + `/?q={query}"}`
	servers := strings.TrimSuffix(settings, "}") + `,"mcpServers":{"far":{"url":"` + url + `/mcp"}}}`
	proxies := []string{"HTTP_PROXY=" + url, "HTTPS_PROXY=" + url, "OPENAI_API_KEY=k"}
	idle := `{"kind":"request","request_id":1,"method":"initialize","params":{"protocol_version":"2","client_info":{"name":"t"}}}` + "\n"
	for _, c := range []struct {
		args string
		in   io.Reader
	}{
		{args: "app-server --stdio", in: io.MultiReader(strings.NewReader(idle), idleFor(time.Second))},
		{args: "sessions list"},
		{args: "doctor"},
		{args: "doctor --bundle - --yes"},
		{args: "config check"},
		{args: "config get model"},
		{args: "trust --show"},
		{args: "version"},
		{args: "schema rind-v2"},
		{args: "undo --dry-run"},
	} {
		t.Run(c.args, func(t *testing.T) {
			set := servers
			if c.in != nil { // whose servers are started with it
				set = settings
			}
			root, ws := dataAndWorkspace(t, set)
			r, seen := connections(t, c.in, root, ws, proxies, strings.Fields(c.args)...)
			if len(seen) != 0 || r.code == exitUsage {
				t.Errorf("it connects: %q, or was not run: %+v", seen, r)
			}
			if c.in != nil && !strings.Contains(r.out, `"protocol_version"`) {
				t.Errorf("it was not served: %+v", r)
			}
		})
	}
	t.Run("prompt of the demo", func(t *testing.T) {
		root, ws := dataAndWorkspace(t, "")
		r, seen := connections(t, nil, root, ws, nil, "prompt", "hello")
		if r.code != exitOK || len(seen) != 0 {
			t.Errorf("%q %+v", seen, r)
		}
	})
	// And what does connect is seen.
	t.Run("doctor --online", func(t *testing.T) {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\n{\"data\":[]}")
				c.Close()
			}
		}()
		root, ws := dataAndWorkspace(t, settings)
		_, seen := connections(t, nil, root, ws, nil, "doctor", "--online")
		if !slices.Equal(seen, []string{"connect " + l.Addr().String()}) {
			t.Errorf("seen: %q", seen)
		}
	})
}
