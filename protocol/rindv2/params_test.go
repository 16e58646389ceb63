package rindv2_test

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
)

// reader is the params type of a method.
func reader(t testing.TB, method string) rindv2.Reader {
	t.Helper()
	for _, m := range rindv2.Methods() {
		if r, ok := m.Params.(rindv2.Reader); ok && m.Name == method {
			return r
		}
	}
	t.Fatalf("no method %s", method)
	return nil
}

func TestParamsAreRefusedWithTheTextsOfTheContract(t *testing.T) {
	long := strings.Repeat("é", 4001)
	const (
		limit   = "session/list limit must be an integer from 1 to 100."
		cursor  = "session/replay after_cursor must be a non-negative integer."
		page    = "session/replay limit must be an integer from 1 to 1000."
		key     = "idempotency_key must be a string of 1 to 200 characters."
		missing = "session_id is required for this method."
	)
	// contract says that the text stands in docs/protocol/rind-v2.md; the others follow its manner.
	for _, c := range []struct {
		method, params, want string
		contract             bool
	}{
		{"initialize", `{"client_capabilities":["a",1]}`, "client_capabilities must be a list of strings.", true},
		{"initialize", `{"client_capabilities":"a"}`, "client_capabilities must be a list of strings.", true},
		{"session/list", `{"limit":0}`, limit, true},
		{"session/list", `{"limit":101}`, limit, true},
		{"session/list", `{"limit":true}`, limit, true},
		{"session/list", `{"limit":"20"}`, limit, true},
		{"session/list", `{"limit":1.5}`, limit, true},
		{"session/list", `{"limit":1e400}`, limit, true},
		{"session/list", `{"limit":99999999999999999999}`, limit, true},
		{"session/list", `{"limit":[1]}`, limit, true},
		{"session/list", `{"exclude_workspace_roots":["/a",null]}`, "exclude_workspace_roots must be a list of strings.", false},
		{"session/list", `{"page_token":7}`, "page_token must be a string.", false},
		{"session/switch", `{}`, missing, true},
		{"session/switch", `{"session_id":null}`, missing, true},
		{"session/switch", `{"session_id":5}`, missing, true},
		{"session/delete", `{"session_id":" "}`, missing, true},
		{"session/delete", `{"Session_ID":"s1"}`, missing, true},
		{"session/prompt", `{"session_id":5,"text":{}}`, missing, true},
		{"session/prompt", `{"session_id":"../../etc","text":"hi"}`, "Invalid session id.", true},
		{"session/prompt", `{"session_id":" s1","input":"hi"}`, "Invalid session id.", true},
		{"session/create", `{"session_id":"a..b"}`, "Invalid session id.", true},
		{"session/create", `{"name":7}`, "name must be a string.", false},
		{"session/fork", `{"before_message_id":7}`, "before_message_id must be a string.", false},
		{"session/subscribe", `{"after_cursor":-1}`, "session/subscribe after_cursor must be a non-negative integer.", false},
		{"session/replay", `{"after_cursor":-1}`, cursor, true},
		{"session/replay", `{"after_cursor":false}`, cursor, true},
		{"session/replay", `{"after_cursor":"0"}`, cursor, true},
		{"session/replay", `{"after_cursor":0,"limit":0}`, page, true},
		{"session/replay", `{"after_cursor":0,"limit":true}`, page, true},
		{"session/replay", `{"after_cursor":0,"after_task_cursor":1.5}`, "session/replay after_task_cursor must be a non-negative integer.", false},
		{"session/prompt", `{}`, "session/prompt requires input.", true},
		{"session/prompt", `{"input":" \n"}`, "session/prompt requires input.", true},
		{"session/prompt", `{"input":7,"query":"hi"}`, "session/prompt requires input.", true},
		{"session/prompt", `{"resume":"true"}`, "session/prompt requires input.", true},
		{"session/prompt", `{"input":"x","resume":true}`, "resume cannot include input.", true},
		{"session/prompt", `{"input":"x","resume":true,"goal_continuation":true}`, "resume cannot include input or goal continuation.", true},
		{"session/prompt", `{"input":"x","completion_scope":"all"}`, "completion_scope must be turn or request.", true},
		{"session/prompt", `{"input":"x","completion_scope":""}`, "completion_scope must be turn or request.", true},
		{"session/prompt", `{"input":"x","completion_scope":1}`, "completion_scope must be turn or request.", true},
		{"session/prompt", `{"input":"x","idempotency_key":""}`, key, true},
		{"session/prompt", `{"input":"x","idempotency_key":7}`, key, true},
		{"session/prompt", `{"input":"x","idempotency_key":"` + long[:402] + `"}`, key, true},
		{"session/prompt", `{"input":"x","transient_system_messages":{}}`, "transient_system_messages must be a list of {role,content}.", false},
		{"session/prompt", `{"input":"x","transient_system_messages":[1]}`, "transient_system_messages must be a list of {role,content}.", false},
		{"session/prompt", `{"input":"x","transient_system_messages":[{"role":"system","Content":"x"}]}`, "transient_system_messages must be a list of {role,content}.", false},
		{"session/cancel", `{"turn_id":7}`, "turn_id must be a string.", false},
		{"session/cancel", `{"request_id":{}}`, "request_id must be a string or number.", true},
		{"rind/session/unsteer", `{"input_id":7}`, "input_id must be a string.", true},
		{"rind/session/dequeue_follow_up", `{"input_id":""}`, "input_id must not be empty.", true},
		{"rind/session/promote_follow_up", `{}`, "input_id must be a string.", true},
		{"rind/user-question/respond", `{"tool_call_id":"c"}`, "rind/user-question/respond requires tool_call_id and answer.", false},
		{"rind/approval/respond", `{"action_id":"a"}`, "rind/approval/respond requires action_id and option_id.", true},
		{"rind/session/set_mode", `{}`, "rind/session/set_mode requires mode.", false},
		{"rind/session/set_mode", `{"mode":"Ask"}`, "mode must be ask, edit, read or full.", false},
		{"model/set", `{}`, "model/set requires model.", true},
		{"model/set", `{"model":7,"model_id":" "}`, "model/set requires model.", true},
		{"model/set", `{"model":"a b"}`, "Model name must be 1 to 128 characters without spaces.", true},
		{"model/set", `{"model":"` + long[:258] + `"}`, "Model name must be 1 to 128 characters without spaces.", true},
		{"model/effort", `{"reasoning_effort":null}`, "model/effort requires reasoning_effort.", true},
		{"model/effort", `{"reasoning_effort":"x"}`, "Unsupported reasoning effort: x", true},
		{"rind/background/output", `{}`, "rind/background/output requires bg_id.", true},
		{"rind/background/output", `{"bg_id":"b","max_output_chars":true}`, "rind/background/output max_output_chars must be an integer.", true},
		{"rind/task/read", `{"cursor":1}`, "task_id is required.", false},
		{"rind/task/read", `{"task_id":"t","cursor":-1}`, "cursor must be a non-negative integer.", false},
		{"rind/task/read", `{"task_id":"t","max_output_chars":50001}`, "max_output_chars must be an integer from 1 to 50000.", false},
		{"rind/task/wait", `{"task_id":"t","wait_ms":999}`, "wait_ms must be an integer from 1000 to 60000.", false},
		{"rind/task/cancel", `{"task_id":7}`, "task_id is required.", false},
		{"rind/task/release_wait", `{}`, "rind/task/release_wait requires task_id or tool_call_id.", false},
		{"rind/goal/set", `{"objective":"  "}`, "rind/goal/set requires objective.", true},
		{"rind/goal/set", `{"objective":"` + long + `"}`, "Goal objective exceeds 4000 characters.", true},
		{"rind/goal/set", `{"objective":"x","max_turns":0}`, "rind/goal/set max_turns must be an integer from 1 to 1000.", false},
		{"rind/goal/status", `{"status":"done"}`, "rind/goal/status requires active or paused.", true},
		{"rind/goal/status", `{}`, "rind/goal/status requires active or paused.", true},
		{"rind/usage/summary", `{"days":366}`, "days must be an integer from 1 to 365.", true},
		{"rind/auth/login", `{}`, "rind/auth/login requires provider_id.", false},
		{"rind/auth/logout", `{}`, "rind/auth/logout requires provider_id.", false},
		{"rind/folder_defaults/set", `{"model_id":"m"}`, "rind/folder_defaults/set requires provider_id and model_id together, or reasoning_effort.", false},
		{"rind/folder_defaults/set", `{}`, "rind/folder_defaults/set requires provider_id and model_id together, or reasoning_effort.", false},
		{"rind/folder_defaults/unset", `{"group":"all"}`, "group must be model or reasoning_effort.", false},
		{"rind/folder_defaults/resolve", `{}`, "workspace_roots must be a list of strings.", false},
		{"file/list", `{"path":7}`, "path must be a string.", false},
		{"file/read", `{}`, "path is required.", false},
		{"file/write", `{"path":"a"}`, "content_base64 is required.", false},
		{"file/write", `{"path":"a","content_base64":"a-b"}`, "content_base64 is not valid base64.", false},
		{"file/write", `{"path":"a","content_base64":"YW\nJj"}`, "content_base64 is not valid base64.", false},
	} {
		err := reader(t, c.method).Read(rindv2.ReadParams([]byte(c.params)))
		e, ok := errors.AsType[*protocol.Error](err)
		if !ok || e.Kind != protocol.InvalidRequest || e.Message != c.want || e.Details != nil {
			t.Errorf("%s %.60s: %v, want %s", c.method, c.params, err, c.want)
		}
		if c.contract && !strings.Contains(contract(t), c.want) {
			t.Errorf("%q does not stand in the contract", c.want)
		}
	}
}

