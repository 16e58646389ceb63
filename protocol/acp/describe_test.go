package acp

import (
	"encoding/json"
	"testing"
)

// TestACallIsAnnouncedByWhatItDoesAndWhere: docs/protocol/acp.md section 3, and the tools of docs/protocol/rind-v2.md section 9.
func TestACallIsAnnouncedByWhatItDoesAndWhere(t *testing.T) {
	for _, c := range []struct{ name, args, kind, title, path string }{
		{"read_file", `{"path":"a.go","offset":7}`, "read", "Read a.go", "/w/a.go"},
		{"write_file", `{"file_path":"/x/b.go","content":"b"}`, "edit", "Write /x/b.go", "/x/b.go"},
		{"edit_file", `{"path":"a.go","old_str":"a","new_str":"b"}`, "edit", "Edit a.go", "/w/a.go"},
		{"glob", `{"pattern":"*.go"}`, "search", "Find *.go", ""},
		{"grep", `{"pattern":"x","path":"sub"}`, "search", "Search for x", "/w/sub"},
		{"bash", `{"command":"go\n  test"}`, "execute", "go test", ""},
		{"bash_output", `{"bg_id":"task_1"}`, "execute", "bash_output", ""},
		{"task_control", `{"action":"wait","task_id":"task_1"}`, "execute", "Task: wait", ""},
		{"skill", `{"name":"review"}`, "read", "Load skill review", ""},
		{"skill_create", `{"name":"review"}`, "edit", "skill_create", ""},
		{"search_web", `{"query":"go"}`, "fetch", "Search the web for go", ""},
		{"fetch_web_page", `{"url":"https://example.com"}`, "fetch", "Fetch https://example.com", ""},
		{"ask_user_question", `{"question":"Which?"}`, "other", "Which?", ""},
		{"mcp__files__list", `{"path":"a"}`, "other", "files: list", ""},
		{"unknown", `[1]`, "other", "unknown", ""},
		{"", ``, "other", "Tool call", ""},
	} {
		got := Describe("/w", "c1", c.name, json.RawMessage(c.args))
		path := ""
		if len(got.Locations) > 0 {
			path = got.Locations[0].Path
		}
		if got.Kind != c.kind || got.Title != c.title || path != c.path {
			t.Errorf("%s %s: kind %q, title %q, place %q", c.name, c.args, got.Kind, got.Title, path)
		}
	}
}
