package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// The tools that work on the session's own tasks (docs/protocol/rind-v2.md section 9). Like update_goal they belong to the loop.

const (
	taskControlName = "task_control"
	bashOutputName  = "bash_output" // of older histories: it runs, but is not offered
)

type taskControl struct{}

// Spec implements Tool.
func (taskControl) Spec() ToolSpec {
	return ToolSpec{
		Name: taskControlName, Kind: "think",
		Description: "List background tasks, read what one wrote since you last read it, wait for its end, or cancel it. " +
			"You are told by itself when a task with notify on_exit ends: do not poll.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"action":{"type":"string","enum":["list","read","wait","cancel"]},` +
			`"task_id":{"type":"string","description":"of read, wait and cancel"},` +
			`"cursor":{"type":"integer","minimum":0,"description":"offset of output to begin at; default: where you stopped reading"},` +
			`"wait_ms":{"type":"integer","minimum":1000,"maximum":60000,"default":30000},` +
			`"max_output_chars":{"type":"integer","minimum":1,"maximum":50000,"default":20000},` +
			`"page_token":{"type":"string"}},"required":["action"],"additionalProperties":false}`),
	}
}

type taskArgs struct {
	Action    string   `json:"action"`
	TaskID    string   `json:"task_id"`
	Cursor    *float64 `json:"cursor"`
	WaitMS    *float64 `json:"wait_ms"`
	Chars     *float64 `json:"max_output_chars"`
	PageToken string   `json:"page_token"`
}

// repeatable reports whether a call may run again after a crash although its tool is not read-only as a whole.
func repeatable(name string, args json.RawMessage) bool {
	var a taskArgs
	return name == taskControlName && json.Unmarshal(args, &a) == nil && a.Action != "cancel"
}

// waits reports whether a call only waits for a task.
func waits(name string, args json.RawMessage) bool {
	var a taskArgs
	return name == taskControlName && json.Unmarshal(args, &a) == nil && a.Action == "wait"
}

// Run implements Tool.
func (taskControl) Run(ctx context.Context, call ToolCall, out Progress) (ToolResult, error) {
	var a taskArgs
	if err := json.Unmarshal(call.Arguments, &a); err != nil {
		return ToolResult{}, err
	}
	p, ok := out.(*toolProgress)
	if !ok {
		return ToolResult{Status: protocol.ToolUnavailable, ErrorType: protocol.ErrToolNotFound, Error: "There are no tasks here."}, nil
	}
	s := p.t.s
	if a.Action != "list" && a.TaskID == "" {
		return taskError(protocol.Errorf(protocol.InvalidRequest, "Invalid arguments for task_control: task_id is missing."))
	}
	chars := number(a.Chars, 20_000)
	switch a.Action {
	case "list":
		return listTasks(s, a.PageToken)
	case "cancel":
		type ended struct {
			rec protocol.Task
			err error
		}
		ch := make(chan ended, 1)
		s.CancelTask(a.TaskID, func(rec protocol.Task, err error) { ch <- ended{rec, err} })
		e := <-ch
		if e.err != nil {
			return taskError(e.err)
		}
		return ToolResult{Data: e.rec}, nil
	}
	from := int64(-1)
	if a.Cursor != nil {
		from = int64(*a.Cursor)
	}
	wait := time.Duration(0)
	if a.Action == "wait" {
		wait = time.Duration(number(a.WaitMS, 30_000)) * time.Millisecond
	}
	part, err := readTask(ctx, p, a.TaskID, from, chars, wait)
	if err != nil {
		return taskError(err)
	}
	return ToolResult{Data: partJSON(part)}, nil
}

func number(n *float64, other int) int {
	if n == nil {
		return other
	}
	return int(*n)
}

// partJSON is a TaskPart as clients and model get it.
func partJSON(p TaskPart) any {
	return struct {
		protocol.Task
		Start  int64  `json:"start_cursor"`
		Next   int64  `json:"next_cursor"`
		Reason string `json:"return_reason"`
	}{p.Task, p.Start, p.Next, p.Reason}
}

func listTasks(s *Session, page string) (ToolResult, error) {
	var tasks []protocol.Task
	var next string
	var failure error
	if err := s.InspectNow(context.Background(), func(v *View) { tasks, next, failure = v.Tasks(page) }); err != nil {
		return ToolResult{}, err
	}
	if failure != nil {
		return taskError(failure)
	}
	var token *string
	if next != "" {
		token = &next
	}
	return ToolResult{Data: struct {
		Tasks []protocol.Task `json:"tasks"`
		Next  *string         `json:"next_page_token"`
	}{tasks, token}}, nil
}

