package shell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session/tool/shell"
)

func TestADiskThatIsFullIsSaidAndHoldsNothingUp(t *testing.T) {
	rec := shell.NewRecord(func() (*os.File, error) { return os.OpenFile("/dev/full", os.O_RDWR, 0) })
	defer rec.Close()
	rec.Write(false, []byte("early "))
	rec.Store()
	rec.Write(true, []byte("late "))
	rec.Write(false, []byte(strings.Repeat("x", 50_000)))
	job := rec.Job()
	if sum := job.Sum(); !sum.Incomplete || sum.Bytes != 50_011 || sum.Path != "/dev/full" {
		t.Errorf("%+v", sum)
	}
	if out, errs, start, _ := job.Output(0, 11); out != "early " || errs != "late " || start != 0 {
		t.Errorf("%q %q from %d: the newest is in memory", out, errs, start)
	}
	rec.Write(false, []byte(strings.Repeat("y", 200_000)))
	if out, _, start, _ := job.Output(0, 5); out != "yyyyy" || start < 50_011 {
		t.Errorf("%q from %d", out, start)
	}
}

func TestTheTemporaryFolderOfATaskGoesWithIt(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	d := guarded(t)
	d.reads = true
	own := func() []string {
		found, _ := filepath.Glob(filepath.Join(temp, "rind-command-*"))
		return found
	}
	bg := newBackground(1)
	command := `f=$(mktemp); echo kept >$f; until [ -e ` + d.home + `/go ]; do sleep 0.01; done; cat $f; echo x >>$f && cat $f`
	if r := d.goes(t.Context(), t, bg, args{"command": command, "yield_time_ms": 20}); r.data.Status != "running" || r.res.Meta["sandbox"] != "landlock" {
		t.Fatalf("%+v", r)
	}
	job := <-bg.jobs
	if len(own()) != 1 {
		t.Errorf("%v: it went with the call", own())
	}
	d.put(t, "go", "")
	if status, _ := await(t, job); status != protocol.TaskCompleted {
		t.Error(status)
	}
	if out, errs := whole(t, job, 100); out != "kept\nkept\nx\n" || errs != "" {
		t.Errorf("%q %q", out, errs)
	}
	job.Close()
	if left := own(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	job.Close()
}
