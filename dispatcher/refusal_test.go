package dispatcher_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol/frame"
	"github.com/rind-dev/rind/protocol/rindv2"
)

// refusal is a line of a client and how it is answered.
type refusal struct {
	name, send  string
	id          string // of the answer
	kind        string
	message     string
	code        int    // of JSON-RPC
	unanswered  bool   // nothing is written
	instead     string // the result, where the line is no mistake
	beforeHello bool
}

func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// The table of docs/protocol/rind-v2.md section 2, in its order; each line also breaks rules further down, to show which comes first.
var rindRefusals = []refusal{
	{name: "too long", send: `{"kind":"` + strings.Repeat("x", frame.MaxBytes) + "\xff", id: "null", kind: "ParseError", message: "Request line exceeds 16777216 bytes."},
	{name: "not UTF-8", send: "{\"kind\":\"\xff", id: "null", kind: "ParseError", message: "Request is not valid UTF-8."},
	{name: "too deep", send: deep(1001) + "]", id: "null", kind: "ParseError", message: "Request nesting exceeds 1000 levels."},
	{name: "no JSON", send: `{"kind":`, id: "null", kind: "ParseError", message: "Invalid JSON request."},
	{name: "no object", send: `[1]`, id: "null", kind: "ParseError", message: "Request must be an object."},
	{name: "no request", send: `{"kind":"response","request_id":true}`, id: "true", kind: "InvalidRequest", message: `kind must be "request".`},
	{name: "without kind and id", send: `{}`, id: "null", kind: "InvalidRequest", message: `kind must be "request".`},
	{name: "id missing", send: `{"kind":"request"}`, id: "null", kind: "InvalidRequest", message: "request_id is required."},
	{name: "id null", send: `{"kind":"request","request_id":null}`, id: "null", kind: "InvalidRequest", message: "request_id is required."},
	{name: "id boolean", send: `{"kind":"request","request_id":false}`, id: "false", kind: "InvalidRequest", message: "request_id is required."},
	{name: "id blank", send: `{"kind":"request","request_id":"  "}`, id: `"  "`, kind: "InvalidRequest", message: "request_id must not be empty."},
	{name: "id object", send: `{"kind":"request","request_id":{"a": 1}}`, id: `{"a":1}`, kind: "InvalidRequest", message: "request_id must be a string or number."},
	{name: "id array", send: `{"kind":"request","request_id":[7]}`, id: `[7]`, kind: "InvalidRequest", message: "request_id must be a string or number."},
	{name: "method missing", send: `{"kind":"request","request_id":0.5,"params":3}`, id: "0.5", kind: "InvalidRequest", message: "method is required."},
	{name: "method blank", send: `{"kind":"request","request_id":-3,"method":" "}`, id: "-3", kind: "InvalidRequest", message: "method is required."},
	{name: "method a number", send: `{"kind":"request","request_id":1.0,"method":7}`, id: "1.0", kind: "InvalidRequest", message: "method is required."},
	{name: "params an array", send: `{"kind":"request","request_id":"a","method":"nope","params":[]}`, id: `"a"`, kind: "InvalidRequest", message: "params must be an object."},
	{name: "before initialize", beforeHello: true, send: `{"kind":"request","request_id":1,"method":"nope"}`, id: "1", kind: "ServerNotReady", message: "Runtime worker is not initialized."},
	{name: "ping before initialize", beforeHello: true, send: `{"kind":"request","request_id":"1","method":"ping"}`, id: `"1"`, instead: `{"ok":true}`},
	{name: "unknown method", send: `{"kind":"request","request_id":123456789012345678901,"method":"nope"}`, id: "123456789012345678901", kind: "MethodNotFound", message: "Unknown method: nope"},
	{name: "JSON-RPC's notification as a method", send: `{"kind":"request","request_id":5,"method":"$/cancel_request","params":{"id":1}}`, id: "5", kind: "MethodNotFound", message: "Unknown method: $/cancel_request"},
	{name: "session id of another type", send: `{"kind":"request","request_id":2,"method":"session/prompt","params":{"session_id":7,"input":"x"}}`, id: "2", kind: "InvalidRequest", message: "session_id is required for this method."},
	{name: "session id malformed", send: `{"kind":"request","request_id":2,"method":"session/cancel","params":{"session_id":"a..b"}}`, id: "2", kind: "InvalidRequest", message: "Invalid session id."},
	{name: "params null, CRLF", send: "{\"kind\":\"request\",\"request_id\":1e2,\"method\":\"ping\",\"params\":null}\r", id: "1e2", instead: `{"ok":true}`},
	{name: "a blank line", send: "   ", unanswered: true},
	{name: "the last of two keys", send: `{"kind":"request","request_id":1,"request_id":2,"method":"nope","method":"ping"}`, id: "2", instead: `{"ok":true}`},
	{name: "lone surrogate in an id", send: `{"kind":"request","request_id":"\ud800","method":"ping"}`, id: `"\ud800"`, instead: `{"ok":true}`},
}

