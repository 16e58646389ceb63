package anthropic_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/providertest"
)

var update = flag.Bool("update", false, "write golden files anew")

var wire = providertest.Anthropic{}

// good is a whole answer.
func good(text string) providertest.Reply {
	return providertest.Stream(providertest.Send(wire.Begin() + wire.Text(text) + wire.End(session.FinishStop, session.Usage{Input: 1, Output: 1})))
}

// sent asks once and returns the request that came.
func sent(t testing.TB, r session.ModelRequest) providertest.Request {
	t.Helper()
	server := providertest.NewServer(t, good("x"))
	if a := providertest.Collect(t.Context(), t, model(t, providertest.Endpoint{URL: server.URL(), Key: "sk-ant-1234"}), r); a.Err != nil {
		t.Fatal(a.Err)
	}
	return server.Requests()[0]
}

// thought is reasoning of the model under test, as the log keeps it.
func thought(model string, blocks ...string) []session.Reasoning {
	return []session.Reasoning{{Text: "hm", Provider: "test", Model: model, Opaque: json.RawMessage("[" + strings.Join(blocks, ",") + "]")}}
}

const (
	signed   = `{"type":"thinking","thinking":"First <b> \u2028 look.","signature":"EqQB/+=="}`
	redacted = `{"type":"redacted_thinking","data":"EmwK+/=="}`
)

func call(id string) session.Call {
	return session.Call{ID: id, Name: "read_file", Arguments: json.RawMessage(`{"path":"a"}`)}
}

func answerOf(id string) session.Message {
	return session.Message{Role: session.RoleTool, CallID: id, ToolName: "read_file", Text: `{"ok":true}`}
}

func user(text string) session.Message { return session.Message{Role: session.RoleUser, Text: text} }

// requests are the golden ones: testdata/requests/NAME.json.
func requests() map[string]session.ModelRequest {
	history := providertest.History()

	step := providertest.History()
	step.Model, step.Effort, step.MaxOutput = "claude-sonnet-4-5", "medium", 0
	step.Messages = []session.Message{
		{Role: session.RoleSystem, Text: "You are careful."},
		{Role: session.RoleSystem, Text: "This turn only."},
		user("look"),
		{Role: session.RoleAssistant, Text: "I look.", Reasoning: thought(step.Model, signed, redacted), Calls: []session.Call{call("toolu_1"), call("toolu_2")}},
		answerOf("toolu_1"), answerOf("toolu_2"), user("and the other one"),
		{Role: session.RoleAssistant, Reasoning: thought(step.Model, signed), Calls: []session.Call{call("toolu_3")}},
		answerOf("toolu_3"),
	}

	free := step
	free.Model, free.Effort = "claude-opus-4-6", "high"
	free.Messages = []session.Message{
		user("look"),
		{
			Role: session.RoleAssistant, Text: "First. Then.", Calls: []session.Call{call("toolu_1"), call("toolu_2")},
			Reasoning: thought(free.Model, signed, `{"text":7,"block":`+signed+`}`, `{"text":12,"calls":1,"block":`+redacted+`}`),
		},
		answerOf("toolu_1"), answerOf("toolu_2"),
		{Role: session.RoleAssistant, Text: "Done.", Reasoning: thought(free.Model, signed)},
		user("again"),
	}

	odd := session.ModelRequest{Model: "claude-haiku-4-5", Tools: history.Tools, Messages: []session.Message{
		{Role: session.RoleSystem, Text: "You are careful."},
		{Role: session.RoleSystem, Text: " \n"},
		{Role: session.RoleAssistant, Text: "What was before."},
		user("look"),
		{Role: session.RoleSystem, Text: "A skill that was named."},
		{Role: session.RoleUser, Text: " ", Parts: []protocol.Part{
			{Kind: "image", MIME: "image/svg+xml", Name: "a.svg", Data: []byte("<svg/>")},
			{Kind: "image", MIME: "image/png", URI: "https://host/a.png"},
			{Kind: "text", Text: "left out"},
		}},
		{Role: session.RoleAssistant, Text: "\n", Calls: []session.Call{
			call("functions.read:0"), {ID: "call_2", Name: "files.read 那", Arguments: json.RawMessage(`{}`)}, call("call_3"),
		}},
		{Role: session.RoleTool, CallID: "functions.read:0", ToolName: "read_file", Failed: true},
		{Role: session.RoleTool, CallID: "call_2", ToolName: "files.read 那"},
		{Role: session.RoleTool, CallID: "call_3", ToolName: "read_file", Text: "no", Failed: true, Parts: []protocol.Part{{Kind: "image", MIME: "image/webp", Data: []byte("RIFF")}}},
		{Role: session.RoleAssistant, Text: "Half", Interrupted: true},
		{Role: session.RoleAssistant, Text: "a word ", Interrupted: true},
	}}
	return map[string]session.ModelRequest{"history": history, "step-with-thinking": step, "thinking-in-its-place": free, "odd-history": odd}
}

