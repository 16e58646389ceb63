package rindv2_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
)

// kinds are the error kinds of package protocol, read from its source: the language cannot list them.
func kinds(t *testing.T) (out []protocol.ErrorKind) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../errors.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := v.Type.(*ast.Ident); ok && id.Name == "ErrorKind" {
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, protocol.ErrorKind(text))
		}
		return true
	})
	return out
}

func TestEveryKindOfErrorHasItsFormOnTheWire(t *testing.T) {
	codes := map[protocol.ErrorKind]int{
		protocol.ParseError: -32700, protocol.InvalidRequest: -32602, protocol.MethodNotFound: -32601, protocol.InternalError: -32603, protocol.ServerNotReady: -32002,
	}
	all := kinds(t)
	if len(all) < 29 {
		t.Fatalf("only %d kinds found", len(all))
	}
	contract, err := os.ReadFile("../../docs/protocol/rind-v2.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(contract), "\n## 12. Error types")
	for _, k := range all {
		if !regexp.MustCompile(`\b` + string(k) + `\b`).MatchString(section) {
			t.Errorf("%s is not in section 12", k)
		}
		code, ok := codes[k]
		if !ok {
			code = -32000
		}
		for env, want := range map[rindv2.Envelope]string{
			rindv2.Rind:    `{"kind":"response","request_id":7,"error":{"type":"` + string(k) + `","message":"m \"<&>\""}}`,
			rindv2.JSONRPC: `{"jsonrpc":"2.0","id":7,"error":{"code":` + strconv.Itoa(code) + `,"message":"m \"<&>\"","data":{"type":"` + string(k) + `"}}}`,
		} {
			got, err := rindv2.AppendReply(nil, env, protocol.Reply{ID: json.RawMessage("7"), Err: protocol.Errorf(k, `m "<&>"`)})
			if err != nil || string(got) != want {
				t.Errorf("%s\n got %s, %v\nwant %s", k, got, err, want)
			}
		}
	}
}

func TestErrorsShowTheirDetailsAndNothingElseOfThemselves(t *testing.T) {
	for _, c := range []struct {
		err       *protocol.Error
		rind, rpc string
	}{
		{
			rindv2.Overloaded(), `{"type":"Overloaded","message":"Too many requests in flight (maximum 64).","retry_after_ms":1000}`,
			`{"code":-32000,"message":"Too many requests in flight (maximum 64).","data":{"type":"Overloaded","retry_after_ms":1000}}`,
		},
		{
			rindv2.DuplicateID(), `{"type":"InvalidRequest","message":"request_id is already in flight."}`,
			`{"code":-32600,"message":"request_id is already in flight.","data":{"type":"InvalidRequest"}}`,
		},
		{
			&protocol.Error{Kind: protocol.RequestFailed, Message: "x", Details: map[string]any{"b": "\u2028", "a": map[string]any{"turn_id": "t"}, "type": "Other", "message": "y"}},
			`{"type":"RequestFailed","message":"x","a":{"turn_id":"t"},"b":"\u2028"}`,
			`{"code":-32000,"message":"x","data":{"type":"RequestFailed","a":{"turn_id":"t"},"b":"\u2028","message":"y"}}`,
		},
		{
			&protocol.Error{Kind: "Unheard", Message: "x", Cause: errors.New("secret")}, `{"type":"InternalError","message":"x"}`,
			`{"code":-32603,"message":"x","data":{"type":"InternalError"}}`,
		},
		{
			&protocol.Error{Kind: rindv2.RequestCancelled, Message: "x"}, `{"type":"RequestCancelled","message":"x"}`,
			`{"code":-32800,"message":"x","data":{"type":"RequestCancelled"}}`,
		},
	} {
		for env, want := range map[rindv2.Envelope]string{
			rindv2.Rind: `{"kind":"response","request_id":null,"error":` + c.rind + `}`, rindv2.JSONRPC: `{"jsonrpc":"2.0","id":null,"error":` + c.rpc + `}`,
		} {
			if got, err := rindv2.AppendReply(nil, env, protocol.Reply{Err: c.err}); err != nil || string(got) != want {
				t.Errorf("got  %s, %v\nwant %s", got, err, want)
			}
		}
	}
}

func TestAReplyThatCannotBeEncodedAddsNothing(t *testing.T) {
	for _, r := range []protocol.Reply{
		{Result: math.Inf(1)}, {Err: &protocol.Error{Kind: protocol.NotFound, Details: map[string]any{"x": make(chan int)}}},
	} {
		got, err := rindv2.AppendReply([]byte("before"), rindv2.Rind, r)
		if err == nil || string(got) != "before" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestAnEventLineHasTheMembersOfTheContractInTheirOrder(t *testing.T) {
	event := json.RawMessage(`{"type":"x","text":"<&>"}`)
	for _, c := range []struct {
		e         protocol.Envelope
		rind, rpc string
	}{
		{
			protocol.Envelope{Sequence: 12, Durable: true, Session: "s1", Turn: "5e", Cursor: 41, Event: event},
			`{"kind":"event","method":"session/update","sequence":12,"durability":"durable","session_id":"s1","turn_id":"5e","cursor":41,"event":{"type":"x","text":"<&>"}}`,
			`{"jsonrpc":"2.0","method":"session/update","params":{"sequence":12,"durability":"durable","session_id":"s1","turn_id":"5e","cursor":41,"event":{"type":"x","text":"<&>"}}}`,
		},
		{
			protocol.Envelope{Sequence: 13, Durable: true, Session: "s1", TaskCursor: 6, Event: event},
			`{"kind":"event","method":"session/update","sequence":13,"durability":"durable","session_id":"s1","turn_id":"","task_cursor":6,"event":{"type":"x","text":"<&>"}}`,
			`{"jsonrpc":"2.0","method":"session/update","params":{"sequence":13,"durability":"durable","session_id":"s1","turn_id":"","task_cursor":6,"event":{"type":"x","text":"<&>"}}}`,
		},
		{
			protocol.Envelope{Sequence: 14, Session: "s1", Turn: "5e", Event: event},
			`{"kind":"event","method":"session/update","sequence":14,"durability":"incremental","session_id":"s1","turn_id":"5e","event":{"type":"x","text":"<&>"}}`,
			`{"jsonrpc":"2.0","method":"session/update","params":{"sequence":14,"durability":"incremental","session_id":"s1","turn_id":"5e","event":{"type":"x","text":"<&>"}}}`,
		},
		{
			protocol.Envelope{Method: rindv2.MethodExecution, Sequence: 41, Execution: "exec_9b", Event: event},
			`{"kind":"event","method":"execution/event","sequence":41,"execution_id":"exec_9b","event":{"type":"x","text":"<&>"}}`,
			`{"jsonrpc":"2.0","method":"execution/event","params":{"sequence":41,"execution_id":"exec_9b","event":{"type":"x","text":"<&>"}}}`,
		},
		{
			protocol.Envelope{Method: rindv2.MethodAuthUpdate, Sequence: 5, Event: event},
			`{"kind":"event","method":"rind/auth/update","sequence":5,"event":{"type":"x","text":"<&>"}}`,
			`{"jsonrpc":"2.0","method":"rind/auth/update","params":{"sequence":5,"event":{"type":"x","text":"<&>"}}}`,
		},
	} {
		if got := string(rindv2.AppendEvent(nil, rindv2.Rind, &c.e)); got != c.rind {
			t.Errorf("got  %s\nwant %s", got, c.rind)
		}
		if got := string(rindv2.AppendEvent(nil, rindv2.JSONRPC, &c.e)); got != c.rpc {
			t.Errorf("got  %s\nwant %s", got, c.rpc)
		}
	}
}

func TestACallOfOursIsARequestToTheClient(t *testing.T) {
	c := protocol.Call{ID: "auth-5e", Method: rindv2.MethodAuthPrompt, Params: json.RawMessage(`{"kind":"secret","message":"Key?","options":[]}`)}
	for env, want := range map[rindv2.Envelope]string{
		rindv2.Rind:    `{"kind":"request","request_id":"auth-5e","method":"rind/auth/prompt","params":{"kind":"secret","message":"Key?","options":[]}}`,
		rindv2.JSONRPC: `{"jsonrpc":"2.0","id":"auth-5e","method":"rind/auth/prompt","params":{"kind":"secret","message":"Key?","options":[]}}`,
	} {
		if got := string(rindv2.AppendCall(nil, env, c)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if got := string(rindv2.AppendCall(nil, rindv2.Rind, protocol.Call{ID: "a", Method: "m"})); got != `{"kind":"request","request_id":"a","method":"m","params":{}}` {
		t.Errorf("without params: %s", got)
	}
	if got, ok := rindv2.AppendWithdrawal(nil, rindv2.JSONRPC, "auth-5e"); !ok || string(got) != `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"id":"auth-5e"}}` {
		t.Errorf("withdrawal %s, %v", got, ok)
	}
	if got, ok := rindv2.AppendWithdrawal(nil, rindv2.Rind, "auth-5e"); ok || len(got) > 0 {
		t.Errorf("rind v2 has no withdrawal, got %s", got)
	}
}

// H010: raw JSON that a model, a tool or an older version wrote is made fit for a line; all other bytes stay.
func TestNoLineHoldsWhatALineMustNot(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"{\"a\":\"x\u2028y\u2029z\"}", `{"a":"x\u2028y\u2029z"}`},
		{"{\"a\":\"\xff\xe2\x80\"}", `{"a":"\ufffd\ufffd\ufffd"}`},
		{"{\n\r\"a\" : 1}", `{  "a" : 1}`},
		{"{\"a\":\"<&>\u0085\U0001f600\u20ac\"}", "{\"a\":\"<&>\u0085\U0001f600\u20ac\"}"},
	} {
		lines := []string{string(rindv2.AppendEvent(nil, rindv2.Rind, &protocol.Envelope{Event: json.RawMessage(c.in)}))}
		for _, result := range []any{json.RawMessage(c.in), struct {
			R json.RawMessage `json:"r"`
		}{json.RawMessage(c.in)}} {
			line, err := rindv2.AppendReply(nil, rindv2.Rind, protocol.Reply{Result: result})
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
		}
		if !strings.Contains(lines[0], c.want) || !strings.Contains(lines[1], c.want) {
			t.Errorf("%q became %q", c.in, lines[:2])
		}
		for _, line := range lines {
			if !utf8.ValidString(line) || strings.ContainsAny(line, "\u2028\u2029\n\r") || !json.Valid([]byte(line)) {
				t.Errorf("%q is told as %q", c.in, line)
			}
		}
	}
}

var at = time.Date(2026, 1, 2, 10, 15, 4, 120_000_000, time.UTC)

func entry(t testing.TB, seq protocol.Seq, id string, b protocol.Body) protocol.Entry {
	t.Helper()
	e, err := protocol.Encode(protocol.Head{Time: at, EventID: id, Session: "s1", Turn: "5e"}, b)
	if err != nil {
		t.Fatal(err)
	}
	e.Seq = seq
	return e
}

func BenchmarkDecodeSmallRequest(b *testing.B) {
	frame := []byte(`{"kind":"request","request_id":7,"method":"session/cancel","params":{"session_id":"20260102_101504_0a1b2c3d","turn_id":"5e"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rindv2.Decode(rindv2.Rind, frame); err != nil {
			b.Fatal(err)
		}
	}
}

// The goal is 1 µs and one allocation at most.
func BenchmarkAppendDelta(b *testing.B) {
	e := entry(b, 7, "91aa04b7c02e4ed7a0f5f9b2c8d1e6f3", &protocol.AssistantDelta{Text: strings.Repeat("words and ", 8)})
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		env, _ := rindv2.EnvelopeOf("20260102_101504_0a1b2c3d", &e)
		buf = rindv2.AppendEvent(buf[:0], rindv2.Rind, &env)
	}
}

func BenchmarkTellDeltas(b *testing.B) {
	for name, merge := range map[string]bool{"one by one": false, "merged": true} {
		b.Run(name, func(b *testing.B) {
			entries := make([]protocol.Entry, 256)
			for i := range entries {
				entries[i] = entry(b, protocol.Seq(i+1), "91aa04b7c02e4ed7a0f5f9b2c8d1e6f3", &protocol.AssistantDelta{
					Text: strings.Repeat("words and ", 8), More: protocol.AssistantPiece{MessageID: "m1", Offset: 80 * i},
				})
			}
			var out []protocol.Envelope
			b.ReportAllocs()
			for b.Loop() {
				t := rindv2.Teller{Session: "s1"}
				out = t.Tell(out[:0], entries, merge)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(entries)), "ns/entry")
		})
	}
}
