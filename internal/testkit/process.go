package testkit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Process is a program that runs for a test, at the head of a process group of its own. It is driven as an editor drives it: lines in,
// lines out. Its standard output is read one line ahead of the test and no further, so that a test which does not read is a client
// that does not read. The methods are for the goroutine of the test, but for Kill and Signal, which any may call.
type Process struct {
	t      testing.TB
	name   string
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr string        // file: with a pipe, a child that holds it open would delay the end
	lines  chan string   // closed when the output has ended
	stop   chan struct{} // closed by the cleanup: nobody reads any more
	exited chan struct{}
}

// ProcessOptions shape a Process; the zero value inherits folder and environment.
type ProcessOptions struct {
	Dir string
	Env []string // the whole environment; nil inherits
}

// ErrEOF is what ReadLine returns when the output has ended.
var ErrEOF = errors.New("standard output has ended")

// Start runs a program until the end of the test at the latest: then what is left of its group is killed and waited for.
func Start(t testing.TB, o ProcessOptions, path string, args ...string) *Process {
	t.Helper()
	p := &Process{
		t: t, name: strings.Join(append([]string{path}, args...), " "), cmd: exec.Command(path, args...), //nolint:noctx // its end is the cleanup's
		lines: make(chan string), stop: make(chan struct{}), exited: make(chan struct{}),
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin, p.stdout = stdin, stdout
	p.cmd.Dir, p.cmd.Env = o.Dir, o.Env
	p.stderr = filepath.Join(t.TempDir(), "stderr")
	errs, err := os.Create(p.stderr)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, errs
	ownGroup(p.cmd)
	err = p.cmd.Start()
	_ = in.Close() // the child has its own
	_ = out.Close()
	_ = errs.Close()
	if err != nil {
		_ = stdin.Close()
		_ = stdout.Close()
		t.Fatalf("start %s: %v", p.name, err)
	}
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		p.read()
	}()
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // ProcessState has the rest
	}()
	t.Cleanup(func() {
		killGroup(p.cmd)
		<-p.exited
		close(p.stop)
		_ = stdin.Close()
		_ = stdout.Close()
		<-reading
	})
	return p
}

// read hands lines on, as long as the test takes them.
func (p *Process) read() {
	defer close(p.lines)
	in := bufio.NewReader(p.stdout)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			select {
			case p.lines <- line:
			case <-p.stop:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// WriteLine sends one line; an error is that of the pipe, as when the process has gone.
func (p *Process) WriteLine(line string) error {
	_, err := io.WriteString(p.stdin, line+"\n")
	return err
}

// CloseStdin ends the input.
func (p *Process) CloseStdin() { _ = p.stdin.Close() }

// ReadLine returns the next line without its end, ErrEOF behind the last one, or an error when none came within d. A last line that
// lacks its end comes as it is.
func (p *Process) ReadLine(d time.Duration) (string, error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case line, ok := <-p.lines:
		if !ok {
			return "", ErrEOF
		}
		return strings.TrimSuffix(line, "\n"), nil
	case <-timer.C:
		return "", fmt.Errorf("no line within %v", d)
	}
}

// Line is ReadLine for a line that must come: it fails the test otherwise.
func (p *Process) Line(d time.Duration) string {
	p.t.Helper()
	line, err := p.ReadLine(d)
	if err != nil {
		p.t.Fatalf("%s: %v; standard error: %s", p.name, err, p.Stderr())
	}
	return line
}

// Until reads lines up to the first one that want accepts, and returns them all. It fails the test when that does not come within d.
func (p *Process) Until(d time.Duration, want func(line string) bool) []string {
	p.t.Helper()
	end := time.Now().Add(d)
	var lines []string
	for {
		line, err := p.ReadLine(time.Until(end))
		if err != nil {
			p.t.Fatalf("%s: %v, after %d other lines: %s; standard error: %s", p.name, err, len(lines), strings.Join(lines, "\n"), p.Stderr())
		}
		lines = append(lines, line)
		if want(line) {
			return lines
		}
	}
}

// Rest reads to the end of the output, for at most d in all.
func (p *Process) Rest(d time.Duration) []string {
	p.t.Helper()
	end := time.Now().Add(d)
	var lines []string
	for {
		line, err := p.ReadLine(time.Until(end))
		if errors.Is(err, ErrEOF) {
			return lines
		}
		if err != nil {
			p.t.Fatalf("%s: its output has no end: %v", p.name, err)
		}
		lines = append(lines, line)
	}
}

// Kill is kill -9 of the process alone: what it started must find out by itself.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// KillGroup is kill -9 of the process and all that it started and that did not leave its group.
func (p *Process) KillGroup() { killGroup(p.cmd) }

// Signal sends a signal to the process alone.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Wait waits until the process has ended and returns its exit code, -1 when a signal ended it. It fails the test when that takes
// longer than d. Output that was not read stays readable.
func (p *Process) Wait(d time.Duration) int {
	p.t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-timer.C:
		p.t.Fatalf("%s: still running after %v; standard error: %s", p.name, d, p.Stderr())
		return -1
	}
}

// Exited is closed once the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Stderr returns the last 64 KiB of standard error so far.
func (p *Process) Stderr() string {
	const most = 64 << 10
	text, err := os.ReadFile(p.stderr)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(text[max(0, len(text)-most):])
}
