//go:build unix

package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/tool/shell"
	"github.com/rind-dev/rind/session/tool/tooltest"
)

// background is a session's side of a hand-off, for one call.
type background struct {
	places   int
	onPlace  func()                // runs in Reserve
	onHand   func(job session.Job) // runs in HandOff
	noPlace  error                 // of Reserve
	noHand   error                 // of HandOff
	released chan struct{}         // closed to release the call
	jobs     chan session.Job

	mu    sync.Mutex
	log   []string // in order: "reserve now", "reserve", "hand off", "free"
	specs []session.JobSpec
}

func newBackground(places int) *background {
	return &background{places: places, released: make(chan struct{}), jobs: make(chan session.Job, 1)}
}

func (b *background) did(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, what)
}

func (b *background) done() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.log)
}

func (b *background) Say(string) {}

func (b *background) Ask(context.Context, string, []protocol.Choice) (string, error) {
	return "", errors.New("nobody is asked")
}

func (b *background) Reserve(spec session.JobSpec, now bool) (func(), bool, error) {
	what := "reserve"
	if now {
		what += " now"
	}
	b.did(what)
	b.specs = append(b.specs, spec)
	if b.onPlace != nil {
		b.onPlace()
	}
	if b.noPlace != nil || b.places == 0 {
		return nil, false, b.noPlace
	}
	return func() { b.did("free") }, true, nil
}

func (b *background) Released() <-chan struct{} { return b.released }

func (b *background) HandOff(job session.Job, spec session.JobSpec) (string, error) {
	b.did("hand off")
	b.specs = append(b.specs, spec)
	if b.onHand != nil {
		b.onHand(job)
	}
	if b.noHand != nil {
		return "", b.noHand
	}
	b.jobs <- job
	return "task_1", nil
}

// ran is what a call came back with.
type ran struct {
	data told
	res  session.ToolResult
	err  error
}

