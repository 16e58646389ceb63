//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The session of docs/http.md is run as it stands there, but for the port.
func TestTheSessionWithCurlOfThePageRuns(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	_, page, _ := strings.Cut(pages(t)["http.md"], "```bash\n")
	block, _, ok := strings.Cut(page, "\n```")
	if !ok {
		t.Fatal("docs/http.md has no block for bash")
	}
	home := t.TempDir()
	s := serveWith(t, []string{"HOME=" + home}, "--port", "0", "--cwd", home)
	defer s.kill()
	at := strings.Replace(block, "http://127.0.0.1:4310", s.base, 1)
	if at == block {
		t.Fatal("the block does not name the address that rind serve prints")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-c", at)
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), errs.String())
	}
	told := out.String()
	for what, n := range map[string]int{
		`"name":"rind"`: 1, "event: run.started": 1, "event: action.required": 1, "event: action.responded": 2, "event: run.completed": 2,
		`"state":"succeeded"`: 1, `"nextCursor":`: 1, `"reason":"not needed"`: 0, `"state":"cancelled"`: 1, `"code":`: 0,
	} {
		if got := strings.Count(told, what); got != n {
			t.Errorf("%s is told %d times, not %d", what, got, n)
		}
	}
	if errs.Len() > 0 || t.Failed() {
		t.Errorf("stderr %q, stdout\n%s", errs.String(), told)
	}
}
