package dispatcher_test

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// shell is the tool bash without processes: what its commands write, and when they end, is said by the directives of a transcript. It waits,
// and hands off, as session/tool/shell does.
type shell struct {
	cwd string

	mu   sync.Mutex // guards jobs
	jobs map[string]*testkit.Job
}

func newShell(cwd string) *shell { return &shell{cwd: cwd, jobs: map[string]*testkit.Job{}} }

// job is the command of a call.
func (sh *shell) job(t peers.T, call string) *testkit.Job {
	t.Helper()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	job := sh.jobs[call]
	if job == nil {
		t.Fatalf("call %s has started no command", call)
	}
	return job
}

// Spec implements session.Tool.
func (sh *shell) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name: "bash", Description: "d", Kind: "execute",
		Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"},"yield_time_ms":{"type":"integer"},"notify":{"type":"string"}},` +
			`"required":["command"],"additionalProperties":false}`),
	}
}

// Run implements session.Tool.
func (sh *shell) Run(ctx context.Context, call session.ToolCall, out session.Progress) (session.ToolResult, error) {
	args := struct {
		Command string
		Yield   int `json:"yield_time_ms"`
		Notify  string
	}{Yield: 10_000, Notify: protocol.NotifyOnExit}
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return session.ToolResult{}, err
	}
	bg := out.(session.Background)
	spec := session.JobSpec{Command: args.Command, CWD: sh.cwd, Backend: "none", Executable: "/bin/none", Notify: args.Notify, Started: time.Now()}
	begin := func() *testkit.Job {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		job := testkit.NewJob()
		sh.jobs[call.ID] = job
		return job
	}
	told := func(job *testkit.Job, status string, code int, task string) session.ToolResult {
		data := map[string]any{"status": status, "exit_code": code, "cwd": sh.cwd, "shell_backend": spec.Backend, "shell_executable": spec.Executable}
		data["stdout"], data["stderr"] = job.Tail(2000)
		if task != "" {
			data["task_id"], data["bg_id"] = task, task
		}
		return session.ToolResult{Data: data}
	}
	handOff := func(job *testkit.Job, free func()) (session.ToolResult, error) {
		defer free()
		task, err := bg.HandOff(job, spec)
		if err != nil {
			return session.ToolResult{}, err
		}
		return told(job, protocol.TaskRunning, -1, task), nil
	}
	reserve := func(now bool) (func(), session.ToolResult, error) {
		free, ok, err := bg.Reserve(spec, now)
		if err == nil && !ok {
			return nil, session.ToolResult{Status: protocol.ToolRejected, ErrorType: protocol.ErrTaskLimit, Error: "Too many tasks."}, nil
		}
		return free, session.ToolResult{}, err
	}
	if args.Yield == 0 {
		free, res, err := reserve(true)
		if free == nil {
			return res, err
		}
		return handOff(begin(), free)
	}
	job := begin()
	timer := time.NewTimer(time.Duration(args.Yield) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-job.Done():
		status, code := job.Exit()
		return told(job, status, code, ""), nil
	case <-ctx.Done():
		_ = job.End()
		return session.ToolResult{}, context.Cause(ctx)
	case <-timer.C:
	case <-bg.Released():
	}
	free, res, err := reserve(false)
	if free == nil {
		return res, err
	}
	return handOff(job, free)
}
