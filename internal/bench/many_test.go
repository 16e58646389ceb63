package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rind-dev/rind/session"
)

// TestManySessions is the part of the report about a store of 5,000 sessions in 50 workspaces.
func TestManySessions(t *testing.T) {
	if !*report {
		t.Skip("measured by make bench")
	}
	const sessions, workspaces = 5000, 50
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	st := openStore(t, home)
	place := func(n int) string { return filepath.Join(dir, fmt.Sprintf("ws%d", n%workspaces)) }
	for n := range workspaces {
		if err := os.Mkdir(place(n), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	id := func(n int) session.SessionID {
		return session.SessionID(fmt.Sprintf("20260102_101112_%08x", n))
	}
	for n := range sessions {
		if err := st.Create(t.Context(), session.Meta{ID: id(n), ConversationID: "conv_" + string(id(n)), Workspace: place(n), Created: time.Now()}); err != nil {
			t.Fatal(err)
		}
		writeTurns(t, st, id(n), place(n), 2)
	}
	row := func(what, got, goal string) { line(fmt.Sprintf("%d sessions: %s", sessions, what), got, goal) }
	for what, q := range map[string]session.Query{
		"all of them, in pages of 50":                  {Limit: 50},
		"those of a workspace, in pages of 50":         {Limit: 50, Workspace: place(7)},
		"those of a workspace without any":             {Limit: 50, Workspace: "/nowhere"},
		"all but those of three workspaces, one page":  {Limit: 50, Exclude: []string{place(1), place(2), place(3)}},
		"those with and without a prompt, pages of 50": {Limit: 50, All: true},
	} {
		began, n, pages, longest := time.Now(), 0, 0, time.Duration(0)
		for more := true; more; pages++ {
			began := time.Now()
			page, next, err := st.Sessions(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			longest = max(longest, time.Since(began))
			n += len(page)
			q.Page, more = next, next != "" && q.Exclude == nil
		}
		row(what, fmt.Sprintf("%d in %v, a page <= %v", n, time.Since(began).Round(time.Microsecond), longest.Round(time.Microsecond)), "page <= 20 ms")
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	rind := filepath.Join(dir, "rind")
	build(t, rind, "../../cmd/rind")
	const request = `{"kind":"request","request_id":1,"method":"initialize"}` + "\n"
	few := filepath.Join(dir, "few")
	begin := func(what string, args ...string) {
		var many, one []time.Duration
		for range 15 {
			d, _ := spawn(t, request, home, rind, append([]string{"app-server", "--cwd", place(7)}, args...)...)
			many = append(many, d)
			d, _ = spawn(t, request, few, rind, append([]string{"app-server", "--cwd", place(7)}, args...)...)
			one = append(one, d)
		}
		row(what, fmt.Sprintf("%v = %.2f x a store of one", median(many), ratio(many, one)), "<= 1.2 x")
	}
	prompt := exec.Command(rind, "prompt", "x")
	prompt.Env, prompt.Dir = []string{"RIND_HOME=" + few}, place(7)
	if err := prompt.Run(); err != nil {
		t.Fatal(err)
	}
	begin("spawn to initialize answered")
	begin("the same with the newest session of the workspace", "--resume-latest")
	for _, args := range [][]string{{"sessions", "list"}, {"sessions", "list", "--all"}, {"doctor"}} {
		cmd := exec.Command(rind, args...)
		cmd.Env, cmd.Dir = []string{"RIND_HOME=" + home, "HOME=" + home, "PATH=" + os.Getenv("PATH")}, place(7)
		began := time.Now()
		out, err := cmd.CombinedOutput()
		row(fmt.Sprintf("rind %v", args), fmt.Sprintf("%v, %d bytes, %v", time.Since(began).Round(time.Millisecond), len(out), err), "")
	}
}
