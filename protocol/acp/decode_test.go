package acp

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/rind-dev/rind/protocol"
)

func TestALineIsARequestOrIsRefusedAsTheContractSays(t *testing.T) {
	for _, c := range []struct {
		line string
		code int    // of the refusal, 0 for none
		id   string // of the refusal, or of the request
	}{
		{`{"jsonrpc":"2.0","id":77,"method":`, -32700, ""},
		{`{"jsonrpc":"2.0"} {}`, -32700, ""},
		{`42`, -32600, ""},
		{`"str"`, -32600, ""},
		{`null`, -32600, ""},
		{`{}`, -32600, ""},
		{`{"jsonrpc":"2.0"}`, -32600, ""},
		{`[{"jsonrpc":"2.0","id":1,"method":"x"}]`, -32600, ""},
		{`{"jsonrpc":"1.0","id":1,"method":"x"}`, -32600, "1"},
		{`{"jsonrpc":"2.0","id":null,"method":"x"}`, -32600, ""},
		{`{"jsonrpc":"2.0","id":true,"method":"x"}`, -32600, ""},
		{`{"jsonrpc":"2.0","id":{"a":1},"method":"x"}`, -32600, ""},
		{`{"jsonrpc":"2.0","id":1,"method":5}`, -32600, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}`, -32602, "1"},
		{`{"jsonrpc":"2.0","id":-7,"method":"x"}`, 0, "-7"},
		{`{"jsonrpc":"2.0","id":1.50,"method":"x"}`, 0, "1.50"},
		{`{"jsonrpc":"2.0","id":18446744073709551616,"method":"x"}`, 0, "18446744073709551616"},
		{`{"jsonrpc":"2.0","id":"","method":"x","params":null}`, 0, `""`},
		{`{"jsonrpc":"2.0","id":"\u0031","method":"x"}`, 0, `"\u0031"`},
		{`{"jsonrpc":"2.0","method":"x","params":{"a":1}}`, 0, ""},
	} {
		req, err := Decode([]byte(c.line))
		r, refused := errors.AsType[*Refusal](err)
		switch {
		case refused != (c.code != 0):
			t.Errorf("%s: %v", c.line, err)
		case refused && (Code(r.Err.Kind) != c.code || string(r.ID) != c.id):
			t.Errorf("%s: %d for id %q", c.line, Code(r.Err.Kind), r.ID)
		case !refused && string(req.ID) != c.id:
			t.Errorf("%s: id %q", c.line, req.ID)
		}
	}
	for _, line := range []string{`{"jsonrpc":"2.0","id":null,"error":{}}`, `{"jsonrpc":"2.0","method":"x","params":[1]}`, `{"id":1,"result":{}}`} {
		if _, err := Decode([]byte(line)); !errors.Is(err, ErrIgnored) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func FuzzDecodeTakesAnyLine(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"x"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}}`,
		`{"jsonrpc":"2.0","id":"a","result":{"outcome":{"outcome":"selected","optionId":"allow_once"}}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, `[]`, `{}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true},"session":{"notices":{}}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[{"name":"n","command":"c","args":[],"env":[]}]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		req, err := Decode(line)
		if err != nil {
			if r, ok := errors.AsType[*Refusal](err); ok {
				b, err := AppendReply(nil, protocol.Reply{ID: r.ID, Err: r.Err})
				if err != nil || !json.Valid(b) {
					t.Errorf("%s refused by %s: %v", line, b, err)
				}
			}
			return
		}
		if req.Answer != nil {
			_, _, _ = ReadPermission(req.Answer.Result)
			_ = ReadForm(req.Answer.Result)
			return
		}
		p := ReadParams(req.Params)
		_, _ = ReadInitialize(p)
		_, _ = ReadOpen(p, true)
		_, _ = ReadSetOption(p)
		if blocks, err := ReadBlocks(p); err == nil {
			Input(blocks)
		}
		b, err := AppendReply(nil, protocol.Reply{ID: req.ID})
		if err != nil || !json.Valid(b) {
			t.Errorf("%s answered by %s: %v", line, b, err)
		}
	})
}

func TestEveryErrorKindHasACode(t *testing.T) {
	for _, k := range []protocol.ErrorKind{protocol.ParseError, protocol.SessionNotFound, protocol.SessionBusy, protocol.TurnNotActive, protocol.IdempotencyConflict, RequestCancelled, protocol.ServerStopping} {
		if Code(k) == -32603 {
			t.Errorf("%s counts as our fault", k)
		}
	}
	if got := Snake("SessionNotFound"); got != "session_not_found" {
		t.Errorf("reason %q", got)
	}
}