// goes runs a call with a background.
func (d *desk) goes(ctx context.Context, t testing.TB, bg *background, a args) ran {
	t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var r ran
	r.res, r.err = shell.Bash(d.config).Run(ctx, d.asked(raw), bg)
	if r.res.Data != nil {
		if err := json.Unmarshal(protocol.MustMarshal(r.res.Data), &r.data); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// task runs a command that becomes a task, and ends it with the test.
func (d *desk) task(t testing.TB, a args) (session.Job, ran) {
	t.Helper()
	bg := newBackground(1)
	r := d.goes(t.Context(), t, bg, a)
	if r.err != nil || r.data.Status != "running" {
		t.Fatalf("%+v", r)
	}
	job := <-bg.jobs
	t.Cleanup(func() {
		if err := job.End(); err != nil {
			t.Error(err)
		}
		job.Close()
	})
	return job, r
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// await waits for the end of a job.
func await(t testing.TB, job session.Job) (status string, code int) {
	t.Helper()
	select {
	case <-job.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the command did not end within 20 s")
	}
	return job.Exit()
}

// whole is all output that is there, read in pieces.
func whole(t testing.TB, job session.Job, size int) (out, err string) {
	t.Helper()
	for from := int64(0); ; {
		o, e, start, next := job.Output(from, size)
		if start != from {
			t.Fatalf("from %d it began at %d", from, start)
		}
		if out, err = out+o, err+e; next == start {
			return out, err
		}
		from = next
	}
}

// hold is a command that goes on once there is a file of a name.
func hold(name string) string { return "until [ -e " + name + " ]; do sleep 0.01; done" }

func TestACommandThatTakesLongerThanItsYieldTimeGoesOnAsATask(t *testing.T) {
	d := newDesk(t)
	bg := newBackground(1)
	command := "echo before; " + hold("go") + "; echo after; echo wrong >&2; exit 3"
	r := d.goes(t.Context(), t, bg, args{"command": command, "yield_time_ms": 100, "notify": "manual"})
	if r.err != nil || r.res.Status != protocol.ToolCompleted || r.res.ErrorType != "" || r.data.Status != "running" || r.data.ExitCode != -1 {
		t.Fatalf("%+v", r)
	}
	if r.data.Task != "task_1" || r.data.Background != "task_1" || r.data.CWD != d.root || r.data.Backend != filepath.Base(r.data.Executable) {
		t.Errorf("%+v", r.data)
	}
	if got := bg.done(); !slices.Equal(got, []string{"reserve", "hand off"}) {
		t.Errorf("%v", got)
	}
	for _, spec := range bg.specs {
		if spec.Command != command || spec.CWD != d.root || spec.Backend != r.data.Backend || spec.Executable != r.data.Executable ||
			spec.Notify != "manual" || time.Since(spec.Started) > time.Minute {
			t.Errorf("%+v", spec)
		}
	}
	job := <-bg.jobs
	defer job.Close()
	if status, code := job.Exit(); status != protocol.TaskRunning || code != -1 {
		t.Errorf("%s %d", status, code)
	}
	d.put(t, "app/go", "")
	if status, code := await(t, job); status != protocol.TaskFailed || code != 3 {
		t.Errorf("%s %d", status, code)
	}
	job.Close() // what was written stays readable
	out, errs := whole(t, job, 4)
	if out != "before\nafter\n" || errs != "wrong\n" {
		t.Errorf("%q %q", out, errs)
	}
	if out, errs = job.Tail(3); out != "er\n" || errs != "ng\n" {
		t.Errorf("%q %q", out, errs)
	}
	sum := job.Sum()
	if sum.Bytes != 19 || sum.Lines != 3 || sum.Incomplete || sum.Path != r.res.Meta["output_path"] {
		t.Errorf("%+v, meta %v", sum, r.res.Meta)
	}
	text, err := os.ReadFile(sum.Path)
	if info, _ := os.Stat(sum.Path); err != nil || info.Mode().Perm() != 0o600 || len(text) != 19 || !strings.HasPrefix(string(text), "before\n") {
		t.Errorf("%q %v", text, err)
	}
}

func TestACommandThatEndsInTimeIsNoTask(t *testing.T) {
	d := newDesk(t)
	bg := newBackground(1)
	if r := d.goes(t.Context(), t, bg, args{"command": "echo x", "yield_time_ms": 30000}); r.data.Status != "completed" || r.data.Task != "" || len(bg.done()) != 0 {
		t.Errorf("%+v %v", r, bg.done())
	}
}

func TestAReleasedCallGoesOnAsATaskAndTellsWhatThereIsSoFar(t *testing.T) {
	d := newDesk(t)
	bg := newBackground(1)
	close(bg.released)
	var path string
	bg.onPlace = func() {
		testkit.Eventually(t, "all numbers are there", func() bool {
			files, _ := filepath.Glob(filepath.Join(d.outputs, "*"))
			if len(files) != 1 {
				return false
			}
			path = files[0]
			info, err := os.Stat(path)
			return err == nil && info.Size() == int64(len(numbers(1, 10_000)))
		})
	}
	r := d.goes(t.Context(), t, bg, args{"command": "echo early >made; seq 1 10000; " + hold("go") + "; echo late >other", "yield_time_ms": 60000})
	if r.err != nil || r.data.Status != "running" || r.data.Task != "task_1" {
		t.Fatalf("%+v", r)
	}
	if !strings.HasPrefix(r.data.Stdout, "1\n2\n") || !strings.HasSuffix(r.data.Stdout, "9999\n10000\n") || r.res.Meta["truncated"] != true || r.res.Meta["output_path"] != path {
		t.Errorf("%.100q %v", r.data.Stdout, r.res.Meta)
	}
	job := <-bg.jobs
	defer job.Close()
	d.put(t, "app/go", "")
	if status, code := await(t, job); status != protocol.TaskCompleted || code != 0 {
		t.Errorf("%s %d", status, code)
	}
	var touched []string
	if r.res.Touched != nil {
		for _, f := range r.res.Touched.Files {
			touched = append(touched, filepath.Base(f.Path))
		}
	}
	if !slices.Equal(touched, []string{"made"}) {
		t.Errorf("touched %v: what it did until then is told, and no more", touched)
	}
}

func TestWithoutWaitingThePlaceIsTakenBeforeTheCommandStarts(t *testing.T) {
	for name, a := range map[string]args{
		"yield_time_ms 0":   {"yield_time_ms": 0},
		"run_in_background": {"run_in_background": true},
		"wait_ms 0":         {"wait_ms": 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			a["command"] = "touch started; echo x"
			bg := newBackground(1)
			bg.onPlace = func() {
				time.Sleep(50 * time.Millisecond) // long enough for a command that was started too early
				if exists(filepath.Join(d.root, "started")) {
					t.Error("it was started before")
				}
			}
			r := d.goes(t.Context(), t, bg, a)
			if r.err != nil || r.data.Status != "running" || r.data.Task != "task_1" || r.res.Status != protocol.ToolCompleted {
				t.Fatalf("%+v", r)
			}
			if got := bg.done(); !slices.Equal(got, []string{"reserve now", "hand off"}) {
				t.Errorf("%v", got)
			}
			job := <-bg.jobs
			defer job.Close()
			if status, _ := await(t, job); status != protocol.TaskCompleted || !exists(filepath.Join(d.root, "started")) {
				t.Error(status)
			}
			if out, _ := whole(t, job, 100); out != "x\n" {
				t.Errorf("%q", out)
			}
		})
	}
}

func TestWhereAllPlacesAreTakenNothingStartsInTheBackground(t *testing.T) {
	d := newDesk(t)
	bg := newBackground(0)
	r := d.goes(t.Context(), t, bg, args{"command": "touch started", "yield_time_ms": 0})
	if r.err != nil || r.res.Status != protocol.ToolRejected || r.res.ErrorType != protocol.ErrTaskLimit ||
		!strings.Contains(r.res.Error, " 8 ") || !strings.Contains(r.res.Error, "task_control") {
		t.Errorf("%+v", r)
	}
	bg = newBackground(1)
	bg.noPlace = errors.New("started before")
	if r = d.goes(t.Context(), t, bg, args{"command": "touch started", "yield_time_ms": 0}); !errors.Is(r.err, bg.noPlace) {
		t.Errorf("%+v", r)
	}
	if exists(filepath.Join(d.root, "started")) {
		t.Error("it was started")
	}
}

func TestWhereAllPlacesAreTakenACallWaitsForItsEndAndSaysSo(t *testing.T) {
	d := newDesk(t)
	bg := newBackground(0)
	bg.onPlace = func() { d.put(t, "app/go", "") }
	close(bg.released)
	r := d.goes(t.Context(), t, bg, args{"command": hold("go") + "; sleep 0.1; echo end", "yield_time_ms": 20})
	note, _ := r.res.Meta["note"].(string)
	if r.err != nil || r.data.Status != "completed" || r.data.Stdout != "end\n" || !strings.Contains(note, "8 commands in the background") {
		t.Errorf("%+v", r)
	}
	if got := bg.done(); !slices.Equal(got, []string{"reserve"}) {
		t.Errorf("%v", got)
	}
	bg = newBackground(0)
	d.config.MaxTime = 300 * time.Millisecond
	if r = d.goes(t.Context(), t, bg, args{"command": "sleep 341.25", "yield_time_ms": 20}); r.res.Status != protocol.ToolTimedOut {
		t.Errorf("%+v", r)
	}
}

func TestAPlaceIsGivenBackWhenNothingTakesIt(t *testing.T) {
	t.Run("the command cannot start", func(t *testing.T) {
		d := newDesk(t)
		bg := newBackground(1)
		d.config.Children.Refuse()
		r := d.goes(t.Context(), t, bg, args{"command": "true", "yield_time_ms": 0})
		if got := bg.done(); r.res.Status != protocol.ToolCancelled || !slices.Equal(got, []string{"reserve now", "free"}) {
			t.Errorf("%+v %v", r, got)
		}
	})
	t.Run("the folder is refused", func(t *testing.T) {
		d := newDesk(t)
		bg := newBackground(1)
		if r := d.goes(t.Context(), t, bg, args{"command": "true", "cwd": "..", "yield_time_ms": 0}); r.res.ErrorType != protocol.ErrPermissionDenied || len(bg.done()) != 0 {
			t.Errorf("%+v %v", r, bg.done())
		}
	})
	t.Run("the turn was cancelled meanwhile", func(t *testing.T) {
		d := newDesk(t)
		ctx, cancel := context.WithCancel(t.Context())
		for _, yield := range []int{0, 20} {
			bg := newBackground(1)
			bg.onPlace = cancel
			r := d.goes(ctx, t, bg, args{"command": "sleep 342.25", "yield_time_ms": yield})
			if got := bg.done(); r.res.Status != protocol.ToolCancelled || got[len(got)-1] != "free" || slices.Contains(got, "hand off") {
				t.Errorf("%+v %v", r, got)
			}
			ctx, cancel = context.WithCancel(t.Context())
		}
		cancel()
	})
	t.Run("the command ends meanwhile", func(t *testing.T) {
		d := newDesk(t)
		bg := newBackground(1)
		var ended <-chan struct{}
		d.config.OnStart(func(e <-chan struct{}) { ended = e })
		bg.onPlace = func() {
			d.put(t, "app/go", "")
			<-ended
		}
		r := d.goes(t.Context(), t, bg, args{"command": hold("go"), "yield_time_ms": 20})
		if got := bg.done(); r.data.Status != "completed" || !slices.Equal(got, []string{"reserve", "free"}) {
			t.Errorf("%+v %v", r, got)
		}
	})
}

func TestACommandThatCannotBeHandedOffIsEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	other := errors.New("other")
	for _, c := range []struct {
		name              string
		err               error
		onHand            func()
		status, errorType string
		returned          error
	}{
		{"not saved", protocol.Errorf(protocol.PersistenceError, "the disk is full"), nil, protocol.ToolFailed, protocol.ErrTaskPersistence, nil},
		{"cancelled", other, cancel, protocol.ToolCancelled, protocol.ErrCancelled, nil},
		{"a defect", other, nil, "", "", other},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			bg := newBackground(1)
			bg.noHand = c.err
			run := t.Context()
			if c.onHand != nil {
				run, bg.onHand = ctx, func(session.Job) { c.onHand() }
			}
			r := d.goes(run, t, bg, args{"command": "sleep 343.25; touch end", "yield_time_ms": 20})
			if !errors.Is(r.err, c.returned) || r.res.Status != c.status || r.res.ErrorType != c.errorType {
				t.Errorf("%+v", r)
			}
			if got := bg.done(); !slices.Equal(got, []string{"reserve", "hand off", "free"}) {
				t.Errorf("%v", got)
			}
			if pids := sleeping(t, "343.25"); len(pids) != 0 {
				t.Errorf("left: %v", pids)
			}
		})
	}
}

