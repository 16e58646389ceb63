package protocol

// Task is the record of a background process (docs/protocol/rind-v2.md section 4.8).
type Task struct {
	TaskID           string    `json:"task_id"`
	BgID             string    `json:"bg_id"` // the same under its older name
	OwnerSessionID   SessionID `json:"owner_session_id"`
	OriginToolCallID string    `json:"origin_tool_call_id"`
	OriginTurnID     TurnID    `json:"origin_turn_id"`
	RequestID        string    `json:"request_id"` // scope id
	Command          string    `json:"command"`    // at most 2,000 characters
	Cwd              string    `json:"cwd"`
	ShellBackend     string    `json:"shell_backend"`
	ShellExecutable  string    `json:"shell_executable"`
	Status           string    `json:"status" enum:"starting,running,cancelling,completed,failed,cancelled,timed_out,lost"`
	ExitCode         int       `json:"exit_code"` // -1 while it runs
	Notify           string    `json:"notify" enum:"on_exit,manual"`
	StartedAt        *float64  `json:"started_at"` // Unix seconds
	FinishedAt       *float64  `json:"finished_at"`
	ElapsedMS        int64     `json:"elapsed_ms"`
	Reason           string    `json:"reason"`
	Stdout           string    `json:"stdout"`
	Stderr           string    `json:"stderr"`
	Meta             TaskMeta  `json:"meta"`
}

// TaskMeta tells how much of a task's output there is.
type TaskMeta struct {
	Truncated        bool   `json:"truncated"`
	TotalBytes       int64  `json:"total_bytes"`
	TotalLines       int64  `json:"total_lines"`
	OutputPath       string `json:"output_path"`
	OutputIncomplete bool   `json:"output_incomplete"`
}

// Live reports whether the task has not ended, as far as its record says.
func (t *Task) Live() bool {
	return t.Status == TaskStarting || t.Status == TaskRunning || t.Status == TaskCancelling
}
