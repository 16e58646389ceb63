package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rind-dev/rind/internal/testkit"
)

// terminal is the program at a pseudo terminal.
type terminal struct {
	t *testing.T
	*display
	master *os.File
	cmd    *exec.Cmd
	exited chan struct{} // closed when the program has ended and everything it wrote was read
}

// atPTY starts the program at a terminal of its own, in the workspace of root (see folders). Its output is read by a goroutine that ends
// with the program.
func atPTY(t *testing.T, root string, env []string, args ...string) *terminal {
	t.Helper()
	return startPTY(t, root, env, nil, args...)
}

// startPTY is atPTY with something else than the terminal as standard input.
func startPTY(t *testing.T, root string, env []string, stdin *os.File, args ...string) *terminal {
	t.Helper()
	master, slave := openPTY(t)
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = filepath.Join(root, "ws")
	cmd.Env = append([]string{"RIND_TEST_CHILD=1", "RIND_HOME=" + filepath.Join(root, "data"), "PATH=" + os.Getenv("PATH"), "TERM=dumb"}, env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if stdin != nil {
		cmd.Stdin = stdin
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	p := &terminal{t: t, display: newDisplay(), master: master, cmd: cmd, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		buf := make([]byte, 64<<10)
		for {
			n, err := master.Read(buf)
			_, _ = p.display.Write([]byte(strings.ReplaceAll(string(buf[:n]), "\r", ""))) // which the terminal adds
			if err != nil {                                                               // EIO: the last one that had the terminal open is gone
				break
			}
		}
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.exited
		_ = master.Close()
	})
	return p
}

// folders makes a data folder whose model is the script, and a workspace beside it: what lies in the data folder is secret.
func folders(t *testing.T, script string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"data/script.json": script, "ws/a.txt": "hello\n",
		"data/settings.json": fmt.Sprintf(`{"provider":"s","providers":{"s":{"type":"script","model":"script","script":%q}}}`, filepath.Join(root, "data", "script.json")),
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100}); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// keys types: a line ends with "\n", "\x03" is Ctrl-C, "\x04" Ctrl-D.
func (p *terminal) keys(s string) {
	p.t.Helper()
	if _, err := p.master.WriteString(s); err != nil {
		p.t.Fatalf("type %q: %v", s, err)
	}
}

func (p *terminal) expect(want string) string {
	p.t.Helper()
	return p.display.expect(p.t, want)
}

// ends waits for the end of the program and checks its exit code.
func (p *terminal) ends(code int) {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.t.Fatalf("the program did not end; shown: %q", tail(p.all()))
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, want %d; shown: %q", got, code, tail(p.all()))
	}
}

// callHeldUp is a step of a script: a call that needs no consent and ends when the test lets it go (see holdUp).
const callHeldUp = `{"call":{"name":"bash","arguments":{"command":"cat go","yield_time_ms":60000}}}`

// holdUp makes what callHeldUp waits for in the workspace of root; letGo ends the call that runs, or is about to.
func holdUp(t *testing.T, root string) (letGo func()) {
	t.Helper()
	path := filepath.Join(root, "ws", "go")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		testkit.Eventually(t, "the call runs", func() bool {
			f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0) // refused while nobody reads
			if err == nil {
				_ = f.Close()
			}
			return err == nil
		})
	}
}

func TestPTYChatStreamsAndEndsWithCtrlD(t *testing.T) {
	t.Parallel()
	root := folders(t, `{"turns":[{"steps":[{"text":"Hello from the script.","chunk":3,"delayMs":2}]},{"steps":[{"text":"And "},{"call":{"name":"read_file","arguments":{"path":"a.txt"}}}]},{"steps":[{"text":"so on."}]}]}`)
	p := atPTY(t, root, nil, "chat")
	p.expect("script (s), mode ask. /help lists commands, Ctrl-D ends.\n> ")
	p.keys("hi\n")
	p.expect("Hello from the script.\n")
	p.expect("tokens in, ")
	p.expect("\n> ")
	p.keys("go on\n")
	p.expect("And \n• read_file: a.txt\n  ok\nso on.\n")
	p.expect("\n> ")
	p.keys("\x04")
	p.expect("Go on later with: rind chat --session ")
	p.ends(exitOK)
	if strings.ContainsRune(p.all(), '\x1b') {
		t.Errorf("escape sequences went to a terminal that takes none: %q", p.all())
	}
}

