package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestCommandsObeyTheSignalsThatTheRuntimeDoesNot: a closed pipe ends the program that writes into it, as in any shell, whatever the runtime does
// with its own, and an interrupt can end what a command started.
func TestCommandsObeyTheSignalsThatTheRuntimeDoesNot(t *testing.T) {
	const (
		command = "yes | head -1; echo ${PIPESTATUS[*]}; grep SigIgn /proc/self/status"
		want    = `y\n141 0\nSigIgn:\t0000000000000000\n`
	)
	root, ws := playing(t, `{"turns":[{"steps":[{"call":{"id":"c1","name":"bash","arguments":{"command":"`+command+`"}}},{"finish":"tool_calls"},{"text":"Done."}]}]}`)
	told := func(t *testing.T, line string) {
		if !strings.Contains(strings.ReplaceAll(line, `\\`, `\`), want) {
			t.Errorf("the command said %s", line)
		}
	}
	t.Run("prompt", func(t *testing.T) {
		out := rind(t, root, ws, nil, "prompt", "--json", "--mode", "full", "go").out
		_, after, _ := strings.Cut(out, `"type":"tool_result"`)
		told(t, after)
	})
	t.Run("chat", func(t *testing.T) {
		rindWith(t, strings.NewReader("go\n"), root, ws, nil, "chat", "--mode", "full")
		_, id, _ := strings.Cut(rind(t, root, ws, nil, "sessions", "list", "--limit", "1", "--json").out, `"id":"`)
		out := rind(t, root, ws, nil, "sessions", "export", strings.Split(id, `"`)[0]).out
		_, after, _ := strings.Cut(out, `"type":"tool_result"`)
		told(t, after)
	})
	t.Run("app-server", func(t *testing.T) {
		p := launched(t, root, ws, nil, "app-server", "--stdio")
		for _, line := range []string{
			`{"kind":"request","request_id":1,"method":"initialize"}`, `{"kind":"request","request_id":2,"method":"rind/session/set_mode","params":{"mode":"full"}}`,
			`{"kind":"request","request_id":3,"method":"session/prompt","params":{"input":"go"}}`,
		} {
			if err := p.WriteLine(line); err != nil {
				t.Fatal(err)
			}
		}
		lines := p.Until(acpPatience, func(line string) bool { return strings.Contains(line, `"type":"tool_result"`) })
		told(t, lines[len(lines)-1])
		p.CloseStdin()
		p.Rest(acpPatience)
		p.Wait(acpPatience)
	})
}

// TestServeOutlivesWhoeverReadItsFirstLineAndEndsInGoodOrderWithItsTerminal: a program that starts the server reads where it listens and closes the
// pipe; and a terminal that is closed is an end like SIGTERM.
func TestServeOutlivesWhoeverReadItsFirstLineAndEndsInGoodOrderWithItsTerminal(t *testing.T) {
	root, ws := playing(t, `{"turns":[]}`)
	path, own := program(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "serve", "--port", "0", "--debug")
	cmd.Dir, cmd.Stdout, cmd.Stderr = ws, w, w
	cmd.Env = append([]string{"RIND_HOME=" + root, "HOME=" + filepath.Dir(root), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}, own...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	w.Close()
	base := ""
	for lines := bufio.NewScanner(r); base == "" && lines.Scan(); {
		_, base, _ = strings.Cut(lines.Text(), "rind HTTP listening on ")
	}
	r.Close()
	for range 3 { // each is a line of the log that nobody reads
		resp, err := http.Get(base + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("its end: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it goes on")
	}
}
