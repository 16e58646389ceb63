package rindv2

import (
	"encoding/json"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// BackgroundOutputParams are those of rind/background/output.
type BackgroundOutputParams struct {
	Target
	BgID           string `json:"bg_id"`
	MaxOutputChars int    `json:"max_output_chars,omitempty"` // default 20000, clamped to 1..40000
}

// Read takes a process and how much of its output is wanted.
func (b *BackgroundOutputParams) Read(p Params) (err error) {
	if err := b.Target.Read(p); err != nil {
		return err
	}
	if b.BgID, err = p.need("bg_id", "rind/background/output requires bg_id."); err != nil {
		return err
	}
	n, ok := p.Int("max_output_chars", 20_000)
	if !ok {
		return Bad("rind/background/output max_output_chars must be an integer.")
	}
	b.MaxOutputChars = int(max(1, min(n, 40_000)))
	return nil
}

// TaskListParams are those of rind/task/list (section 4.8).
type TaskListParams struct {
	Target
	PageToken string `json:"page_token,omitempty"`
}

// Read takes a page.
func (l *TaskListParams) Read(p Params) error {
	if err := l.Target.Read(p); err != nil {
		return err
	}
	return p.fill(field{"page_token", &l.PageToken})
}

// TaskParams are those of rind/task/cancel.
type TaskParams struct {
	Target
	TaskID string `json:"task_id"`
}

// Read takes a task.
func (r *TaskParams) Read(p Params) (err error) {
	if err := r.Target.Read(p); err != nil {
		return err
	}
	r.TaskID, err = p.need("task_id", "task_id is required.")
	return err
}

// TaskReadParams are those of rind/task/read. Cursor is an offset in the output, no position in a log.
type TaskReadParams struct {
	TaskParams
	Cursor         int64 `json:"cursor,omitempty"`
	MaxOutputChars int   `json:"max_output_chars,omitempty"` // 1..50000, default 20000
}

// Read takes a task and a part of its output.
func (r *TaskReadParams) Read(p Params) (err error) {
	if err := r.TaskParams.Read(p); err != nil {
		return err
	}
	cursor, ok := p.Int("cursor", 0)
	if !ok || cursor < 0 {
		return Bad("cursor must be a non-negative integer.")
	}
	r.Cursor = cursor
	r.MaxOutputChars, err = p.between("max_output_chars", 20_000, 1, 50_000, "max_output_chars must be an integer from 1 to 50000.")
	return err
}

// TaskWaitParams are those of rind/task/wait.
type TaskWaitParams struct {
	TaskReadParams
	WaitMS int `json:"wait_ms,omitempty"` // 1000..60000, default 30000
}

// Read takes a task and how long to wait for it.
func (w *TaskWaitParams) Read(p Params) (err error) {
	if err := w.TaskReadParams.Read(p); err != nil {
		return err
	}
	w.WaitMS, err = p.between("wait_ms", 30_000, 1000, 60_000, "wait_ms must be an integer from 1000 to 60000.")
	return err
}

// ReleaseParams are those of rind/task/release_wait: at least one of its two.
type ReleaseParams struct {
	Target
	TaskID     string `json:"task_id,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

// Read takes what waits.
func (r *ReleaseParams) Read(p Params) error {
	if err := r.Target.Read(p); err != nil {
		return err
	}
	if err := p.fill(field{"task_id", &r.TaskID}, field{"tool_call_id", &r.ToolCallID}); err != nil {
		return err
	}
	if r.TaskID == "" && r.ToolCallID == "" {
		return Bad("rind/task/release_wait requires task_id or tool_call_id.")
	}
	return nil
}

// GoalSetParams are those of rind/goal/set (section 4.9).
type GoalSetParams struct {
	Target
	Objective string `json:"objective"`           // 1..4000 characters
	MaxTurns  int    `json:"max_turns,omitempty"` // 1..1000, default 25
}

// Read takes a goal.
func (g *GoalSetParams) Read(p Params) (err error) {
	if err := g.Target.Read(p); err != nil {
		return err
	}
	if g.Objective, err = p.need("objective", "rind/goal/set requires objective."); err != nil {
		return err
	}
	if protocol.CharLen(g.Objective) > 4000 {
		return Bad("Goal objective exceeds 4000 characters.")
	}
	g.MaxTurns, err = p.between("max_turns", 25, 1, 1000, "rind/goal/set max_turns must be an integer from 1 to 1000.")
	return err
}

// GoalStatusParams are those of rind/goal/status.
type GoalStatusParams struct {
	Target
	Status string `json:"status" enum:"active,paused"`
}

// Read takes a status.
func (g *GoalStatusParams) Read(p Params) (err error) {
	if err := g.Target.Read(p); err != nil {
		return err
	}
	bad := "rind/goal/status requires active or paused."
	g.Status, err = p.word("status", bad, bad, "active", "paused")
	return err
}

// UsageParams are those of rind/usage/summary.
type UsageParams struct {
	Days int `json:"days,omitempty"` // 1..365, default 7
}

// Read takes a number of days.
func (u *UsageParams) Read(p Params) (err error) {
	u.Days, err = p.between("days", 7, 1, 365, "days must be an integer from 1 to 365.")
	return err
}

// FileListParams are those of file/list; "" is the workspace root. Paths are relative to it.
type FileListParams struct {
	Target
	Path string `json:"path,omitempty"`
}

// Read takes a path.
func (f *FileListParams) Read(p Params) error {
	if err := f.Target.Read(p); err != nil {
		return err
	}
	return p.fill(field{"path", &f.Path})
}

// FileParams are those of file/read.
type FileParams struct {
	Target
	Path string `json:"path"`
}

// Read takes a path.
func (f *FileParams) Read(p Params) (err error) {
	if err := f.Target.Read(p); err != nil {
		return err
	}
	if f.Path, err = p.text("path"); err == nil && f.Path == "" {
		err = Bad("path is required.")
	}
	return err
}

// FileWriteParams are those of file/write.
type FileWriteParams struct {
	FileParams
	Content []byte `json:"content_base64"`
}

// Read takes a path and a content.
func (f *FileWriteParams) Read(p Params) error {
	if err := f.FileParams.Read(p); err != nil {
		return err
	}
	content, ok := protocol.Text(p["content_base64"])
	switch {
	case !ok:
		return Bad("content_base64 is required.")
	case json.Unmarshal(p["content_base64"], &f.Content) != nil || strings.ContainsAny(content, "\r\n"):
		return Bad("content_base64 is not valid base64.")
	}
	return nil
}
