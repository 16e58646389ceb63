package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/openai"
	"github.com/rind-dev/rind/session/provider/providertest"
)

func body(t testing.TB, r providertest.Request) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(r.Body, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func parse(t testing.TB, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

var (
	chatGood      = providertest.SSE(delta(`{"content":"x"}`), finish(`"stop"`), "[DONE]")
	responsesGood = providertest.Stream(providertest.Send(providertest.OpenAIResponses{}.Text("x") + providertest.OpenAIResponses{}.End(session.FinishStop, session.Usage{})))
)

func TestAChatRequestSaysWhatTheContextHolds(t *testing.T) {
	server := providertest.NewServer(t, chatGood)
	m := model(t, openai.Chat, providertest.Endpoint{URL: server.URL(), Key: " sk-1234\n", Headers: map[string]string{"X-Title": "editor"}})
	r := providertest.History()
	r.Effort = "low"
	if a := providertest.Collect(t.Context(), t, m, r); a.Err != nil {
		t.Fatal(a.Err)
	}
	req := server.Requests()[0]
	if req.Path != "/v1/chat/completions" || req.Header.Get("Authorization") != "Bearer sk-1234" || req.Header.Get("X-Title") != "editor" || req.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s %v", req.Method, req.Path, req.Header)
	}
	want := parse(t, `{
		"model": "model-1", "stream": true, "stream_options": {"include_usage": true}, "reasoning_effort": "low", "max_tokens": 1000,
		"tools": [
			{"type": "function", "function": {"name": "read_file", "description": "Reads a file.", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}},
			{"type": "function", "function": {"name": "list_tasks", "description": "Lists tasks.", "parameters": {"type": "object", "properties": {}}}}
		],
		"messages": [
			{"role": "system", "content": "You are careful."},
			{"role": "user", "content": [
				{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
				{"type": "text", "text": "[file:///a.go]\npackage a"}, {"type": "text", "text": "[resource_link file:///b.go]"}
			]},
			{"role": "assistant", "content": "I look.", "tool_calls": [
				{"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"a 那 🌍 <b>\"}"}},
				{"id": "call_2", "type": "function", "function": {"name": "list_tasks", "arguments": "{}"}}
			]},
			{"role": "tool", "tool_call_id": "call_1", "content": "{\"ok\":true}"},
			{"role": "tool", "tool_call_id": "call_2", "content": ""},
			{"role": "user", "content": [{"type": "text", "text": "Image of the result of read_file (call_1):"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]},
			{"role": "assistant", "content": null, "tool_calls": [{"id": "call_3", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"b\"}"}}]},
			{"role": "tool", "tool_call_id": "call_3", "content": "{\"ok\":false}"},
			{"role": "user", "content": [{"type": "text", "text": "Image of the result of read_file (call_3):"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]},
			{"role": "assistant", "content": "Half of"},
			{"role": "user", "content": "go on\u2028now"},
			{"role": "user", "content": "please"}
		]
	}`)
	if diff := cmp.Diff(want, any(body(t, req))); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutAKeyNoKeyHeaderIsSent(t *testing.T) {
	server := providertest.NewServer(t, chatGood)
	if a := providertest.Collect(t.Context(), t, model(t, openai.Chat, providertest.Endpoint{URL: server.URL()}), providertest.Hello()); a.Err != nil {
		t.Fatal(a.Err)
	}
	if h := server.Requests()[0].Header; h.Values("Authorization") != nil {
		t.Errorf("headers %v", h)
	}
}

func TestAFieldAnEndpointRefusesIsLeftOutFromThenOn(t *testing.T) {
	refuse := func(status int, message string) providertest.Reply {
		j, _ := json.Marshal(message) // strings always marshal
		return providertest.JSON(status, `{"error":{"message":`+string(j)+`}}`)
	}
	for name, test := range map[string]struct {
		api     string
		reply   providertest.Reply
		refusal string
		status  int
		with    func(map[string]any) bool
	}{
		"usage in streams": {openai.Chat, chatGood, "Unknown field: stream_options", 400, func(b map[string]any) bool { return b["stream_options"] != nil }},
		"usage, by 422":    {openai.Chat, chatGood, "body.stream_options: extra inputs are not permitted", 422, func(b map[string]any) bool { return b["stream_options"] != nil }},
		"max_tokens": {
			openai.Chat, chatGood, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", 400,
			func(b map[string]any) bool { return b["max_tokens"] != nil && b["max_completion_tokens"] == nil },
		},
		"encrypted reasoning": {openai.Responses, responsesGood, "Encrypted content is not supported with this model.", 400, func(b map[string]any) bool { return b["include"] != nil }},
		"reasoning that cannot be read any more": {
			openai.Responses, responsesGood, "The encrypted content for item rs_1 could not be verified.", 400,
			func(b map[string]any) bool { return strings.Contains(string(must(json.Marshal(b["input"]))), "rs_1") },
		},
		"summaries": {
			openai.Responses, responsesGood, "Your organization must be verified to generate reasoning summaries.", 400,
			func(b map[string]any) bool { return b["reasoning"].(map[string]any)["summary"] != nil },
		},
	} {
		server := providertest.NewServer(t, refuse(test.status, test.refusal), test.reply, test.reply)
		m := model(t, test.api, providertest.Endpoint{URL: server.URL()})
		r := providertest.Hello()
		r.Effort, r.MaxOutput = "low", 10
		r.Messages = append(r.Messages, session.Message{
			Role: session.RoleAssistant, Text: "x", Reasoning: []session.Reasoning{{Provider: "test", Model: r.Model, Opaque: json.RawMessage(`[{"type":"reasoning","id":"rs_1","encrypted_content":"e"}]`)}},
		}, session.Message{Role: session.RoleUser, Text: "go on"})
		for range 2 {
			if a := providertest.Collect(t.Context(), t, m, r); a.Err != nil {
				t.Errorf("%s: %v", name, a.Err)
			}
		}
		var with []bool
		for _, req := range server.Requests() {
			with = append(with, test.with(body(t, req)))
		}
		if !cmp.Equal(with, []bool{true, false, false}) {
			t.Errorf("%s: sent with the field: %v", name, with)
		}
		again := providertest.NewServer(t)
		again.Always(refuse(test.status, test.refusal))
		if a := providertest.Collect(t.Context(), t, model(t, test.api, providertest.Endpoint{URL: again.URL()}), r); a.Fault() != session.FaultRejected || len(again.Requests()) != 2 {
			t.Errorf("%s: refused for ever: %v after %d requests", name, a.Err, len(again.Requests()))
		}
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func TestAResponsesRequestSaysWhatTheContextHoldsAndStoresNothing(t *testing.T) {
	server := providertest.NewServer(t, responsesGood)
	m := model(t, openai.Responses, providertest.Endpoint{URL: server.URL(), Key: "sk-1234"})
	r := providertest.History()
	r.Effort = "high"
	r.Messages[2].Reasoning = append(r.Messages[2].Reasoning,
		session.Reasoning{Provider: "test", Model: "model-1", Opaque: json.RawMessage(`[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"abc"},{"type":"reasoning","id":"rs_2","encrypted_content":"def"}]`)},
		session.Reasoning{Provider: "test", Model: "model-0", Opaque: json.RawMessage(`[{"type":"reasoning","id":"rs_0"}]`)},
		session.Reasoning{Provider: "test", Model: "model-1", Text: "seen, not kept"})
	r.Messages[7].Reasoning = []session.Reasoning{{Provider: "test", Model: "model-1", Opaque: json.RawMessage(`[{"type":"reasoning","id":"rs_cut"}]`)}}
	if a := providertest.Collect(t.Context(), t, m, r); a.Err != nil {
		t.Fatal(a.Err)
	}
	req := server.Requests()[0]
	if req.Path != "/v1/responses" {
		t.Errorf("path %s", req.Path)
	}
	want := parse(t, `{
		"model": "model-1", "stream": true, "store": false, "include": ["reasoning.encrypted_content"], "reasoning": {"effort": "high", "summary": "auto"}, "max_output_tokens": 1000,
		"tools": [
			{"type": "function", "name": "read_file", "description": "Reads a file.", "strict": false, "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
			{"type": "function", "name": "list_tasks", "description": "Lists tasks.", "strict": false, "parameters": {"type": "object", "properties": {}}}
		],
		"input": [
			{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are careful."}]},
			{"type": "message", "role": "user", "content": [
				{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
				{"type": "input_text", "text": "[file:///a.go]\npackage a"}, {"type": "input_text", "text": "[resource_link file:///b.go]"}
			]},
			{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"},
			{"type": "reasoning", "id": "rs_2", "encrypted_content": "def"},
			{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
			{"type": "function_call", "call_id": "call_1", "name": "read_file", "arguments": "{\"path\":\"a 那 🌍 <b>\"}"},
			{"type": "function_call", "call_id": "call_2", "name": "list_tasks", "arguments": "{}"},
			{"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "{\"ok\":true}"}, {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}]},
			{"type": "function_call_output", "call_id": "call_2", "output": ""},
			{"type": "function_call", "call_id": "call_3", "name": "read_file", "arguments": "{\"path\":\"b\"}"},
			{"type": "function_call_output", "call_id": "call_3", "output": [{"type": "input_text", "text": "{\"ok\":false}"}, {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}]},
			{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Half of"}]},
			{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on\u2028now"}]},
			{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "please"}]}
		]
	}`)
	if diff := cmp.Diff(want, any(body(t, req))); diff != "" {
		t.Error(diff)
	}
}