// The same in JSON-RPC (docs/protocol/jsonrpc.md).
var rpcRefusals = []refusal{
	{name: "too long", send: `{"jsonrpc":"` + strings.Repeat("x", frame.MaxBytes), id: "null", kind: "ParseError", message: "Request line exceeds 16777216 bytes.", code: -32700},
	{name: "no JSON", send: `{"jsonrpc":`, id: "null", kind: "ParseError", message: "Invalid JSON request.", code: -32700},
	{name: "batch", send: `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`, id: "null", kind: "InvalidRequest", code: -32600},
	{name: "id null", send: `{"jsonrpc":"2.0","id":null,"method":"ping"}`, id: "null", kind: "InvalidRequest", code: -32600},
	{name: "method missing", send: `{"jsonrpc":"2.0","id":"m"}`, id: `"m"`, kind: "InvalidRequest", code: -32600},
	{name: "before initialize", beforeHello: true, send: `{"jsonrpc":"2.0","id":1,"method":"session/list"}`, id: "1", kind: "ServerNotReady", message: "Runtime worker is not initialized.", code: -32002},
	{name: "unknown method", send: `{"jsonrpc":"2.0","id":-0.5,"method":"nope"}`, id: "-0.5", kind: "MethodNotFound", message: "Unknown method: nope", code: -32601},
	{name: "a notification with an id", send: `{"jsonrpc":"2.0","id":5,"method":"$/cancel_request","params":{"id":1}}`, id: "5", kind: "MethodNotFound", message: "Unknown method: $/cancel_request", code: -32601},
	{name: "wrong params", send: `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{}}`, id: "3", kind: "InvalidRequest", message: "session/prompt requires input.", code: -32602},
	{name: "unknown session", send: `{"jsonrpc":"2.0","id":4,"method":"session/switch","params":{"session_id":"s"}}`, id: "4", kind: "SessionNotFound", message: "Session not found: s", code: -32000},
	{name: "notification that is ignored", send: `{"jsonrpc":"2.0","method":"session/new"}`, unanswered: true},
	{name: "cancel as a notification", send: `{"jsonrpc":"2.0","method":"session/cancel","params":{}}`, unanswered: true},
	{name: "cancel of an unknown request", send: `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"id":99}}`, unanswered: true},
}

func TestMalformedLinesAreRefusedAsTheContractHasIt(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		table := rindRefusals
		if env == rindv2.JSONRPC {
			table = rpcRefusals
		}
		p := launch(t, peers.NewWorld(), "p", `[{"text": "x"}]`, "")
		defer p.end()
		c, early := p.connect(env), p.connect(env)
		c.hello()
		c.next = 1000
		early.send("ping", "")
		for _, r := range table {
			on := c
			if r.beforeHello {
				on = early
			}
			before := len(on.settle())
			on.Send(r.send + "\n")
			got := on.settle()[before:]
			if r.unanswered {
				if len(got) > 0 {
					t.Errorf("%s: answered %s", r.name, got[0].raw)
				}
				continue
			}
			if len(got) != 1 {
				t.Errorf("%s: %d lines", r.name, len(got))
				continue
			}
			l := got[0]
			want := fmt.Sprintf(`{"kind":"response","request_id":%s,"result":%s}`, r.id, r.instead)
			switch {
			case r.instead != "" && l.raw != want:
				t.Errorf("%s: got %s, want %s", r.name, l.raw, want)
			case r.instead != "":
			case l.id != r.id || l.err == nil || l.err.Type != r.kind || l.err.Code != r.code || r.message != "" && l.err.Message != r.message:
				t.Errorf("%s: got %s (code %d), want id %s %s %q (code %d)", r.name, l.raw, errCode(l), r.id, r.kind, r.message, r.code)
			}
		}
		if l := c.response(c.send("session/list", "")); l.err != nil {
			t.Errorf("afterwards: %s", l.raw)
		}
	})
}

// TestASessionThatIsNamedWronglyIsRefusedByEveryMethodThatTakesOne: none falls back on the current one.
func TestASessionThatIsNamedWronglyIsRefusedByEveryMethodThatTakesOne(t *testing.T) {
	const rest = `"input":"/status","tool_call_id":"x","answer":"x","action_id":"x","option_id":"x","bg_id":"b","task_id":"t","objective":"o","status":"active",` +
		`"model":"m","reasoning_effort":"high","input_id":"i","mode":"ask","path":"f","content_base64":""`
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "p", `[{"text": "x"}]`, "")
		defer p.end()
		c := p.connect(rindv2.Rind)
		c.hello()
		asked := 0
		for _, m := range listOf(t, c.call("initialize", `{}`), "methods") {
			switch {
			case slices.Contains([]string{"initialize", "ping", "shutdown", "session/new", "session/create", "session/list"}, m),
				strings.HasPrefix(m, "rind/auth/"), strings.HasPrefix(m, "rind/conversation/"), strings.HasPrefix(m, "rind/execution/"),
				m == "rind/action/respond", m == "rind/runtime/describe", m == "rind/usage/summary",
				strings.HasPrefix(m, "rind/folder_defaults/"): // take none, or have no folders here
				continue
			}
			asked++
			for id, want := range map[string][2]string{
				`7`:                          {"InvalidRequest", "session_id is required for this method."},
				`" "`:                        {"InvalidRequest", "session_id is required for this method."},
				`"../x"`:                     {"InvalidRequest", "Invalid session id."},
				`"20200101_000000_00000000"`: {"SessionNotFound", "Session not found: 20200101_000000_00000000"},
			} {
				c.refused(m, `{"session_id":`+id+`,`+rest+`}`, want[0], want[1])
			}
		}
		if asked < 35 {
			t.Errorf("only %d methods were asked", asked)
		}
	})
}

