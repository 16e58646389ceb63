package rindv2

import (
	"encoding/json"

	"github.com/rind-dev/rind/protocol"
)

// Task is a task record (section 4.8).
type Task = protocol.Task

// TaskMeta tells how much of a task's output there is.
type TaskMeta = protocol.TaskMeta

// TaskList is the result of rind/task/list.
type TaskList struct {
	Tasks         []Task  `json:"tasks"`
	NextPageToken *string `json:"next_page_token"`
}

// TaskPart is the result of rind/task/read and wait: the record with a part of its output.
type TaskPart struct {
	Task
	StartCursor  int64  `json:"start_cursor"`
	NextCursor   int64  `json:"next_cursor"`
	ReturnReason string `json:"return_reason" enum:"finished,yield_timeout,released,interrupted"`
}

// Released is the result of rind/task/release_wait.
type Released struct {
	OK       bool `json:"ok"`
	Released bool `json:"released"`
}

// BackgroundItem is one process of rind/background/list.
type BackgroundItem struct {
	BgID     string `json:"bg_id"`
	Status   string `json:"status"`
	ExitCode int    `json:"exit_code"`
	Cwd      string `json:"cwd"`
}

// BackgroundList is the result of rind/background/list.
type BackgroundList struct {
	Tasks []BackgroundItem `json:"tasks"`
}

// BackgroundOutput is the result of rind/background/output.
type BackgroundOutput struct {
	Task struct {
		BackgroundItem
		Stdout    string `json:"stdout"`
		Stderr    string `json:"stderr"`
		Truncated bool   `json:"truncated"`
	} `json:"task"`
}

// GoalResult is the result of the goal methods (section 4.9).
type GoalResult struct {
	Goal *protocol.Goal `json:"goal"`
}

// Breakdown is what a model request was made of.
type Breakdown struct {
	CapturedAt          string             `json:"captured_at"`
	TurnID              protocol.TurnID    `json:"turn_id"`
	EstimatedTotal      int                `json:"estimated_total"`
	ContextWindowTokens int                `json:"context_window_tokens"`
	Sections            []protocol.Section `json:"sections"`
}

// ContextInspect is the result of rind/context/inspect (section 4.10).
type ContextInspect struct {
	SessionID   protocol.SessionID `json:"session_id"`
	Breakdown   *Breakdown         `json:"breakdown"`
	LatestUsage *protocol.Stats    `json:"latest_usage"`
}

// UsageTotals sums samplings.
type UsageTotals struct {
	Input       int64 `json:"input"`
	Cached      int64 `json:"cached"`
	Output      int64 `json:"output"`
	Reasoning   int64 `json:"reasoning"`
	Total       int64 `json:"total"`
	Samples     int64 `json:"samples"`
	Compactions int64 `json:"compactions"`
}

// DayUsage is the usage of one day.
type DayUsage struct {
	Day    string `json:"day"`
	Tokens int64  `json:"tokens"`
}

// ModelUsage is the usage of one model.
type ModelUsage struct {
	Model   string `json:"model"`
	Tokens  int64  `json:"tokens"`
	Samples int64  `json:"samples"`
}

// SessionUsage is the usage of one session.
type SessionUsage struct {
	SessionID protocol.SessionID `json:"session_id"`
	UpdatedAt string             `json:"updated_at"`
	Tokens    int64              `json:"tokens"`
	Samples   int64              `json:"samples"`
}

// Usage is the result of rind/usage/summary.
type Usage struct {
	Days           int            `json:"days"`
	Totals         UsageTotals    `json:"totals"`
	ByDay          []DayUsage     `json:"by_day"`
	ByModel        []ModelUsage   `json:"by_model"`        // at most 5
	RecentSessions []SessionUsage `json:"recent_sessions"` // at most 5
}

// Effort is the result of model/effort (section 4.6).
type Effort struct {
	ReasoningEffort string `json:"reasoning_effort"`
	Session         bool   `json:"session"`
	Applies         string `json:"applies" enum:"now,next_turn"`
}

// Provider is a provider one can log in to.
type Provider struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Methods    []string `json:"methods"`
	Configured bool     `json:"configured"`
	Source     string   `json:"source"`
}

// Providers is the result of rind/auth/list.
type Providers struct {
	Providers []Provider `json:"providers"`
}

// LoggedIn is the result of rind/auth/login.
type LoggedIn struct {
	OK          bool            `json:"ok"`
	ProviderID  string          `json:"provider_id"`
	ModelsCount int             `json:"models_count"`
	Selection   json.RawMessage `json:"selection" wire:"Any"`
}

// LoggedOut is the result of rind/auth/logout.
type LoggedOut struct {
	OK         bool   `json:"ok"`
	ProviderID string `json:"provider_id"`
	Deleted    bool   `json:"deleted"`
	Source     string `json:"source"`
}

// FolderResolved is what holds in a folder.
type FolderResolved struct {
	Provider        string `json:"provider"`
	Model           string `json:"model"`
	ReasoningEffort string `json:"reasoning_effort"`
	ModelSource     string `json:"model_source"`
	EffortSource    string `json:"effort_source"`
}

// Folder is the result of rind/folder_defaults/get, set and unset.
type Folder struct {
	WorkspaceRoot string          `json:"workspace_root"`
	Folder        json.RawMessage `json:"folder" wire:"Any"`
	Resolved      FolderResolved  `json:"resolved"`
	Inherited     json.RawMessage `json:"inherited" wire:"Any"`
}

// Folders is the result of rind/folder_defaults/resolve.
type Folders struct {
	Folders []Folder `json:"folders"`
}

// FolderApplied is the result of rind/folder_defaults/apply.
type FolderApplied struct {
	ProviderID      string `json:"provider_id"`
	ModelID         string `json:"model_id"`
	ReasoningEffort string `json:"reasoning_effort"`
	Changed         bool   `json:"changed"`
	Applies         string `json:"applies" enum:"now,next_turn"`
}

// FileEntry is one entry of a folder.
type FileEntry struct {
	Name string `json:"name"`
	Type string `json:"type" enum:"file,dir"`
	Size int64  `json:"size"`
}

// FileList is the result of file/list.
type FileList struct {
	Entries []FileEntry `json:"entries"`
}

// FileContent is the result of file/read.
type FileContent struct {
	Content []byte `json:"content_base64"`
	MIME    string `json:"mime"`
	Size    int    `json:"size"`
}

// FileWritten is the result of file/write.
type FileWritten struct {
	Path string `json:"path"`
	Size int    `json:"size"`
}