func TestPTYChatGoesOnWithTheNewestSession(t *testing.T) {
	t.Parallel()
	root := folders(t, `{"turns":[{"steps":[{"text":"First."}]},{"steps":[{"expect":{"messages":4}},{"text":"Second."}]}]}`)
	p := atPTY(t, root, nil, "chat", "remember", "this")
	p.expect("First.")
	p.expect("\n> ")
	p.keys("/exit\n")
	p.ends(exitOK)
	p = atPTY(t, root, nil, "chat", "-c")
	p.expect("- user: remember this")
	p.expect("- assistant: First.")
	p.expect("\n> ")
	p.keys("and?\n")
	p.expect("Second.")
	p.expect("\n> ")
	p.keys("\x04")
	p.ends(exitOK)
}

func TestPTYLinesTypedDuringATurnSteerIt(t *testing.T) {
	t.Parallel()
	root := folders(t, `{"turns":[{"steps":[{"text":"Working. "},`+callHeldUp+`]},{"steps":[{"text":"You said: "},{"echo":true}]}]}`)
	letGo := holdUp(t, root)
	p := atPTY(t, root, nil, "chat")
	p.expect("> ")
	p.keys("begin\n")
	p.expect("Working. ")
	p.keys("use tabs\n")
	p.expect("(queued: the agent is told at its next step)")
	letGo()
	p.expect("(told the agent) use tabs")
	p.expect("You said: use tabs")
	p.expect("\n> ")
	p.keys("\x04")
	p.ends(exitOK)
}

func TestPTYCtrlCCancelsTheTurnAndTwiceEndsTheProgram(t *testing.T) {
	t.Parallel()
	root := folders(t, `{"turns":[{"match":"hang","steps":[{"text":"Here I sit "},{"hang":true}]},{"steps":[{"text":"Still here."}]}]}`)
	p := atPTY(t, root, nil, "chat")
	p.expect("> ")
	p.keys("hang\n")
	p.expect("Here I sit")
	p.keys("\x03")
	p.expect("(cut off)")
	p.expect("Cancelled: User interrupted")
	p.expect("\n> ")
	p.keys("and now?\n")
	p.expect("Still here.")
	p.expect("\n> ")
	p.keys("\x03")
	p.ends(exitInterrupted)

	p = atPTY(t, root, nil, "chat", "hang")
	p.expect("Here I sit")
	p.keys("\x03")
	p.expect("(cancelling)")
	p.keys("\x03")
	p.ends(exitInterrupted)
}

func TestPTYCtrlDDuringATurnWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	root := folders(t, `{"turns":[{"steps":[{"text":"Slowly "},`+callHeldUp+`]},{"steps":[{"text":"to the end."}]}]}`)
	letGo := holdUp(t, root)
	p := atPTY(t, root, nil, "chat", "go")
	p.expect("Slowly")
	p.keys("\x04")
	p.expect("(the input has ended; the turn goes on to its end)")
	letGo()
	p.expect("to the end.")
	p.ends(exitOK)
}

func TestPTYAHangUpEndsTheProgram(t *testing.T) {
	t.Parallel()
	root := folders(t, `{"turns":[{"steps":[{"text":"Here I sit "},{"hang":true}]}]}`)
	p := atPTY(t, root, nil, "chat", "go")
	p.expect("Here I sit")
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.ends(exitCancelled)
}

