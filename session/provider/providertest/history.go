package providertest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// History is a request with everything a context may hold: several system and user messages, images, resources, reasoning of this and
// of other models, calls in parallel, failed and empty results, an interrupted message.
func History() session.ModelRequest {
	png := []byte("\x89PNG\r\n\x1a\n")
	return session.ModelRequest{
		Model: "model-1", MaxOutput: 1000, Session: "s1",
		Tools: []session.ToolSpec{
			{Name: "read_file", Description: "Reads a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`), ReadOnly: true},
			{Name: "list_tasks", Description: "Lists tasks."},
		},
		Messages: []session.Message{
			{Role: session.RoleSystem, Text: "You are careful."},
			{Role: session.RoleUser, Text: "look", Parts: []protocol.Part{
				{Kind: "image", MIME: "image/png", Data: png},
				{Kind: "resource", URI: "file:///a.go", Text: "package a"},
				{Kind: "resource_link", URI: "file:///b.go", Name: "b.go"},
			}},
			{Role: session.RoleAssistant, Text: "I look.", Reasoning: []session.Reasoning{{Text: "hm", Provider: "another", Model: "else", Opaque: json.RawMessage(`[{"x":1}]`)}}, Calls: []session.Call{
				{ID: "call_1", Name: "read_file", Arguments: json.RawMessage(`{"path":"a 那 🌍 <b>"}`)},
				{ID: "call_2", Name: "list_tasks", Arguments: json.RawMessage(`{}`)},
			}},
			{Role: session.RoleTool, CallID: "call_1", ToolName: "read_file", Text: `{"ok":true}`, Parts: []protocol.Part{{Kind: "image", MIME: "image/png", Data: png}}},
			{Role: session.RoleTool, CallID: "call_2", ToolName: "list_tasks", Text: "", Failed: true},
			{Role: session.RoleAssistant, Calls: []session.Call{{ID: "call_3", Name: "read_file", Arguments: json.RawMessage(`{"path":"b"}`)}}},
			{Role: session.RoleTool, CallID: "call_3", ToolName: "read_file", Text: `{"ok":false}`, Parts: []protocol.Part{{Kind: "image", MIME: "image/png", Data: png}}},
			{Role: session.RoleAssistant, Text: "Half of", Interrupted: true},
			{Role: session.RoleUser, Text: "go on\u2028now"},
			{Role: session.RoleUser, Text: "please"},
		},
	}
}

func strictRequests(t *testing.T, s Suite) {
	server, m := s.serve(t)
	server.BeStrict()
	server.Always(Stream(Send(s.good("ok"))))
	r := History()
	if err := session.CheckMessages(r.Messages); err != nil {
		t.Fatalf("the request is no valid context: %v", err)
	}
	ask(t, m, r).good(t)
	for _, req := range server.Requests() {
		body := string(req.Body)
		for _, piece := range []string{"You are careful.", "package a", "b.go", "go on", "please", "Half of", "iVBORw0KGgo=", "那 🌍"} {
			if !strings.Contains(body, piece) {
				t.Errorf("the request lost %q: %s", piece, body)
			}
		}
		if strings.Count(body, "iVBORw0KGgo=") != 3 {
			t.Errorf("the request holds %d of 3 images", strings.Count(body, "iVBORw0KGgo="))
		}
		if strings.Contains(body, `"x":1`) {
			t.Error("reasoning of another provider is in the request")
		}
	}
}
