//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a command line may not say is answered with one line of usage, exit code 2, and nothing on standard output (docs/protocol/acp.md section 1).
func TestACPRefusesAWrongCommandLineWithOneLineOfUsage(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	t.Setenv("RIND_HOME", home)
	for _, args := range [][]string{{"--nope"}, {"extra"}, {"--cwd"}, {"--data"}, {"--debug=maybe"}, {"-x"}, {"--cwd", ".", "--stdio"}} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"acp"}, args...), strings.NewReader(""), &out, &errs)
		lines := strings.Split(strings.TrimSuffix(errs.String(), "\n"), "\n")
		if code != exitUsage || out.Len() != 0 || len(lines) != 1 || !strings.HasPrefix(lines[0], "usage: rind acp ") {
			t.Errorf("%v: exit %d, standard output %q, standard error %q", args, code, out.String(), errs.String())
		}
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("a refused command line made the data folder: %v", err)
	}
}

// An editor that goes away, or the system, ends the process: what runs is cancelled and answered, and the last byte is still the protocol's.
func TestACPEndsWithItsInputOrASignal(t *testing.T) {
	t.Parallel()
	for _, end := range []struct {
		name string
		how  func(e *editor) error
	}{
		{"end of input", func(e *editor) error { e.CloseStdin(); return nil }},
		{"SIGTERM", func(e *editor) error { return e.Signal(syscall.SIGTERM) }},
		{"SIGINT", func(e *editor) error { return e.Signal(syscall.SIGINT) }},
		{"SIGHUP", func(e *editor) error { return e.Signal(syscall.SIGHUP) }},
	} {
		t.Run(end.name, func(t *testing.T) {
			t.Parallel()
			root, ws := playing(t, `{"turns":[{"steps":[{"text":"It goes on and on. "},{"hang":true}]}]}`)
			e := openEditor(t, root, ws)
			id := e.newSession(ws)
			asked := e.ask("session/prompt", promptOf(id, "go"))
			e.until("the first piece of text", func(l *acpLine) bool { return l.Params.Update.SessionUpdate == "agent_message_chunk" })
			if err := end.how(e); err != nil {
				t.Fatal(err)
			}
			l, _ := e.answer(asked)
			if acpStop(l) != "cancelled" {
				t.Errorf("the prompt under way was answered %s", l.raw)
			}
			e.leave()
			if said := e.Stderr(); said != "" {
				t.Errorf("standard error: %s", said)
			}
		})
	}
}

// initialize waits for nothing: neither for a store that another program keeps locked, nor for a provider that never answers, and in an
// empty home there is no store when it is answered.
func TestACPAnswersInitializeBeforeStoreAndNetwork(t *testing.T) {
	t.Parallel()
	t.Run("an empty home", func(t *testing.T) {
		t.Parallel()
		root, ws := dataAndWorkspace(t, "")
		root = filepath.Join(root, "not", "there", "yet")
		begun := time.Now()
		e := openEditor(t, root, ws)
		t.Logf("spawn to answer: %v", time.Since(begun))
		if _, err := os.Stat(filepath.Join(root, "sessions", "rind.db")); !os.IsNotExist(err) {
			t.Errorf("initialize waited for a store: %v", err)
		}
		e.leave()
	})
	t.Run("a store that is broken and a provider that says nothing", func(t *testing.T) {
		t.Parallel()
		listener, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, answers none
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		root, ws := dataAndWorkspace(t, fmt.Sprintf(`{"provider":"quiet","providers":{"quiet":{"type":"openai-chat","baseUrl":"http://%s/v1","apiKey":"","model":"m"}}}`, listener.Addr()))
		if err := os.Mkdir(filepath.Join(root, "sessions"), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, "sessions", "rind.db"), "this is no database")
		e := openEditor(t, root, ws)
		l, _ := e.answer(e.ask("session/load", map[string]any{"sessionId": "20200101_000000_00000000", "cwd": ws, "mcpServers": []any{}}))
		if l.Error == nil || l.Error.Code != -32603 {
			t.Errorf("a session of a broken store: %s", l.raw)
		}
		e.leave()
	})
}

// A print that is none of the protocol's goes to standard error, whoever prints it: descriptor 1 is not the wire.
func TestAStrayPrintDoesNotReachTheWire(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc to print from outside")
	}
	t.Parallel()
	root, ws := playing(t, `{"turns":[{"steps":[{"text":"All is well."}]}]}`)
	e := openEditor(t, root, ws)
	stray, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", e.PID()), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stray.WriteString("warning: something in the depths\n"); err != nil {
		t.Fatal(err)
	}
	_ = stray.Close()
	id := e.newSession(ws)
	l, before := e.call("session/prompt", promptOf(id, "hello"))
	if acpStop(l) != "end_turn" || acpSaid(before, "agent_message_chunk") != "All is well." {
		t.Errorf("%s after %d lines", l.raw, len(before))
	}
	e.leave()
	if !strings.Contains(e.Stderr(), "something in the depths") {
		t.Errorf("the print is not on standard error: %q", e.Stderr())
	}
}

func TestAStrayPrintDoesNotReachTheWireOfRindV2(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc to print from outside")
	}
	t.Parallel()
	root, ws := playing(t, `{"turns":[{"steps":[{"text":"All is well."}]}]}`)
	p := launched(t, root, ws, nil, "app-server", "--stdio")
	ask := func(line string) {
		if err := p.WriteLine(line); err != nil {
			t.Fatal(err)
		}
	}
	ask(`{"kind":"request","request_id":1,"method":"initialize","params":{}}`)
	first := p.Line(acpPatience)
	stray, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", p.PID()), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stray.WriteString("warning: something in the depths\n"); err != nil {
		t.Fatal(err)
	}
	_ = stray.Close()
	ask(`{"kind":"request","request_id":2,"method":"ping","params":{}}`)
	p.CloseStdin()
	rest := p.Rest(acpPatience)
	for _, l := range append(rest, first) {
		if !json.Valid([]byte(l)) {
			t.Errorf("on the wire: %q", l)
		}
	}
	if code := p.Wait(acpPatience); code != exitOK || len(rest) != 1 || !strings.Contains(p.Stderr(), "something in the depths") {
		t.Errorf("exit %d, lines %q, standard error %q", code, rest, p.Stderr())
	}
}

// An editor that died, while somebody still holds its end of our input, does not keep the process.
func TestACPEndsWhenNobodyReadsItsOutput(t *testing.T) {
	t.Parallel()
	root, ws := playing(t, `{"turns":[{"steps":[{"hang":true}]}]}`)
	path, own := program(t)
	ctx, stop := context.WithTimeout(t.Context(), acpPatience)
	defer stop()
	cmd := exec.CommandContext(ctx, path, "acp", "--cwd", ws)
	cmd.Env = append([]string{"RIND_HOME=" + root, "HOME=" + filepath.Dir(root)}, own...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if ctx.Err() != nil || cmd.ProcessState.ExitCode() != exitOK {
		t.Errorf("it ended with %v (%v)", err, ctx.Err())
	}
}