func TestRequestsSayWhatTheContextHolds(t *testing.T) {
	for name, r := range requests() {
		t.Run(name, func(t *testing.T) {
			if err := session.CheckMessages(r.Messages); err != nil {
				t.Fatalf("the request is no valid context: %v", err)
			}
			req := sent(t, r)
			if req.Method != "POST" || req.Path != "/v1/messages" || req.Header.Get("X-Api-Key") != "sk-ant-1234" ||
				req.Header.Get("Anthropic-Version") != "2023-06-01" || req.Header.Get("Authorization") != "" || req.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s %v", req.Method, req.Path, req.Header)
			}
			if err := strict(req.Body); err != nil {
				t.Error(err)
			}
			var got bytes.Buffer
			if err := json.Indent(&got, req.Body, "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			file := filepath.Join("testdata", "requests", name+".json")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var wireName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// strict holds a body against what the API refuses, beyond providertest.Strict. It shares no code with what builds bodies.
func strict(body []byte) error {
	if err := providertest.Strict(body); err != nil {
		return err
	}
	var r struct {
		MaxTokens int `json:"max_tokens"`
		Thinking  struct {
			Budget int `json:"budget_tokens"`
		} `json:"thinking"`
		System   []map[string]any `json:"system"`
		Messages []struct {
			Role    string           `json:"role"`
			Content []map[string]any `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	if r.MaxTokens < 1 || r.Thinking.Budget != 0 && (r.Thinking.Budget < 1024 || r.Thinking.Budget >= r.MaxTokens) {
		return fmt.Errorf("max_tokens %d, budget %d", r.MaxTokens, r.Thinking.Budget)
	}
	if n := bytes.Count(body, []byte(`"cache_control"`)); n > 4 {
		return fmt.Errorf("%d cache marks", n)
	}
	if last := r.Messages[len(r.Messages)-1].Role; r.Messages[0].Role != "user" || last != "user" {
		return fmt.Errorf("begins with %s, ends with %s", r.Messages[0].Role, last)
	}
	blocks := r.System
	for i, m := range r.Messages {
		if i > 0 && m.Role == r.Messages[i-1].Role {
			return fmt.Errorf("message %d goes on as %s", i, m.Role)
		}
		if len(m.Content) == 0 {
			return fmt.Errorf("message %d is empty", i)
		}
		blocks = append(blocks, m.Content...)
	}
	for _, b := range blocks {
		nested, _ := b["content"].([]any)
		for _, n := range nested {
			blocks = append(blocks, n.(map[string]any))
		}
		text, _ := b["text"].(string)
		id, _ := b["id"].(string)
		name, _ := b["name"].(string)
		switch b["type"] {
		case "text":
			if strings.TrimSpace(text) == "" {
				return fmt.Errorf("a blank text block")
			}
		case "tool_use":
			if !wireName.MatchString(id) || !wireName.MatchString(name) {
				return fmt.Errorf("call %q of %q", id, name)
			}
		case "tool_result":
			if b["is_error"] == true && (b["content"] == nil || b["content"] == "") {
				return fmt.Errorf("an error that says nothing")
			}
		}
	}
	return nil
}

func TestWhatWasSaidBeforeStaysAsItWasSaid(t *testing.T) {
	// A provider's cache holds what begins alike: each request has to repeat the one before it to the letter, marks aside.
	r := requests()["step-with-thinking"]
	plain := func(body []byte) string {
		var v map[string]any
		if err := json.Unmarshal(bytes.ReplaceAll(body, []byte(`,"cache_control":{"type":"ephemeral"}`), nil), &v); err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(v["messages"])
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(string(out), "]")
	}
	for _, model := range []string{"claude-sonnet-4-5", "claude-opus-4-6"} {
		r.Model = model
		all := r.Messages
		for i := range all {
			all[i].Reasoning = nil
			if len(all[i].Calls) > 0 {
				all[i].Reasoning = thought(model, signed)
			}
		}
		before := ""
		for n := 3; n <= len(all); n++ {
			if r.Messages = all[:n]; session.CheckMessages(r.Messages) != nil || all[n-1].Role == session.RoleAssistant {
				continue
			}
			now := plain(sent(t, r).Body)
			if head := strings.TrimSuffix(before, `],"role":"user"}`); !strings.HasPrefix(now, head) {
				t.Errorf("%s, %d messages: %s\ndoes not begin with\n%s", model, n, now, head)
			}
			before = now
		}
	}
}

func TestThinkingGoesBackToItsOwnModelOnly(t *testing.T) {
	base := requests()["step-with-thinking"]
	for name, test := range map[string]struct {
		change func(*session.ModelRequest)
		back   int  // blocks given back
		thinks bool // the model is told to think
	}{
		"same provider and model":   {func(*session.ModelRequest) {}, 3, true},
		"another model":             {func(r *session.ModelRequest) { r.Model = "claude-sonnet-4-0" }, 0, false},
		"another provider":          {func(r *session.ModelRequest) { r.Messages[3].Reasoning[0].Provider = "other" }, 1, false},
		"no effort, so no thinking": {func(r *session.ModelRequest) { r.Effort = "" }, 0, false},
		"a message that was cut":    {func(r *session.ModelRequest) { r.Messages[3].Interrupted = true }, 1, false},
		"nothing that can be read":  {func(r *session.ModelRequest) { r.Messages[3].Reasoning[0].Opaque = json.RawMessage(`"x"`) }, 1, false},
		"the user spoke last":       {func(r *session.ModelRequest) { r.Messages = append(r.Messages[:3:3], user("go on")) }, 0, true},
		"a model that thinks freely, without an effort": {func(r *session.ModelRequest) {
			r.Model, r.Effort = "claude-opus-9", ""
			for i := range r.Messages {
				for j := range r.Messages[i].Reasoning {
					r.Messages[i].Reasoning[j].Model = r.Model
				}
			}
		}, 3, false},
	} {
		r := base
		r.Messages = nil
		for _, m := range base.Messages {
			m.Reasoning = append([]session.Reasoning(nil), m.Reasoning...)
			r.Messages = append(r.Messages, m)
		}
		test.change(&r)
		body := string(sent(t, r).Body)
		back := strings.Count(body, `"signature":"EqQB/+=="`) + strings.Count(body, `"data":"EmwK+/=="`)
		if thinks := strings.Contains(body, `"budget_tokens"`); back != test.back || thinks != test.thinks {
			t.Errorf("%s: %d blocks given back, told to think: %v; want %d, %v", name, back, thinks, test.back, test.thinks)
		}
	}
}