var contractText string

func contract(t *testing.T) string {
	if contractText == "" {
		b, err := os.ReadFile("../../docs/protocol/rind-v2.md")
		if err != nil {
			t.Fatal(err)
		}
		contractText = string(b)
	}
	return contractText
}

func TestParamsAreTaken(t *testing.T) {
	seq := func(n protocol.Seq) *protocol.Seq { return &n }
	place := func(n int64) *int64 { return &n }
	here := rindv2.Target{SessionID: "s1"}
	for _, c := range []struct {
		method, params string
		want           any
	}{
		{"initialize", `{}`, rindv2.InitializeParams{}},
		{"initialize", `{"client_capabilities":[]}`, rindv2.InitializeParams{ClientCapabilities: []string{}}},
		{"initialize", `{"client_capabilities":["rind/approvals"],"x":1}`, rindv2.InitializeParams{ClientCapabilities: []string{"rind/approvals"}}},
		{"session/list", `{"limit":null,"page_token":null}`, rindv2.ListParams{Limit: 20}},
		{"session/list", `{"limit":1e2}`, rindv2.ListParams{Limit: 100}},
		{"session/list", `{"LIMIT":7,"limit":5.0,"exclude_workspace_roots":[]}`, rindv2.ListParams{Limit: 5, ExcludeWorkspaceRoots: []string{}}},
		{"session/create", `{"session_id":"s1","name":"n","model_id":"m"}`, rindv2.CreateParams{SessionID: "s1", Name: "n", ModelID: "m"}},
		{"session/switch", `{"session_id":"s1"}`, rindv2.Named{SessionID: "s1"}},
		{"session/subscribe", `{"session_id":"s1","after_cursor":0}`, rindv2.SubscribeParams{Target: here, AfterCursor: seq(0)}},
		{"session/replay", `{"start":-3,"end":true}`, rindv2.ReplayParams{Start: place(-3)}},
		{"session/replay", `{"start":"1","end":1.5,"limit":9999}`, rindv2.ReplayParams{}},
		{"session/replay", `{"after_cursor":7,"after_task_cursor":2}`, rindv2.ReplayParams{AfterCursor: seq(7), Limit: 200, AfterTaskCursor: seq(2)}},
		{"session/prompt", `{"query":"hi"}`, rindv2.PromptParams{Input: "hi", CompletionScope: "turn"}},
		{"session/prompt", `{"input":"","goal_continuation":true}`, rindv2.PromptParams{GoalContinuation: true, CompletionScope: "turn"}},
		{"session/prompt", `{"resume":true,"input":"  "}`, rindv2.PromptParams{Resume: true, CompletionScope: "turn"}},
		{
			"session/prompt", `{"session_id":"s1","input":"a\ud800","completion_scope":"request","idempotency_key":"k","transient_system_messages":[{"role":"user","content":7},{"role":"system","content":"c","_context_kind":"rind_init"}]}`,
			rindv2.PromptParams{
				Target: here, Input: "a\ufffd", CompletionScope: "request", IdempotencyKey: "k",
				Transient: []rindv2.SystemMessage{{Role: "system", Content: "c", Kind: "rind_init"}},
			},
		},
		{"session/cancel", `{"request_id":1.0}`, rindv2.CancelParams{RequestID: json.RawMessage("1.0")}},
		{"rind/session/steer", `{"input":7}`, rindv2.InputParams{}},
		{"rind/session/unsteer", `{"input_id":null}`, rindv2.RetrieveParams{}},
		{"rind/user-question/respond", `{"tool_call_id":"c","answer":""}`, rindv2.AnswerParams{ToolCallID: "c"}},
		{"model/set", `{"model_id":" m "}`, rindv2.ModelSetParams{Model: "m"}},
		{"model/effort", `{"reasoning_effort":"xhigh"}`, rindv2.EffortParams{ReasoningEffort: "xhigh"}},
		{"rind/background/output", `{"bg_id":"b","max_output_chars":99999}`, rindv2.BackgroundOutputParams{BgID: "b", MaxOutputChars: 40_000}},
		{"rind/background/output", `{"bg_id":"b","max_output_chars":-5}`, rindv2.BackgroundOutputParams{BgID: "b", MaxOutputChars: 1}},
		{"rind/task/wait", `{"task_id":"t"}`, rindv2.TaskWaitParams{TaskReadParams: rindv2.TaskReadParams{TaskParams: rindv2.TaskParams{TaskID: "t"}, MaxOutputChars: 20_000}, WaitMS: 30_000}},
		{"rind/goal/set", `{"objective":"o"}`, rindv2.GoalSetParams{Objective: "o", MaxTurns: 25}},
		{"rind/usage/summary", `{}`, rindv2.UsageParams{Days: 7}},
		{"rind/auth/login", `{"provider_id":"p"}`, rindv2.LoginParams{ProviderID: "p", Method: "api_key"}},
		{"file/write", `{"path":"a","content_base64":"YWJj"}`, rindv2.FileWriteParams{FileParams: rindv2.FileParams{Path: "a"}, Content: []byte("abc")}},
	} {
		r := reader(t, c.method)
		if err := r.Read(rindv2.ReadParams([]byte(c.params))); err != nil {
			t.Errorf("%s %s: %v", c.method, c.params, err)
			continue
		}
		if diff := cmp.Diff(c.want, reflect.ValueOf(r).Elem().Interface()); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.method, c.params, diff)
		}
	}
}