func TestPTYCommandsAndMistakes(t *testing.T) {
	t.Parallel()
	root := folders(t, `{"turns":[{"match":"fail","steps":[{"fail":{"fault":"rejected","message":"The script refuses."}}]},{"steps":[{"text":"Better."}]}]}`)
	p := atPTY(t, root, nil, "chat")
	p.expect("> ")
	p.keys("/status\n")
	p.expect("model: script")
	p.expect("> ")
	p.keys("/help\n")
	p.expect("/status")
	p.expect("/cancel")
	p.keys("/nonsense\n")
	p.expect("Unknown command: /nonsense")
	p.keys("/cancel\n")
	p.expect("Nothing runs.")
	p.keys("fail\n")
	p.expect("rind: The script refuses.\n")
	p.expect("> ")
	p.keys("again\n")
	p.expect("Better.")
	p.keys("/quit\n")
	p.ends(exitOK)
}

func TestPTYAPasteIsOnePrompt(t *testing.T) {
	t.Parallel()
	root := folders(t, `{"turns":[{"steps":[{"text":"Got <"},{"echo":true},{"text":">"}]},{"steps":[{"text":"Joined <"},{"echo":true},{"text":">"}]}]}`)
	p := atPTY(t, root, []string{"TERM=xterm"}, "chat")
	p.expect(pasteOn)
	p.expect("> ")
	p.keys(pasteBegin + "one\ntwo" + pasteEnd + "\n")
	p.expect("Got <one\ntwo>")
	p.expect("> ")
	p.keys("three\\\nfour\n")
	p.expect("Joined <three\nfour>")
	p.expect("> ")
	p.keys("\x04")
	p.ends(exitOK)
	if !strings.Contains(p.all(), pasteOff) {
		t.Error("the terminal still marks pastes")
	}
	if !strings.Contains(p.all(), "\x1b[2m") {
		t.Error("a terminal that takes colours got none")
	}
	p = atPTY(t, root, []string{"TERM=xterm", "NO_COLOR=1"}, "chat")
	p.expect("> ")
	p.keys("\x04")
	p.ends(exitOK)
	if strings.Contains(p.all(), "\x1b[2m") {
		t.Error("NO_COLOR was not heeded")
	}
}

func TestPTYALineTheTerminalCutIsSaid(t *testing.T) {
	t.Parallel()
	root := folders(t, `{"turns":[{"steps":[{"text":"Fine."}]}]}`)
	p := atPTY(t, root, nil, "chat")
	p.expect("> ")
	p.keys(strings.Repeat("x", 6000) + "\n")
	p.expect("its end may be missing")
	p.expect("Fine.")
	p.keys("\x04")
	p.ends(exitOK)
}

func TestPTYAMegabyteOfTextArrivesWhole(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("0123456789abcde ", 64) + "\n"
	text := strings.Repeat(line, 1<<20/len(line)) + "That is all."
	root := folders(t, `{"turns":[{"steps":[{"text":`+string(mustJSON(text))+`}]}]}`)
	p := atPTY(t, root, nil, "chat", "talk")
	p.expect("Ctrl-D ends.\n")
	if got := p.expect("That is all."); got+"That is all." != text {
		t.Errorf("%d bytes were shown, want %d", len(got), len(text))
	}
	p.expect("> ")
	p.keys("\x04")
	p.ends(exitOK)
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func TestPTYTrustIsAskedFor(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{"y\n": true, "n\n": false, "\n": false, "\x04": false} {
		root := folders(t, `{"turns":[]}`)
		if err := os.WriteFile(filepath.Join(root, "ws", ".mcp.json"), []byte(`{"mcpServers":{"b":{"command":"make"}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		p := atPTY(t, root, nil, "trust")
		p.expect("server b runs make")
		p.expect("Trust it with this? [y/N] ")
		p.keys(answer)
		code := exitFailed
		if want {
			code = exitOK
		}
		p.ends(code)
		data, err := os.ReadFile(filepath.Join(root, "data", "settings.json"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(data), "trustedWorkspaces"); got != want {
			t.Errorf("answer %q: trusted = %v", answer, got)
		}
	}
}
