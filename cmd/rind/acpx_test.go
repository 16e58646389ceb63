//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
)

// acpxPackage is an independent headless client: a command for each thing a person does, and a process between them that keeps the agent.
const acpxPackage = "acpx@0.19.1"

const acpxMark = "RIND_ACPX_TEST"

// acpx is that client with a home of its own.
type acpx struct {
	t                      *testing.T
	node, cli, ws, session string
	env                    []string
}

// installedACPX installs the client; the test is skipped where it cannot be had.
func installedACPX(t *testing.T, root, ws string) *acpx {
	t.Helper()
	node, dir := testkit.Packages(t, acpxPackage)
	home := t.TempDir()
	mark := filepath.Base(filepath.Dir(home))
	x := &acpx{t: t, node: node, cli: filepath.Join(dir, "node_modules", "acpx", "dist", "cli.js"), ws: ws}
	x.env = []string{"RIND_TEST_CHILD=1", "RIND_HOME=" + root, "HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), acpxMark + "=" + mark}
	t.Cleanup(func() { // the process it keeps ends by itself when it has been idle; no test waits for that
		for _, p := range processesOf(acpxMark, mark) {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		if !eventually(acpPatience, func() bool { return len(processesOf(acpxMark, mark)) == 0 }) {
			t.Errorf("left behind: %+v", processesOf(acpxMark, mark))
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, node, x.cli, "--version").CombinedOutput(); err != nil {
		t.Skipf("this node does not run %s: %v: %.200s", acpxPackage, err, out)
	}
	return x
}

func (x *acpx) command(ctx context.Context, args ...string) *exec.Cmd {
	all := append([]string{x.cli, "--cwd", x.ws, "--agent", os.Args[0] + " acp", "--format", "json", "--ttl", "120"}, args...)
	cmd := exec.CommandContext(ctx, x.node, all...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = x.ws, x.env, time.Second
	return cmd
}

// run runs a command of the client to its end and returns its output.
func (x *acpx) run(args ...string) string {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), time.Minute)
	defer cancel()
	var out, said bytes.Buffer
	cmd := x.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		x.t.Fatalf("acpx %v: %v\n%s%s", args, err, out.String(), said.String())
	}
	return out.String()
}

// lines are what a prompt wrote: the protocol as it went over the wire.
func (x *acpx) lines(out string) []*acpLine {
	x.t.Helper()
	var lines []*acpLine
	for raw := range strings.Lines(out) {
		lines = append(lines, readACP(x.t, strings.TrimSpace(raw)))
	}
	return lines
}

// prompt asks and returns what was said, and why the turn stopped.
func (x *acpx) prompt(text string, flags ...string) (said, stop string, lines []*acpLine) {
	x.t.Helper()
	lines = x.lines(x.run(append(flags, "prompt", text)...))
	for _, l := range lines {
		if s := acpStop(l); s != "" {
			stop = s
		}
		if l.Params.SessionID != "" && l.Params.SessionID != x.session {
			x.t.Errorf("another session: %s", l.raw)
		}
	}
	return acpSaid(lines, "agent_message_chunk"), stop, lines
}

// begin starts a prompt and returns once the agent has begun to speak.
func (x *acpx) begin(text string) (rest <-chan []*acpLine) {
	x.t.Helper()
	cmd := x.command(x.t.Context(), "prompt", text)
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		x.t.Fatal(err)
	}
	begun, ended := make(chan struct{}), make(chan []*acpLine, 1)
	go func() {
		var lines []*acpLine
		speaks := false
		in := bufio.NewScanner(pipe)
		in.Buffer(nil, 16<<20)
		for in.Scan() {
			l := &acpLine{raw: in.Text()}
			_ = json.Unmarshal(in.Bytes(), l)
			lines = append(lines, l)
			if !speaks && l.Params.Update.SessionUpdate == "agent_message_chunk" {
				speaks = true
				close(begun)
			}
		}
		_ = cmd.Wait()
		ended <- lines
	}()
	select {
	case <-begun:
	case lines := <-ended:
		x.t.Fatalf("the prompt ended before the agent spoke: %d lines", len(lines))
	case <-time.After(time.Minute):
		x.t.Fatal("the agent does not speak")
	}
	return ended
}

// An independent client prompts, consents and refuses, cancels, lists, and comes back to the same session after its own process was killed in
// the middle of a turn.
func TestAnIndependentClientPromptsCancelsListsAndReconnects(t *testing.T) {
	t.Parallel()
	root, ws := playing(t, `{"turns":[
		{"match":"hello","steps":[{"text":"Hello to you."}]},
		{"match":"write it","steps":[{"call":{"id":"w1","name":"write_file","arguments":{"path":"made.txt","content":"made\n"}}},{"finish":"tool_calls"},{"expect":{"toolResult":"Successfully"}},{"text":"Written."}]},
		{"match":"write more","steps":[{"call":{"id":"w2","name":"write_file","arguments":{"path":"more.txt","content":"more\n"}}},{"finish":"tool_calls"},{"expect":{"toolResult":"ApprovalRejected"}},{"text":"Then not."}]},
		{"match":"slowly","steps":[{"text":"One word after the other. ","chunk":2,"delayMs":20},{"hang":true}]},
		{"match":"forever","steps":[{"text":"This has no end. ","chunk":2,"delayMs":20},{"hang":true}]},
		{"match":"again","steps":[{"text":"Here I am again."}]}]}`)
	x := installedACPX(t, root, ws)
	var made struct {
		Session string `json:"acpxSessionId"`
	}
	out := x.run("sessions", "new")
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Session == "" {
		t.Fatalf("%v: %s", err, out)
	}
	x.session = made.Session
	said, stop, _ := x.prompt("hello")
	if said != "Hello to you." || stop != "end_turn" {
		t.Fatalf("%q, %s", said, stop)
	}

	if said, stop, _ := x.prompt("write it", "--approve-all"); said != "Written." || stop != "end_turn" {
		t.Errorf("%q, %s", said, stop)
	}
	if text, err := os.ReadFile(filepath.Join(ws, "made.txt")); err != nil || string(text) != "made\n" {
		t.Errorf("the file is %q: %v", text, err)
	}
	if said, stop, _ := x.prompt("write more", "--deny-all"); said != "Then not." || stop != "end_turn" {
		t.Errorf("%q, %s", said, stop)
	}
	if _, err := os.Stat(filepath.Join(ws, "more.txt")); !os.IsNotExist(err) {
		t.Errorf("what was refused was written: %v", err)
	}

	rest := x.begin("slowly")
	x.run("cancel")
	lines := <-rest
	if n := len(lines); acpStop(lines[n-1]) != "cancelled" {
		t.Errorf("the cancelled prompt ended with %s", lines[n-1].raw)
	}

	rest = x.begin("forever")
	var status struct{ PID int }
	out = x.run("status")
	if err := json.Unmarshal([]byte(out), &status); err != nil || status.PID <= 1 {
		t.Fatalf("status: %v: %s", err, out)
	}
	if err := syscall.Kill(status.PID, syscall.SIGKILL); err != nil {
		t.Fatal("kill the client's process "+strconv.Itoa(status.PID), err)
	}
	<-rest

	said, stop, lines = x.prompt("again")
	if said != "Here I am again." || stop != "end_turn" {
		t.Errorf("%q, %s", said, stop)
	}
	opened := ""
	for _, l := range lines {
		switch l.Method {
		case "session/new", "session/load", "session/resume":
			opened += l.Method + " "
		}
	}
	if opened != "session/resume " {
		t.Errorf("it came back by %q", opened)
	}
	if out := x.run("sessions", "list"); strings.Count(out, x.session) == 0 {
		t.Errorf("the list lacks %s: %s", x.session, out)
	}
}
