package acp

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// arguments are those of our own tools that say where and what.
type arguments struct {
	Path     string `json:"path"`
	FilePath string `json:"file_path"`
	Content  string `json:"content"`
	Old      string `json:"old_str"`
	New      string `json:"new_str"`
	Offset   float64
	Pattern  string `json:"pattern"`
	Command  string `json:"command"`
	Query    string `json:"query"`
	URL      string `json:"url"`
	Name     string `json:"name"`
	Question string `json:"question"`
	Action   string `json:"action"`
}

// kinds says which kind of tool call a tool is (docs/protocol/acp.md section 3); others are "other".
var kinds = map[string]string{
	"read_file": "read", "skill": "read", "write_file": "edit", "edit_file": "edit", "glob": "search", "grep": "search", "bash": "execute",
	"task_control": "execute", "bash_output": "execute", "search_web": "fetch", "fetch_web_page": "fetch", "skill_create": "edit",
}

// Describe is what a tool call is announced as: title, kind, places, and what it would change as far as its arguments say. root is the
// absolute folder relative paths start from.
func Describe(root, id, name string, args json.RawMessage) CallUpdate {
	c := CallUpdate{ID: id, Name: name, Kind: kinds[name], Status: StatusPending}
	if c.Kind == "" {
		c.Kind = "other"
	}
	if len(args) > 0 && len(args) <= maxRaw {
		c.RawInput = args
	}
	var a arguments
	_ = json.Unmarshal(args, &a) // members of another type are of another tool
	if a.Path == "" {
		a.Path = a.FilePath
	}
	c.Title = title(name, &a)
	if a.Path == "" || c.Kind != "read" && c.Kind != "edit" && c.Kind != "search" {
		return c
	}
	at := a.Path
	if !filepath.IsAbs(at) {
		at = filepath.Join(root, at)
	}
	c.Locations = []Location{{Path: at}}
	switch {
	case name == "read_file" && a.Offset >= 1:
		c.Locations[0].Line = int(a.Offset)
	case name == "edit_file" && len(a.Old)+len(a.New) <= maxRaw:
		old := a.Old
		c.Content = []CallContent{{Diff: &Diff{Path: at, Old: &old, New: a.New}}}
	case name == "write_file" && a.Content != "":
		c.Content = textCall(a.Content)
	}
	return c
}

func title(name string, a *arguments) string {
	short := func(s string) string { return protocol.Prefix(strings.Join(strings.Fields(cut(s, 4000)), " "), 200) }
	switch {
	case name == "read_file" && a.Path != "":
		return "Read " + short(a.Path)
	case name == "write_file" && a.Path != "":
		return "Write " + short(a.Path)
	case name == "edit_file" && a.Path != "":
		return "Edit " + short(a.Path)
	case name == "glob" && a.Pattern != "":
		return "Find " + short(a.Pattern)
	case name == "grep" && a.Pattern != "":
		return "Search for " + short(a.Pattern)
	case name == "bash" && a.Command != "":
		return short(a.Command)
	case name == "search_web" && a.Query != "":
		return "Search the web for " + short(a.Query)
	case name == "fetch_web_page" && a.URL != "":
		return "Fetch " + short(a.URL)
	case name == "skill" && a.Name != "":
		return "Load skill " + short(a.Name)
	case name == "ask_user_question" && a.Question != "":
		return short(a.Question)
	case name == "task_control" && a.Action != "":
		return "Task: " + short(a.Action)
	}
	if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
		if server, tool, ok := strings.Cut(rest, "__"); ok {
			return short(server + ": " + tool)
		}
	}
	if name == "" {
		return "Tool call"
	}
	return short(name)
}

// outcome is the JSON text of a tool's result (docs/protocol/rind-v2.md section 9).
type outcome struct {
	OK    bool            `json:"ok"`
	Data  json.RawMessage `json:"data"`
	Error string          `json:"error"`
}

// resultText is what a person is shown of a result: the text in it, or its data as they are.
func resultText(result string) string {
	var o outcome
	if json.Unmarshal([]byte(result), &o) != nil {
		return result
	}
	if !o.OK && o.Error != "" {
		return o.Error
	}
	if s, ok := protocol.Text(o.Data); ok {
		return s
	}
	var d struct {
		Stdout  *string `json:"stdout"`
		Stderr  string  `json:"stderr"`
		Exit    *int    `json:"exit_code"`
		Content *string `json:"content"`
		Answer  *string `json:"answer"`
	}
	if json.Unmarshal(o.Data, &d) == nil {
		switch {
		case d.Stdout != nil:
			s := *d.Stdout
			if d.Stderr != "" {
				if s != "" && !strings.HasSuffix(s, "\n") {
					s += "\n"
				}
				s += d.Stderr
			}
			if d.Exit != nil && *d.Exit != 0 {
				s = strings.TrimRight(s, "\n") + fmt.Sprintf("\n[exit code %d]", *d.Exit)
			}
			return s
		case d.Content != nil:
			return *d.Content
		case d.Answer != nil:
			return *d.Answer
		}
	}
	return string(o.Data)
}

// show puts what a hosted agent shows of a call into its announcement.
func (c *CallUpdate) show(v *protocol.CallView) {
	if v == nil {
		return
	}
	if v.Kind != "" {
		c.Kind = v.Kind
	}
	if len(v.Places) > 0 {
		c.Locations = nil
	}
	for _, p := range v.Places {
		c.Locations = append(c.Locations, Location(p))
	}
	if v.Text != "" || len(v.Diffs) > 0 {
		c.Content = nil
	}
	for _, d := range v.Diffs {
		c.Content = append(c.Content, CallContent{Diff: &Diff{Path: d.Path, Old: d.Old, New: d.New}})
	}
	if v.Text != "" {
		c.Content = append(c.Content, textCall(v.Text)...)
	}
}

// Permission is the request for consent to a call.
func Permission(id protocol.SessionID, root string, a *protocol.ApprovalRequested) PermissionRequest {
	c := Describe(root, a.ToolCallID, a.ToolName, a.Arguments)
	if a.ToolCallID == "" {
		c.ID = a.ActionID
	}
	c.Name = ""
	if a.Title != "" {
		c.Title = a.Title
	}
	c.show(a.More.View)
	r := PermissionRequest{Session: id, Call: c, Options: []PermissionOption{}}
	for _, o := range a.Options {
		r.Options = append(r.Options, PermissionOption{o.ID, o.Label, o.Kind})
	}
	return r
}

// Choice asks a question of choices as a permission, for clients without forms: the id of an option is its label, the last one declines.
func Choice(id protocol.SessionID, callID, question string, choices []protocol.Choice) PermissionRequest {
	r := PermissionRequest{Session: id, Call: CallUpdate{ID: callID, Title: question, Kind: "other", Status: StatusPending}}
	for _, c := range choices {
		r.Options = append(r.Options, PermissionOption{c.Label, c.Label, "allow_once"})
	}
	r.Options = append(r.Options, PermissionOption{Declined, "No answer", "reject_once"})
	return r
}

// Declined is the option of Choice that gives no answer.
const Declined = "-"
