package mcp

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// alive reports whether a process runs; one that has ended and was not reaped by whoever inherited it does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// TestNoProcessIsLeft starts the server as launchers do: as the child of a shell, which does not pass signals on.
func TestNoProcessIsLeft(t *testing.T) {
	for _, mode := range []string{"plain", "stubborn"} {
		h := open(t, object{"d": program(mode, object{"command": "sh", "args": []any{"-c", `"$0"; true`, os.Args[0]}})})
		pid, err := strconv.Atoi(text(run(t.Context(), t, h.find(t, "mcp__d__pid"), `{}`)))
		if err != nil {
			t.Fatal(err)
		}
		if !alive(pid) {
			t.Fatal("the server is no process")
		}
		h.Close()
		if alive(pid) {
			t.Errorf("%s: process %d is left", mode, pid)
		}
	}
}
