package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol/portable"
)

// refusal is the answer to a request that was refused, on either surface.
type refusal struct{ Code, Message string }

// lineOf is a line of a server, as far as answers are looked at.
type lineOf struct {
	ID    string `json:"request_id"`
	Error *refusal
}

// onLines opens a connection of an editor to the sessions of p, and returns what asks there.
func onLines(t *testing.T, p *place) func(method, params string) *refusal {
	t.Helper()
	d := dispatcher.New(dispatcher.Config{Sessions: p.all, Workspace: "/w", Version: "1", Executions: p.api.cfg.Commands})
	serve := func(in io.Reader, out io.Writer) error {
		return d.Serve(context.Background(), in, out, dispatcher.Options{})
	}
	w := peers.Dial(t, serve, func(b []byte) (*lineOf, error) {
		l := &lineOf{}
		return l, json.Unmarshal(b, l)
	}, false)
	t.Cleanup(func() { _ = w.HangUp() })
	n := 0
	ask := func(method, params string) *refusal {
		t.Helper()
		n++
		id := fmt.Sprint("q", n)
		w.Send(fmt.Sprintf(`{"kind":"request","request_id":%q,"method":%q,"params":%s}`+"\n", id, method, params))
		at, ok := w.Find(0, func(l *lineOf) bool { return l.ID == id })
		if !ok {
			t.Fatalf("%s was not answered", method)
		}
		return w.Got()[at].Error
	}
	if bad := ask("initialize", "{}"); bad != nil {
		t.Fatal(*bad)
	}
	return ask
}

// Section 13: what is wrong with a request is told with the same code and the same words over HTTP and on a line, in the same order of checks.
func TestALineIsRefusedWithTheCodeAndTheWordsOfHTTP(t *testing.T) {
	p := serve(t, store(), &model{replies: replies{saying("x")}})
	ask := onLines(t, p)
	conv := p.conversation()
	id := p.start(conv, "mock", "x", `,"config":{"requireApproval":true,"requestInput":true}`)
	asked := func(state string) string {
		p.becomes(id, state)
		events := p.events(id)
		var a portable.Action
		if err := json.Unmarshal(events[len(events)-1].Data, &a); err != nil {
			t.Fatal(err)
		}
		return a.ID
	}
	first := asked("awaiting_approval")
	p.must(200, "POST", "/v1/executions/"+id+"/actions/"+first+":respond", `{"approved":true}`)
	second := asked("awaiting_input")
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	const unreadable, deep = "Request body is not valid JSON", "Request body is nested too deeply"
	unknown := "exec_" + strings.Repeat("0", 32)
	stray := "action_" + strings.Repeat("0", 32)
	type row struct {
		what           string
		path, body     string
		method, params string
		code, message  string // "" where it is taken
	}
	start := func(more string) string {
		return `{"conversationId":"` + conv + `","providerId":"mock",` + more + `}`
	}
	begin := func(what, more, code, message string) row {
		return row{what, "/v1/executions", start(more), "rind/execution/start", start(more), code, message}
	}
	create := func(what, body, code, message string) row {
		return row{what, "/v1/conversations", body, "rind/conversation/create", body, code, message}
	}
	cancel := func(what, execution, more, code, message string) row {
		return row{what, "/v1/executions/" + execution + ":cancel", `{` + more + `}`, "rind/execution/cancel", `{"execution_id":"` + execution + `",` + more + `}`, code, message}
	}
	respond := func(what, execution, action, body, code, message string) row {
		return row{
			what, "/v1/executions/" + execution + "/actions/" + action + ":respond", body,
			"rind/action/respond", fmt.Sprintf(`{"execution_id":%q,"action_id":%q,"response":%s}`, execution, action, body), code, message,
		}
	}
	for _, r := range []row{
		begin("half a surrogate pair in the input", `"input":"\ud800"`, "VALIDATION_ERROR", unreadable),
		begin("a number beyond float64", `"input":"","config":{"n":1e400}`, "VALIDATION_ERROR", unreadable),
		begin("256 levels", `"input":"","requiredCapabilities":["none"],"config":{"a":`+nested(254)+`}`, "CAPABILITY_UNSUPPORTED", "Provider mock does not support required capabilities"),
		begin("257 levels", `"input":"","config":{"a":`+nested(255)+`}`, "VALIDATION_ERROR", deep),
		begin("config null", `"input":"","config":null`, "VALIDATION_ERROR", "Invalid execution request"),
		begin("input in capitals", `"INPUT":""`, "VALIDATION_ERROR", "Invalid execution request"),
		create("metadata null", `{"metadata":null}`, "VALIDATION_ERROR", "Invalid conversation request"),
		create("metadata with half a pair", `{"metadata":{"a":"\udc00"}}`, "VALIDATION_ERROR", unreadable),
		cancel("reason null", id, `"reason":null`, "VALIDATION_ERROR", "Invalid cancellation request"),
		cancel("reason null of an unknown one", unknown, `"reason":null`, "VALIDATION_ERROR", "Invalid cancellation request"),
		cancel("an unknown one", unknown, `"reason":"r"`, "NOT_FOUND", "Execution not found: "+unknown),
		respond("null", id, second, `null`, "VALIDATION_ERROR", "Invalid action response"),
		respond("null to an action that is not there", id, stray, `null`, "ACTION_NOT_FOUND", "Action not found: "+stray),
		respond("null to one that was answered", id, first, `null`, "ACTION_ALREADY_RESOLVED", "Action already resolved: "+first),
		respond("null to an unknown execution", unknown, second, `null`, "NOT_FOUND", "Execution not found: "+unknown),
		respond("a malformed one to one that was answered", id, first, `{"approved":7}`, "ACTION_ALREADY_RESOLVED", "Action already resolved: "+first),
		respond("no object", id, second, `[]`, "VALIDATION_ERROR", "Invalid action response"),
		respond("metadata null", id, second, `{"metadata":null}`, "VALIDATION_ERROR", "Invalid action response"),
		respond("half a surrogate pair", id, second, `{"value":"\ud800"}`, "VALIDATION_ERROR", unreadable),
		respond("unreadable, to an unknown execution", unknown, second, `{"value":1e400}`, "VALIDATION_ERROR", unreadable),
		respond("256 levels to one that was answered", id, first, `{"value":`+nested(255)+`}`, "ACTION_ALREADY_RESOLVED", "Action already resolved: "+first),
		respond("257 levels to one that was answered", id, first, `{"value":`+nested(256)+`}`, "VALIDATION_ERROR", deep),
	} {
		want := refusal{r.code, r.message}
		var got refusal
		if err := json.Unmarshal(p.do("POST", r.path, r.body).body, &got); err != nil || got != want {
			t.Errorf("%s over HTTP: %+v (%v), want %+v", r.what, got, err, want)
		}
		if bad := ask(r.method, r.params); bad == nil || *bad != want {
			t.Errorf("%s on a line: %+v, want %+v", r.what, bad, want)
		}
	}
	if bad := ask("rind/action/respond", fmt.Sprintf(`{"execution_id":%q,"action_id":%q}`, id, second)); bad == nil || bad.Code != "VALIDATION_ERROR" {
		t.Errorf("without a response: %+v", bad)
	}
	if e := p.must(200, "GET", "/v1/executions/"+id, ""); e.member("state") != "awaiting_input" {
		t.Errorf("after all this: %s", e.body)
	}
}
