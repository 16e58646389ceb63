package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Job is a session.Job without a process: a test writes its output and ends it.
type Job struct {
	mu     sync.Mutex // guards what follows
	out    []byte
	done   chan struct{}
	status string
	code   int
	closed bool
	// Stubborn jobs do not end when they are asked to.
	Stubborn bool
}

var _ session.Job = (*Job)(nil)

// NewJob makes a running job.
func NewJob() *Job { return &Job{done: make(chan struct{})} }

// Write adds output.
func (j *Job) Write(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.out = append(j.out, text...)
}

// Finish ends the job by itself.
func (j *Job) Finish(status string, code int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-j.done:
	default:
		j.status, j.code = status, code
		close(j.done)
	}
}

// Closed reports whether its owner has closed it.
func (j *Job) Closed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.closed
}

// Output implements session.Job.
func (j *Job) Output(from int64, most int) (stdout, stderr string, start, next int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	start = min(max(from, 0), int64(len(j.out)))
	text := protocol.Prefix(string(j.out[start:]), most)
	return text, "", start, start + int64(len(text))
}

// Tail implements session.Job.
func (j *Job) Tail(most int) (stdout, stderr string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return protocol.Suffix(string(j.out), most), ""
}

// Sum implements session.Job.
func (j *Job) Sum() session.JobSum {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := bytes.Count(j.out, []byte("\n"))
	if len(j.out) > 0 && j.out[len(j.out)-1] != '\n' {
		lines++
	}
	return session.JobSum{Bytes: int64(len(j.out)), Lines: int64(lines)}
}

// Done implements session.Job.
func (j *Job) Done() <-chan struct{} { return j.done }

// Exit implements session.Job.
func (j *Job) Exit() (string, int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.status, j.code
}

// End implements session.Job.
func (j *Job) End() error {
	if !j.Stubborn {
		j.Finish(protocol.TaskFailed, 143)
	}
	return nil
}

// Close implements session.Job.
func (j *Job) Close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
}

// Jobs is a tool named bg whose calls go on in the background at once. Started gets each job.
type Jobs struct {
	Notify  string
	Kind    string // "" is execute
	Started chan *Job
}

// Spec implements session.Tool.
func (t *Jobs) Spec() session.ToolSpec {
	kind := t.Kind
	if kind == "" {
		kind = "execute"
	}
	return session.ToolSpec{
		Name: "bg", Description: "d", Kind: kind,
		Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"additionalProperties":false}`),
	}
}

// Run implements session.Tool.
func (t *Jobs) Run(_ context.Context, call session.ToolCall, out session.Progress) (session.ToolResult, error) {
	bg, ok := out.(session.Background)
	if !ok {
		return session.ToolResult{ErrorType: protocol.ErrInternal, Error: "no background"}, nil
	}
	notify := t.Notify
	if notify == "" {
		notify = protocol.NotifyOnExit
	}
	var args struct{ Command string }
	_ = json.Unmarshal(call.Arguments, &args)
	spec := session.JobSpec{Command: args.Command, CWD: "/w", Backend: "none", Executable: "/bin/none", Notify: notify}
	free, ok, err := bg.Reserve(spec, true)
	if err != nil {
		return session.ToolResult{}, err
	}
	if !ok {
		return session.ToolResult{Status: protocol.ToolRejected, ErrorType: protocol.ErrTaskLimit, Error: "Too many tasks."}, nil
	}
	defer free()
	job := NewJob()
	id, err := bg.HandOff(job, spec)
	if err != nil {
		return session.ToolResult{}, err
	}
	t.Started <- job
	return session.ToolResult{Data: map[string]any{"status": "running", "exit_code": -1, "task_id": id, "bg_id": id}}, nil
}
