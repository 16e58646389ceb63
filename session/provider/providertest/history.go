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

// oddCalls is a context in which a model called what is no tool, under names and ids that some provider gave and others refuse.
func oddCalls() session.ModelRequest {
	r := session.ModelRequest{Model: "model-1", Session: "s1", Messages: []session.Message{{Role: session.RoleUser, Text: "look"}}}
	m := session.Message{Role: session.RoleAssistant}
	var results []session.Message
	for id, name := range map[string]string{
		"functions.x:0": "multi_tool_use.parallel", strings.Repeat("long", 25): "что это", "c3": strings.Repeat("n", 80), "c4": "read_file\n", "c5": "mcp__a__b",
	} {
		m.Calls = append(m.Calls, session.Call{ID: id, Name: name, Arguments: json.RawMessage(`{}`)})
		results = append(results, session.Message{Role: session.RoleTool, CallID: id, ToolName: name, Text: "There is no such tool.", Failed: true})
	}
	r.Messages = append(append(r.Messages, m), results...)
	return r
}

func strictOddCalls(t *testing.T, s Suite) {
	server, m := s.serve(t)
	server.BeStrict()
	server.Always(Stream(Send(s.good("ok"))))
	r := oddCalls()
	if err := session.CheckMessages(r.Messages); err != nil {
		t.Fatalf("the request is no valid context: %v", err)
	}
	ask(t, m, r).good(t)
	if body := string(server.Requests()[0].Body); strings.Count(body, "mcp__a__b") != 1 {
		t.Errorf("a name that is one was changed: %s", body)
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
