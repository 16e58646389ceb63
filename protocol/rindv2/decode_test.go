package rindv2_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
)

// said is what a client reads as the answer to a frame: the line of its refusal, or what was decoded.
func said(env rindv2.Envelope, frame string) string {
	req, err := rindv2.Decode(env, []byte(frame))
	if errors.Is(err, rindv2.ErrIgnored) {
		return "ignored"
	}
	if r, ok := errors.AsType[*rindv2.Refusal](err); ok {
		line, err := rindv2.AppendReply(nil, env, protocol.Reply{ID: r.ID, Err: r.Err})
		if err != nil {
			return err.Error()
		}
		return string(line)
	}
	if err != nil {
		return "error: " + err.Error()
	}
	if a := req.Answer; a != nil {
		if a.Err != nil {
			return "answer " + string(a.ID) + " " + a.Err.Error()
		}
		return "answer " + string(a.ID) + " " + string(a.Result)
	}
	return "request " + string(req.ID) + " " + req.Method + " " + string(req.Params)
}

func refused(id, kind, message string) string {
	m, _ := protocol.Marshal(message)
	return `{"kind":"response","request_id":` + id + `,"error":{"type":"` + kind + `","message":` + string(m) + `}}`
}

func TestAnEnvelopeIsCheckedInTheOrderOfTheContract(t *testing.T) {
	bad := func(id, message string) string { return refused(id, "InvalidRequest", message) }
	for _, c := range []struct{ in, want string }{
		// Not JSON, not an object: H007, H009, H021, H030.
		{"garbage", refused("null", "ParseError", "Invalid JSON request.")},
		{`{"kind":"request","request_id":2`, refused("null", "ParseError", "Invalid JSON request.")},
		{``, refused("null", "ParseError", "Invalid JSON request.")},
		{`{"kind":"request","request_id":1,"method":"ping"}   trailing`, refused("null", "ParseError", "Invalid JSON request.")},
		{`{"kind":"request","request_id":1,"method":"ping"}{"kind":"request","request_id":2,"method":"ping"}`, refused("null", "ParseError", "Invalid JSON request.")},
		{"{\"kind\":\"request\",\"request_id\":1,\"method\":\"ping\"}\r{\"kind\":\"request\",\"request_id\":2,\"method\":\"ping\"}", refused("null", "ParseError", "Invalid JSON request.")},
		{"{\"a\":\"\x01\"}", refused("null", "ParseError", "Invalid JSON request.")},
		{`42`, refused("null", "ParseError", "Request must be an object.")},
		{`"str"`, refused("null", "ParseError", "Request must be an object.")},
		{`null`, refused("null", "ParseError", "Request must be an object.")},
		{`[]`, refused("null", "ParseError", "Request must be an object.")},
		{` [{"kind":"request","request_id":1,"method":"ping"}]`, refused("null", "ParseError", "Request must be an object.")},
		{`[1,[2]]`, refused("null", "ParseError", "Request must be an object.")},
		// kind, before anything else of the envelope.
		{`{}`, bad("null", `kind must be "request".`)},
		{`{"kind":"response","request_id":{"a": [1,` + "\r" + `2]},"method":7}`, bad(`{"a":[1,2]}`, `kind must be "request".`)},
		{`{"kind":"Request","request_id":"a"}`, bad(`"a"`, `kind must be "request".`)},
		{`{"kind":7,"request_id":true}`, bad(`true`, `kind must be "request".`)},
		{`{"KIND":"request","request_id":1,"method":"ping"}`, bad(`1`, `kind must be "request".`)},
		// The id: H024.
		{`{"kind":"request","method":"ping"}`, bad("null", "request_id is required.")},
		{`{"kind":"request","request_id":null,"method":"ping"}`, bad("null", "request_id is required.")},
		{`{"kind":"request","request_id":true,"method":"ping"}`, bad("true", "request_id is required.")},
		{`{"kind":"request","request_id":false,"method":""}`, bad("false", "request_id is required.")},
		{`{"kind":"request","request_id":"","method":"ping"}`, bad(`""`, "request_id must not be empty.")},
		{`{"kind":"request","request_id":" \t","method":"ping"}`, bad(`" \t"`, "request_id must not be empty.")},
		{`{"kind":"request","request_id":"\u0020","method":"ping"}`, bad(`"\u0020"`, "request_id must not be empty.")},
		{`{"kind":"request","request_id":{},"method":"ping"}`, bad("{}", "request_id must be a string or number.")},
		{`{"kind":"request","request_id":["a"],"method":""}`, bad(`["a"]`, "request_id must be a string or number.")},
		// The method.
		{`{"kind":"request","request_id":1}`, bad("1", "method is required.")},
		{`{"kind":"request","request_id":1,"method":null}`, bad("1", "method is required.")},
		{`{"kind":"request","request_id":1,"method":" ","params":[]}`, bad("1", "method is required.")},
		{`{"kind":"request","request_id":1,"method":7}`, bad("1", "method is required.")},
		{`{"kind":"request","request_id":1,"method":{"a":"}"},"Method":"ping"}`, bad("1", "method is required.")},
		// Params: H031.
		{`{"kind":"request","request_id":2,"method":"session/prompt","params":[]}`, bad("2", "params must be an object.")},
		{`{"kind":"request","request_id":3,"method":"session/prompt","params":["s","hi"]}`, bad("3", "params must be an object.")},
		{`{"kind":"request","request_id":4,"method":"session/prompt","params":"x"}`, bad("4", "params must be an object.")},
		{`{"kind":"request","request_id":4,"method":"session/prompt","params":false}`, bad("4", "params must be an object.")},
		{`{"kind":"request","request_id":1,"method":"session/prompt","params":null}`, "request 1 session/prompt "},
		{`{"kind":"request","request_id":9,"method":"ping"}`, "request 9 ping "},
		// What is fine.
		{` { "kind" : "request" , "request_id" : 7 , "method" : "ping" , "params" : { } , "jsonrpc" : 1 , "more" : [ "]" ] } `, "request 7 ping { }"},
		{`{"kind":"request","request_id":1,"method":"a\u002fb"}`, "request 1 a/b "},
		{`{"k\u0069nd":"request","request_id":1,"method":"ping"}`, "request 1 ping "},
		// Exact names, the last of duplicates: H020.
		{`{"kind":"request","request_id":1,"method":"ping","METHOD":"shutdown","Request_ID":2,"params":{}}`, "request 1 ping {}"},
		{`{"kind":"request","request_id":3,"request_id":4,"method":"shutdown","method":"ping"}`, "request 4 ping "},
		{`{"kind":"request","request_id":3,"method":"ping","params":{"a":1},"params":null}`, "request 3 ping "},
		// The answer to a question of ours gets none itself.
		{`{"kind":"request","request_id":"auth-1","method":"rind/auth/prompt","params":{"value":"k"}}`, `answer "auth-1" {"value":"k"}`},
		{`{"kind":"request","request_id":"auth-1","method":"rind/auth/prompt"}`, `answer "auth-1" {}`},
	} {
		if got := said(rindv2.Rind, c.in); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

func TestAnEnvelopeOfJSONRPCIsCheckedLikewise(t *testing.T) {
	bad := func(id string, code, kind, message string) string {
		m, _ := protocol.Marshal(message)
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":` + code + `,"message":` + string(m) + `,"data":{"type":"` + kind + `"}}}`
	}
	envelope := func(id, message string) string { return bad(id, "-32600", "InvalidRequest", message) }
	for _, c := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":1`, bad("null", "-32700", "ParseError", "Invalid JSON request.")},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, envelope("null", "Request must be an object.")},
		{`[]`, envelope("null", "Request must be an object.")},
		{`1`, envelope("null", "Request must be an object.")},
		{`{"id":1,"method":"ping"}`, envelope("1", `jsonrpc must be "2.0".`)},
		{`{"jsonrpc":"1.0","id":"a","method":"ping"}`, envelope(`"a"`, `jsonrpc must be "2.0".`)},
		{`{"jsonrpc":2.0,"id":[1],"method":"ping"}`, envelope("null", `jsonrpc must be "2.0".`)},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, envelope("null", "id must be a string or number.")},
		{`{"jsonrpc":"2.0","id":true,"method":"ping"}`, envelope("null", "id must be a string or number.")},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, envelope("null", "id must be a string or number.")},
		{`{"jsonrpc":"2.0","id":1}`, envelope("1", "method is required.")},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, envelope("1", "method is required.")},
		{`{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}`, envelope("1", "params must be an object.")},
		{`{"jsonrpc":"2.0","id":"","method":"ping","request_id":2}`, `request "" ping `},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","result":null}`, `request 1 ping `},
		{`{"jsonrpc":"2.0","method":"session/cancel","params":{"turn_id":"t"}}`, `request  session/cancel {"turn_id":"t"}`},
		{`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"id":7}}`, `request  $/cancel_request {"id":7}`},
		{`{"jsonrpc":"2.0","method":"session/prompt","params":{"input":"x"}}`, "ignored"},
		{`{"jsonrpc":"2.0","method":"session/cancel","params":[]}`, "ignored"},
		{`{"jsonrpc":"2.0","id":"auth-1","result":{"value":"k"}}`, `answer "auth-1" {"value":"k"}`},
		{`{"jsonrpc":"2.0","id":"auth-1","result":null}`, `answer "auth-1" null`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no","data":{"type":"NotFound"}}}`, `answer 1 NotFound: no`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"data":{"type":"Nonsense"}}}`, `answer 1 InternalError: The client answered with an error.`},
		{`{"jsonrpc":"2.0","id":1,"error":"no"}`, `answer 1 InternalError: The client answered with an error.`},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}`, "ignored"},
		{`{"jsonrpc":"2.0","result":1}`, "ignored"},
		{`{"id":1,"result":1}`, "ignored"},
	} {
		if got := said(rindv2.JSONRPC, c.in); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

// H023, H024: numbers no machine word holds, and neighbours that a float cannot tell apart.
func TestIdsAreEchoedByteForByte(t *testing.T) {
	for _, id := range []string{
		"1", "1.0", `"1"`, "-3", "0.5", "-0", "1e3", "1E+3", "1e400", "123456789012345678901", "9007199254740993", "9007199254740992",
		"18446744073709551616", `"\u0041"`, `"\ud800"`, `"\ud83d\ude00"`, "\"\U0001f600\"", "\"a\u2028\"", `"<&>"`, `"\/"`, `" a "`,
	} {
		for env, frame := range map[rindv2.Envelope]string{
			rindv2.Rind:    `{"kind":"request","request_id":` + id + `,"method":"ping"}`,
			rindv2.JSONRPC: `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`,
		} {
			buf := []byte(frame)
			req, err := rindv2.Decode(env, buf)
			if err != nil {
				t.Errorf("%s: %v", frame, err)
				continue
			}
			clear(buf) // the frame is not kept
			line, err := rindv2.AppendReply(nil, env, protocol.Reply{ID: req.ID, Result: rindv2.OK{OK: true}})
			want := strings.Replace(`{"kind":"response","request_id":ID,"result":{"ok":true}}`, "ID", id, 1)
			if env == rindv2.JSONRPC {
				want = strings.Replace(`{"jsonrpc":"2.0","id":ID,"result":{"ok":true}}`, "ID", id, 1)
			}
			if err != nil || string(line) != want {
				t.Errorf("%s\n got %s, %v\nwant %s", frame, line, err, want)
			}
		}
	}
}

func TestParamsComeAsSentAndLoneSurrogatesAreReplacedWhenRead(t *testing.T) {
	params := `{ "input":"a\ud800b\udc00\ud83d\ude00","n":12345678901234567890,"input":"last \ud800" }`
	req, err := rindv2.Decode(rindv2.Rind, []byte(`{"kind":"request","request_id":1,"method":"session/prompt","params":`+params+`}`))
	if err != nil || string(req.Params) != params {
		t.Fatalf("params %s, %v", req.Params, err)
	}
	p := rindv2.ReadParams(req.Params)
	if got, ok := p.Text("input"); !ok || got != "last \ufffd" {
		t.Errorf("input = %q", got)
	}
	if p := rindv2.ReadParams([]byte(`{"a":"x\ud800y\udc00\ud83d\ude00"}`)); string(p.Raw("a")) != `"x\ud800y\udc00\ud83d\ude00"` {
		t.Errorf("raw %s", p.Raw("a"))
	} else if got, _ := p.Text("a"); got != "x\ufffdy\ufffd\U0001f600" {
		t.Errorf("text %q", got)
	}
}

// H001, H010: text of any size and any separators comes out as it went in.
func TestTextComesThroughWhole(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", 65_537), strings.Repeat("é", 1<<20), "a\u2028b\u2029c\u0085d\x00e<&>\\\"\U0001f600"} {
		for _, raw := range []string{string(protocol.AppendString(nil, text)), quoteRaw(text)} {
			req, err := rindv2.Decode(rindv2.Rind, []byte(`{"kind":"request","request_id":1,"method":"session/prompt","params":{"input":`+raw+`}}`))
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := rindv2.ReadParams(req.Params).Text("input"); got != text {
				t.Errorf("%.20q of %d bytes came as %.20q of %d", text, len(text), got, len(got))
			}
		}
	}
}

// quoteRaw escapes only what has to be.
func quoteRaw(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\x00", `\u0000`).Replace(s) + `"`
}

