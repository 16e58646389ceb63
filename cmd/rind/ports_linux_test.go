package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStdioOpensNoSocket: what an editor starts has no port that somebody else could find, nor any other socket, also in a turn.
func TestStdioOpensNoSocket(t *testing.T) {
	for _, c := range []struct {
		args []string
		ask  []string
		seen string // of the turn that runs
	}{
		{[]string{"app-server", "--stdio"}, []string{
			`{"kind":"request","request_id":1,"method":"initialize","params":{}}`, `{"kind":"request","request_id":2,"method":"session/prompt","params":{"input":"go"}}`,
		}, `"type":"assistant_delta"`},
		{[]string{"acp"}, []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`}, `"protocolVersion"`},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			t.Parallel()
			root, ws := playing(t, `{"turns":[{"steps":[{"text":"It goes on."},{"hang":true}]}]}`)
			p := launched(t, root, ws, nil, c.args...)
			for _, line := range c.ask {
				if err := p.WriteLine(line); err != nil {
					t.Fatal(err)
				}
			}
			p.Until(acpPatience, func(line string) bool { return strings.Contains(line, c.seen) })
			fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.PID()))
			if err != nil || len(fds) < 3 {
				t.Fatalf("%d descriptors, %v", len(fds), err)
			}
			for _, fd := range fds {
				if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:") {
					t.Errorf("%s is a socket", filepath.Base(fd))
				}
			}
			p.CloseStdin()
			p.Rest(acpPatience)
			if code := p.Wait(acpPatience); code != exitOK {
				t.Errorf("exit code %d", code)
			}
		})
	}
}