func TestACommandThatIsRefusedAPlaceWithAnErrorIsEnded(t *testing.T) {
	d := newDesk(t)
	bg := newBackground(1)
	bg.noPlace = errors.New("other")
	if r := d.goes(t.Context(), t, bg, args{"command": "sleep 349.25", "yield_time_ms": 20}); !errors.Is(r.err, bg.noPlace) {
		t.Errorf("%+v", r)
	}
	if pids := sleeping(t, "349.25"); len(pids) != 0 {
		t.Errorf("left: %v", pids)
	}
}

func TestACommandThatEndsWhileItCannotBeHandedOffIsToldAsItEnded(t *testing.T) {
	d := newDesk(t)
	bg := newBackground(1)
	bg.noHand = protocol.Errorf(protocol.PersistenceError, "the disk is full")
	bg.onHand = func(job session.Job) {
		d.put(t, "app/go", "")
		<-job.Done()
	}
	r := d.goes(t.Context(), t, bg, args{"command": hold("go") + "; echo end; exit 4", "yield_time_ms": 20})
	if r.err != nil || r.data.Status != "failed" || r.data.ExitCode != 4 || r.data.Stdout != "end\n" || r.res.ErrorType != "" {
		t.Errorf("%+v", r)
	}
	if got := bg.done(); !slices.Equal(got, []string{"reserve", "hand off", "free"}) {
		t.Errorf("%v", got)
	}
}

// patient is a bash whose tasks are waited for.
type patient struct{ session.Tool }

func (p patient) Run(ctx context.Context, call session.ToolCall, _ session.Progress) (session.ToolResult, error) {
	bg := newBackground(1)
	res, err := p.Tool.Run(ctx, call, bg)
	select {
	case job := <-bg.jobs:
		<-job.Done()
		job.Close()
	default:
	}
	return res, err
}

func TestTheToolKeepsThePromisesOfToolsInTheBackground(t *testing.T) {
	d := newDesk(t)
	w := tooltest.NewWorkspace(t)
	w.Args = map[string]any{"command": "true", "yield_time_ms": 0}
	w.Only = map[string][]any{
		"command":       {"true", "echo x", "exit 3", "sleep 0.01", "printf '\\377\\033[1m'", "nope"},
		"yield_time_ms": {0, 1, 10},
	}
	tooltest.Run(t, patient{shell.Bash(d.config)}, w)
}