func errCode(l *line) int {
	if l.err == nil {
		return 0
	}
	return l.err.Code
}

func TestIDInFlightIsRefusedAndTheFirstRequestGoesOn(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"match": "p", "steps": [{"text": "a"}, {"gate": "go"}]}]}`, "")
		defer p.end()
		c := p.connect(env)
		c.hello()
		c.ask("7", "session/prompt", `{"input":"p"}`)
		c.event("assistant_delta")
		c.ask("7", "ping", "")
		twice := c.response("7")
		code := 0
		if env == rindv2.JSONRPC {
			code = -32600
		}
		if twice.err == nil || twice.err.Type != "InvalidRequest" || twice.err.Message != "request_id is already in flight." || twice.err.Code != code {
			t.Errorf("got %s", twice.raw)
		}
		for _, other := range []string{"7.0", `"7"`, "70e-1"} { // other ids
			c.ask(other, "ping", "")
			if l := c.response(other); l.err != nil {
				t.Errorf("got %s", l.raw)
			}
		}
		p.Play.Open("go")
		first := c.await("the prompt's answer", func(l *line) bool { return l.id == "7" && l.err == nil })
		if first.text("outcome") != "completed" {
			t.Errorf("got %s", first.raw)
		}
		before := len(c.settle())
		c.ask("7", "ping", "") // free again
		if got := c.settle()[before:]; len(got) != 1 || got[0].err != nil {
			t.Errorf("the id was not freed: %v", got)
		}
	})
}

func TestMoreThan64InFlightAreRefusedButWhatEndsWorkPasses(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"match": "p", "steps": [{"text": "a"}, {"hang": true}]}]}`, "")
		defer p.end()
		c := p.connectDeaf(env) // what is not written stays in flight
		c.ask("1", "initialize", `{"client_capabilities":["rind/approvals"]}`)
		c.ask("2", "session/prompt", `{"input":"p"}`)
		for i := 3; i <= 64; i++ {
			c.ask(fmt.Sprint(i), "model/list", "")
		}
		c.settle()
		c.ask("65", "model/list", "")
		c.ask("66", "ping", "")
		c.ask("67", "session/cancel", "{}")
		c.ask("68", "rind/approval/respond", `{"action_id":"a","option_id":"b"}`)
		c.ask("69", "rind/user-question/respond", `{"tool_call_id":"a","answer":"b"}`)
		c.ask("70", "session/list", "")
		c.settle()
		c.Hear()
		for id, want := range map[string]string{
			"1": "", "2": "", "3": "", "64": "", "65": "Overloaded", "66": "", "67": "", "68": "ActionNotFound", "69": "QuestionNotFound", "70": "Overloaded",
		} {
			l, got := c.response(id), ""
			if l.err != nil {
				got = l.err.Type
			}
			if got != want {
				t.Errorf("answer to %s: %s, want %q", id, l.raw, want)
			}
		}
		if l := c.response("65"); l.err.Message != "Too many requests in flight (maximum 64)." || !strings.Contains(l.raw, `"retry_after_ms":`) {
			t.Errorf("got %s", l.raw)
		}
		if l := c.response("2"); l.text("outcome") != "cancelled" {
			t.Errorf("the prompt ended with %s", l.raw)
		}
		if l := c.response(c.send("session/list", "")); l.err != nil { // ids 1 and on are free again
			t.Errorf("afterwards: %s", l.raw)
		}
	})
}

func TestManyRequestsOfAClientThatDoesNotReadPauseTheReaderAndNoneIsLost(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `[{"text": "x"}]`, "")
		defer p.end()
		c := p.connectDeaf(env)
		const n = 3000
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for i := 1; i <= n; i++ {
				c.ask(fmt.Sprint(i), "ping", "")
			}
		}()
		c.settle()
		select {
		case <-sent:
			t.Error("everything was read although no answer was")
		default:
		}
		c.Hear()
		<-sent
		c.response(fmt.Sprint(n))
		answered := map[string]bool{}
		for _, l := range c.settle() {
			if answered[l.id] || l.err != nil {
				t.Fatalf("answer: %s", l.raw)
			}
			answered[l.id] = true
		}
		if len(answered) != n {
			t.Errorf("%d answers to %d requests", len(answered), n)
		}
	})
}