func TestTheFirstFrameDecidesForAnEnvelope(t *testing.T) {
	for frame, want := range map[string]rindv2.Envelope{
		`{"jsonrpc":"2.0","id":1,"method":"x"}`: rindv2.JSONRPC,
		`{"jsonrpc":null}`:                      rindv2.JSONRPC,
		`{"kind":"request"}`:                    rindv2.Rind,
		`{"params":{"jsonrpc":"2.0"}}`:          rindv2.Rind,
		`{"JSONRPC":"2.0"}`:                     rindv2.Rind,
		`["jsonrpc"]`:                           rindv2.Rind,
		`{"jsonrpc":`:                           rindv2.Rind,
		`garbage`:                               rindv2.Rind,
	} {
		if got := rindv2.SniffEnvelope([]byte(frame)); got != want {
			t.Errorf("%s: %d", frame, got)
		}
	}
}

// The texts of refusals are looked up in the contract itself.
func TestEveryTextOfARefusalStandsInTheContract(t *testing.T) {
	doc, err := os.ReadFile("../../docs/protocol/rind-v2.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		rindv2.TextLineTooLong, rindv2.TextNotUTF8, rindv2.TextTooDeep, rindv2.TextNotJSON, rindv2.TextNotObject, rindv2.TextKind, rindv2.TextIDRequired,
		rindv2.TextIDEmpty, rindv2.TextIDType, rindv2.TextMethodRequired, rindv2.TextParams, rindv2.DuplicateID().Message, rindv2.Stopping().Message,
		rindv2.NotReady().Message, rindv2.UnknownMethod("X").Message, rindv2.Overloaded().Message,
	} {
		if !strings.Contains(string(doc), "| `"+text+"`") {
			t.Errorf("%q is not a text of section 2", text)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"kind":"request","request_id":1,"method":"ping","params":{"a":[1,"]",{}]}}`, `{"jsonrpc":"2.0","id":"a","method":"x"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":{"type":"NotFound"}}}`, `{"a":{"b":[{"c":"\""}]},"a":null}`, ` [ ] `, `{"":""}`,
		`{"kind":"request","request_id":"\ud800","method":"rind/auth/prompt","params":{"value":1e400}}`, `{"kind":"request","request_id":{"a":[ ]},"method":7}`,
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, frame []byte, rpc bool) {
		env := rindv2.Rind
		if rpc {
			env = rindv2.JSONRPC
		}
		req, err := rindv2.Decode(env, frame)
		_ = rindv2.SniffEnvelope(frame)
		var reply protocol.Reply
		r, refused := errors.AsType[*rindv2.Refusal](err)
		switch {
		case refused:
			reply = protocol.Reply{ID: r.ID, Err: r.Err}
		case err != nil:
			if !errors.Is(err, rindv2.ErrIgnored) {
				t.Fatalf("%q: %v", frame, err)
			}
			return
		case req.Answer != nil:
			if (req.Answer.Err == nil) != json.Valid(req.Answer.Result) {
				t.Fatalf("%q: answer %+v", frame, req.Answer)
			}
			return
		default:
			// The oracle: what encoding/json makes of the same object, its exact names alone.
			var m map[string]json.RawMessage
			if err := json.Unmarshal(frame, &m); err != nil {
				t.Fatalf("%q was taken: %v", frame, err)
			}
			name := "request_id"
			if rpc {
				name = "id"
			}
			if req.ID != nil && string(req.ID) != string(m[name]) {
				t.Fatalf("%q: id %s, want %s", frame, req.ID, m[name])
			}
			if req.Params != nil && string(req.Params) != string(m["params"]) {
				t.Fatalf("%q: params %s", frame, req.Params)
			}
			var inner map[string]json.RawMessage
			_ = json.Unmarshal(req.Params, &inner)
			p := rindv2.ReadParams(req.Params)
			for name, v := range inner {
				if string(v) != "null" && string(p[name]) != string(v) || string(v) == "null" && p.Has(name) {
					t.Fatalf("%q: param %q is %s, want %s", frame, name, p[name], v)
				}
			}
			reply = protocol.Reply{ID: req.ID, Result: rindv2.OK{OK: true}}
		}
		line, err := rindv2.AppendReply(nil, env, reply)
		if err != nil || !json.Valid(line) || strings.ContainsAny(string(line), "\r\n") {
			t.Fatalf("%q is answered with %q, %v", frame, line, err)
		}
	})
}
