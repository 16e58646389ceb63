//go:build unix

package proc_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/session/proc"
)

// text is a writer several goroutines may look at.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

func shell(command string, out io.Writer) proc.Spec {
	return proc.Spec{Path: "/bin/sh", Args: []string{"-c", command}, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdout: out, Stderr: out}
}

func children(t *testing.T) (*proc.Children, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "children")
	c := proc.NewChildren(dir)
	t.Cleanup(func() {
		if err := c.KillAll(); err != nil {
			t.Error(err)
		}
	})
	return c, dir
}

func begin(t *testing.T, c *proc.Children, s proc.Spec) *proc.Process {
	t.Helper()
	p, err := c.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wait(t *testing.T, p *proc.Process) proc.Exit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	exit, err := p.Wait(ctx)
	if err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	return exit
}

func TestACommandSeesTheEndOfItsInputAtOnceAndItsOutputAndCodeAreKept(t *testing.T) {
	c, dir := children(t)
	var out text
	exit := wait(t, begin(t, c, shell("cat; read x; echo got:$x; echo err >&2; exit 7", &out)))
	if exit.Code != 7 || out.String() != "got:\nerr\n" {
		t.Errorf("%+v, %q", exit, out.String())
	}
	exit = wait(t, begin(t, c, shell("kill -9 $$", nil)))
	if exit.Code != -1 || exit.Number != 9 || exit.Signal == "" {
		t.Errorf("%+v", exit)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.child")); len(left) != 0 {
		t.Errorf("records of children that have ended: %v", left)
	}
}

func TestAProgramThatIsNotThereIsAnError(t *testing.T) {
	c, _ := children(t)
	if _, err := c.Start(proc.Spec{Path: "/nowhere/nothing", Stdout: new(text)}); err == nil || !strings.Contains(err.Error(), "/nowhere/nothing") {
		t.Error(err)
	}
}

func TestAGrandchildThatHoldsThePipeDelaysTheEndByASecondAtMost(t *testing.T) {
	c, _ := children(t)
	var out text
	began := time.Now()
	p := begin(t, c, shell("echo done; sleep 431 &", &out))
	exit := wait(t, p)
	if took := time.Since(began); exit.Code != 0 || out.String() != "done\n" || took > 20*time.Second {
		t.Errorf("%+v, %q after %v", exit, out.String(), took)
	}
	if left := p.Left(); left.Ended != 1 || left.Running != 0 {
		t.Errorf("left behind: %+v", left)
	}
}

func TestAReaderThatFailsDoesNotHoldTheChild(t *testing.T) {
	c, _ := children(t)
	exit := wait(t, begin(t, c, shell("head -c 1000000 /dev/zero && echo x", failing{})))
	if exit.Code != 0 {
		t.Errorf("%+v", exit)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestEndAsksFirstAndKillsWhatDoesNotListen(t *testing.T) {
	for _, x := range []struct {
		name, command, out string
		grace, over        time.Duration
	}{
		{"a child that listens", "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done", "bye\n", time.Hour, 0},
		{"a child that does not", "trap '' TERM; echo up; while :; do sleep 0.01; done", "up\n", proc.Grace, proc.Grace},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, _ := children(t)
			var out text
			p := begin(t, c, shell(x.command, &out))
			testkit.Eventually(t, "it runs", func() bool { return strings.Contains(out.String(), "up") })
			began := time.Now()
			if err := p.End(x.grace); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 20*time.Second || took < x.over || !strings.HasSuffix(out.String(), x.out) {
				t.Errorf("%q after %v", out.String(), took)
			}
		})
	}
}

func TestKillAllLeavesNothingAndNothingStartsAfterIt(t *testing.T) {
	c, dir := children(t)
	var out text
	var all []*proc.Process
	for range 3 {
		all = append(all, begin(t, c, shell("trap 'echo asked' TERM; echo up; sleep 600 & while :; do sleep 601; done", &out)))
	}
	testkit.Eventually(t, "they run", func() bool { return strings.Count(out.String(), "up") == 3 })
	began := time.Now()
	if err := c.KillAll(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 20*time.Second || strings.Contains(out.String(), "asked") {
		t.Errorf("%q after %v: there is no grace at the end", out.String(), took)
	}
	for _, p := range all {
		select {
		case <-p.Done():
		default:
			t.Error("a child is left")
		}
	}
	if _, err := c.Start(shell("echo no", nil)); !errors.Is(err, proc.ErrRefused) {
		t.Errorf("started after the end: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left in the journal: %v", left)
	}
}

func TestRefuseTakesTheGraceFromAnEndThatHasBegun(t *testing.T) {
	c, _ := children(t)
	var out text
	p := begin(t, c, shell("trap '' TERM; echo up; while :; do sleep 0.01; done", &out))
	testkit.Eventually(t, "it runs", func() bool { return strings.Contains(out.String(), "up") })
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- p.End(time.Hour) }()
	c.Refuse()
	if err := <-ended; err != nil || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func TestAJournalThatCannotBeWrittenHoldsUpNoChild(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := proc.NewChildren(filepath.Join(file, "children"))
	var out text
	wait(t, begin(t, c, shell("echo ok", &out)))
	if out.String() != "ok\n" {
		t.Error(out.String())
	}
	if err := c.KillAll(); err != nil {
		t.Error(err)
	}
}

func TestStartingAndEndingManyAtOnceLeavesNoRecord(t *testing.T) {
	c, dir := children(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				p, err := c.Start(shell("true", nil))
				if err != nil {
					t.Error(err)
					return
				}
				<-p.Done()
			}
		})
	}
	wg.Wait()
	if left, _ := filepath.Glob(filepath.Join(dir, "*.child")); len(left) != 0 {
		t.Errorf("%d records are left", len(left))
	}
}

func TestASweepWithoutAFolderIsNone(t *testing.T) {
	if n, err := proc.Sweep(filepath.Join(t.TempDir(), "nothing")); n != 0 || err != nil {
		t.Error(n, err)
	}
}