// readTask reads a task's output for the model, from where it stopped when from is negative, after waiting for its end.
func readTask(ctx context.Context, p *toolProgress, id string, from int64, chars int, wait time.Duration) (TaskPart, error) {
	type got struct {
		part TaskPart
		err  error
	}
	ch := make(chan got, 1)
	s := p.t.s
	answer := func(part TaskPart, err error) { ch <- got{part, err} }
	if wait > 0 { // only for its end: where to read from is looked up then
		done := make(chan got, 1)
		s.wait(&taskWait{call: p.call.ID, task: id, tool: true}, 0, 1, wait, ctx.Done(), func(part TaskPart, err error) { done <- got{part, err} })
		ended := <-done
		if ended.err != nil {
			return ended.part, ended.err
		}
		if err := context.Cause(ctx); err != nil {
			return ended.part, err
		}
		inner := answer
		answer = func(part TaskPart, err error) {
			if part.Reason != waitFinished {
				part.Reason = ended.part.Reason
			}
			inner(part, err)
		}
	}
	if !s.post(func() {
		t := s.jobs.live[id]
		if from < 0 {
			if from = s.jobs.readTo[id]; t == nil && s.shown.task(id) != nil && from >= s.shown.task(id).Task.Meta.TotalBytes {
				from = 0 // all of it was read: what the record holds is shown again
			}
		}
		part, err := s.part(id, from, chars, waitTimeout)
		if err == nil {
			s.jobs.readTo[id] = part.Next
		}
		answer(part, err)
	}) {
		return TaskPart{}, s.noTask(id)
	}
	g := <-ch
	return g.part, g.err
}

type bashOutput struct{}

// Spec implements Tool.
func (bashOutput) Spec() ToolSpec {
	return ToolSpec{
		Name: bashOutputName, Kind: "think", Description: "Read the output of a background process, or kill it.",
		Schema: json.RawMessage(`{"type":"object","properties":{"bg_id":{"type":"string"},"kill":{"type":"boolean"},` +
			`"wait_ms":{"type":"integer","minimum":0,"maximum":60000},"max_output_chars":{"type":"integer","minimum":1,"maximum":50000}},` +
			`"required":["bg_id"],"additionalProperties":false}`),
	}
}

// Run implements Tool. Data has the shape of bash.
func (bashOutput) Run(ctx context.Context, call ToolCall, out Progress) (ToolResult, error) {
	var a struct {
		BgID   string   `json:"bg_id"`
		Kill   bool     `json:"kill"`
		WaitMS *float64 `json:"wait_ms"`
		Chars  *float64 `json:"max_output_chars"`
	}
	if err := json.Unmarshal(call.Arguments, &a); err != nil {
		return ToolResult{}, err
	}
	p, ok := out.(*toolProgress)
	if !ok {
		return ToolResult{Status: protocol.ToolUnavailable, ErrorType: protocol.ErrToolNotFound, Error: "There are no tasks here."}, nil
	}
	if a.Kill {
		ch := make(chan error, 1)
		p.t.s.CancelTask(a.BgID, func(_ protocol.Task, err error) { ch <- err })
		if err := <-ch; err != nil {
			return taskError(err)
		}
	}
	part, err := readTask(ctx, p, a.BgID, -1, number(a.Chars, 20_000), time.Duration(number(a.WaitMS, 0))*time.Millisecond)
	if err != nil {
		return taskError(err)
	}
	rec := &part.Task
	status := rec.Status
	if rec.Live() {
		status = protocol.TaskRunning
	}
	return ToolResult{Data: struct {
		Status   string `json:"status"`
		ExitCode int    `json:"exit_code"`
		Stdout   string `json:"stdout"`
		Stderr   string `json:"stderr"`
		Cwd      string `json:"cwd"`
		Backend  string `json:"shell_backend"`
		Shell    string `json:"shell_executable"`
		TaskID   string `json:"task_id"`
		BgID     string `json:"bg_id"`
	}{status, rec.ExitCode, rec.Stdout, rec.Stderr, rec.Cwd, rec.ShellBackend, rec.ShellExecutable, rec.TaskID, rec.BgID}}, nil
}

// taskError is a result of a task tool that went wrong.
func taskError(err error) (ToolResult, error) {
	e, ok := errors.AsType[*protocol.Error](err)
	if !ok {
		return ToolResult{}, err
	}
	r := ToolResult{Status: protocol.ToolFailed, ErrorType: protocol.ErrInternal, Error: e.Message}
	switch e.Kind {
	case protocol.NotFound, protocol.TaskNotOwned:
		r.Status, r.ErrorType = protocol.ToolUnavailable, protocol.ErrNotFound
	case protocol.InvalidRequest:
		r.Status, r.ErrorType = protocol.ToolRejected, protocol.ErrInvalidArguments
	case protocol.PersistenceError:
		r.ErrorType = protocol.ErrTaskPersistence
	}
	return r, nil
}