func TestEveryMethodTakesNoParamsOrSaysWhatIsMissing(t *testing.T) {
	for _, m := range rindv2.Methods() {
		r, ok := m.Params.(rindv2.Reader)
		if !ok {
			if !strings.HasPrefix(m.Name, "rind/conversation/") && !strings.HasPrefix(m.Name, "rind/execution/") && m.Name != "rind/action/respond" {
				t.Errorf("%s has params nobody reads", m.Name)
			}
			continue
		}
		if err := r.Read(rindv2.ReadParams(nil)); err != nil {
			if e, ok := errors.AsType[*protocol.Error](err); !ok || e.Kind != protocol.InvalidRequest || !strings.HasSuffix(e.Message, ".") {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
	}
}

func FuzzParams(f *testing.F) {
	for _, s := range []string{
		`{"session_id":"s1","limit":1e2,"input":"a\ud800"}`, `{"limit":true,"after_cursor":-0.0}`, `{"transient_system_messages":[{"role":"system"}]}`,
		`{"client_capabilities":[null,"a"],"content_base64":"\u0059WJj"}`, `{"objective":"o","max_turns":1.0e1,"task_id":"t","cursor":9e18}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !utf8.Valid(raw) || !json.Valid(raw) || raw[0] != '{' {
			return
		}
		p := rindv2.ReadParams(raw)
		for _, m := range rindv2.Methods() {
			r, ok := m.Params.(rindv2.Reader)
			if !ok {
				continue
			}
			if err := r.Read(p); err != nil {
				if e, ok := errors.AsType[*protocol.Error](err); !ok || e.Kind != protocol.InvalidRequest || e.Message == "" || strings.Contains(e.Message, "rindv2") {
					t.Fatalf("%s %s: %v", m.Name, raw, err)
				}
				continue
			}
			// What was taken can be told, and is what the schema says it is.
			if _, err := protocol.Marshal(r); err != nil {
				t.Fatalf("%s %s: %v", m.Name, raw, err)
			}
		}
	})
}
