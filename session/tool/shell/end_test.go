//go:build unix

package shell_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

func TestTheEndOfTheTurnLeavesATaskRunning(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	bg := newBackground(1)
	ctx, cancel := context.WithCancel(t.Context())
	if r := d.goes(ctx, t, bg, args{"command": hold("go") + "; echo end", "yield_time_ms": 0}); r.data.Status != "running" {
		t.Fatalf("%+v", r)
	}
	job := <-bg.jobs
	defer job.Close()
	cancel()
	select {
	case <-job.Done():
		t.Fatal("it ended with the turn")
	case <-time.After(200 * time.Millisecond):
	}
	d.put(t, "app/go", "")
	if status, code := await(t, job); status != protocol.TaskCompleted || code != 0 {
		t.Errorf("%s %d", status, code)
	}
	if out, _ := whole(t, job, 100); out != "end\n" {
		t.Errorf("%q", out)
	}
}

func TestATaskHasItsOwnTimeAndNoOther(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.config.MaxTime = 200 * time.Millisecond
	began := time.Now()
	job, _ := d.task(t, args{"command": "sleep 344.25", "yield_time_ms": 0, "timeout_ms": 700})
	free, _ := d.task(t, args{"command": hold("go"), "yield_time_ms": 0})
	if status, code := await(t, job); status != protocol.TaskTimedOut || code != 128+15 || time.Since(began) < 700*time.Millisecond {
		t.Errorf("%s %d after %v", status, code, time.Since(began))
	}
	d.put(t, "app/go", "")
	if status, _ := await(t, free); status != protocol.TaskCompleted {
		t.Errorf("%s: the time of calls is not that of tasks", status)
	}
	if pids := sleeping(t, "344.25"); len(pids) != 0 {
		t.Errorf("left: %v", pids)
	}
}

func TestEndingATaskLeavesNothingOfIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	job, _ := d.task(t, args{"command": "trap '' TERM; (setsid sleep 345.25 &); sleep 346.25 & touch up; sleep 347.25; sleep 347.25", "yield_time_ms": 0})
	testkit.Eventually(t, "all run", func() bool {
		return exists(filepath.Join(d.root, "up")) && len(sleeping(t, "345.25", "346.25", "347.25")) >= 3
	})
	began := time.Now()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := job.End(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if status, code := await(t, job); status != protocol.TaskCancelled || code != 128+9 {
		t.Errorf("%s %d", status, code)
	}
	if pids := sleeping(t, "345.25", "346.25", "347.25"); len(pids) != 0 {
		t.Errorf("left: %v", pids)
	}
	if err := job.End(); err != nil {
		t.Error(err)
	}
}

func TestATaskThatIsBeingEndedKeepsItsReason(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	job, _ := d.task(t, args{"command": "trap 'touch asked' TERM; while :; do sleep 0.05; done", "yield_time_ms": 0, "timeout_ms": 3000})
	testkit.Eventually(t, "it is asked to end", func() bool {
		status, _ := job.Exit()
		return exists(filepath.Join(d.root, "asked")) || status != protocol.TaskRunning // it may have had no time for its trap
	})
	if err := job.End(); err != nil {
		t.Error(err)
	}
	if status, _ := await(t, job); status != protocol.TaskTimedOut {
		t.Error(status)
	}
}

func TestATaskThatHasEndedIsNotCancelledAfterwards(t *testing.T) {
	d := newDesk(t)
	job, _ := d.task(t, args{"command": "exit 5", "yield_time_ms": 0})
	await(t, job)
	if err := job.End(); err != nil {
		t.Error(err)
	}
	if status, code := job.Exit(); status != protocol.TaskFailed || code != 5 {
		t.Errorf("%s %d", status, code)
	}
}

func TestTheEndOfTheRuntimeIsThatOfItsTasks(t *testing.T) {
	d := newDesk(t)
	var jobs []session.Job
	for range 3 {
		job, _ := d.task(t, args{"command": "trap 'echo asked' TERM; echo x; while :; do sleep 348.25; done", "yield_time_ms": 0})
		testkit.Eventually(t, "it runs", func() bool { out, _ := whole(t, job, 100); return out == "x\n" })
		jobs = append(jobs, job)
	}
	began := time.Now()
	d.config.Children.Refuse()
	if err := jobs[0].End(); err != nil {
		t.Error(err)
	}
	if out, _ := whole(t, jobs[0], 100); out != "x\n" || time.Since(began) > 20*time.Second {
		t.Errorf("there was a grace: %q after %v", out, time.Since(began))
	}
	if err := d.config.Children.KillAll(); err != nil {
		t.Error(err)
	}
	for _, job := range jobs {
		await(t, job)
	}
	if status, _ := jobs[0].Exit(); status != protocol.TaskCancelled {
		t.Error(status)
	}
	if pids := sleeping(t, "348.25"); len(pids) != 0 {
		t.Errorf("left: %v", pids)
	}
}
