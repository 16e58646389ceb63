package testkit

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const patience = 10 * time.Second

// role makes the test binary play a program: echo answers lines, stays ends only when killed, and says where it listens; parent starts a stays and does the same.
const role = "RIND_TESTKIT_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		code := Main(m)
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	case "echo":
		fmt.Fprintln(os.Stderr, "ready")
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			fmt.Println("got " + in.Text())
		}
		fmt.Print("bye") // no line end
		os.Exit(7)
	case "parent":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), role+"=stays")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s at %s\n", os.Getenv(role), listener.Addr())
	for { // whoever connects is told by the connection when this process ends
		if _, err := listener.Accept(); err != nil {
			panic(err)
		}
	}
}

func start(t *testing.T, as string) *Process {
	t.Helper()
	return Start(t, ProcessOptions{Env: append(os.Environ(), role+"="+as)}, os.Args[0])
}

func TestAProcessIsDrivenLineByLine(t *testing.T) {
	p := start(t, "echo")
	for _, line := range []string{"a", "b", "c"} {
		if err := p.WriteLine(line); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.Line(patience); got != "got a" {
		t.Errorf("first line %q", got)
	}
	if got := p.Until(patience, func(l string) bool { return l == "got c" }); len(got) != 2 {
		t.Errorf("lines up to the wanted one: %q", got)
	}
	if _, err := p.ReadLine(20 * time.Millisecond); err == nil || errors.Is(err, ErrEOF) {
		t.Errorf("a line that never came: %v", err)
	}
	p.CloseStdin()
	if code := p.Wait(patience); code != 7 {
		t.Errorf("exit code %d", code)
	}
	if rest := p.Rest(patience); len(rest) != 1 || rest[0] != "bye" {
		t.Errorf("the last line is %q, want what was written before the end", rest)
	}
	if _, err := p.ReadLine(patience); !errors.Is(err, ErrEOF) {
		t.Errorf("behind the end: %v", err)
	}
	if !strings.Contains(p.Stderr(), "ready") {
		t.Errorf("standard error %q", p.Stderr())
	}
}

func TestAKilledProcessHasNoExitCode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows gives killed processes exit code 1")
	}
	p := start(t, "stays")
	p.Line(patience) // it runs
	p.Kill()
	if code := p.Wait(patience); code != -1 {
		t.Errorf("exit code %d", code)
	}
}

func TestNothingOfAProcessOutlivesItsTest(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("what a process started cannot be found once it has gone")
	}
	var p *Process
	var child net.Conn
	t.Run("inner", func(t *testing.T) {
		p = start(t, "parent")
		lines := p.Until(patience, func(l string) bool { return strings.HasPrefix(l, "stays at ") })
		_, at, _ := strings.Cut(lines[len(lines)-1], " at ")
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		child = conn
		p.Kill()
		p.Wait(patience) // the child, which holds the outputs open, does not delay it
		_ = child.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := child.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the child went with its parent (%v), so that the end of the test has nothing to do", err)
		}
	})
	defer child.Close()
	_ = child.SetReadDeadline(time.Now().Add(patience))
	if _, err := child.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the child is still there: %v", err)
	}
	select {
	case <-p.Exited():
	default:
		t.Error("the process was not waited for")
	}
}

func TestAProgramIsBuiltOnceAndRemoved(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/tiny\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() { println(\"tiny\") }\n", "bad/main.go": "package main\n\nfunc main() { nope }\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path, err := buildInto(root, ".", "tiny")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(filepath.Dir(path))
	p := Start(t, ProcessOptions{}, path)
	if code := p.Wait(patience); code != 0 || strings.TrimSpace(p.Stderr()) != "tiny" {
		t.Errorf("exit code %d, standard error %q", code, p.Stderr())
	}
	if _, err := buildInto(root, "./bad", "bad"); err == nil || !strings.Contains(err.Error(), "nope") {
		t.Errorf("a program that does not compile: %v", err)
	}
}

func TestBuildsOfKilledRunsAreSweptAway(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("TEMP", os.Getenv("TMPDIR"))
	t.Setenv("TMP", os.Getenv("TMPDIR"))
	old, fresh := filepath.Join(os.TempDir(), buildFolder+"1"), filepath.Join(os.TempDir(), buildFolder+"2")
	for _, dir := range []string{old, fresh} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * buildStale)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	sweep()
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an old build is still there: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("a build that may be in use is gone: %v", err)
	}
}

func TestTheModuleIsFoundFromATestsFolder(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "cmd", "rind", "main.go")); err != nil {
		t.Error(err)
	}
}
