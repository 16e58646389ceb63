package acp

import (
	"encoding/json"
	"errors"

	"github.com/rind-dev/rind/protocol"
)

// ErrIgnored is a line that gets no answer: an answer to nothing.
var ErrIgnored = errors.New("line needs no answer")

// Decode reads one line, which is not kept: a request, a notification (ID nil) or an answer to a call of ours. Id and params are as they were
// sent; member names are exact and the last of duplicates wins. The error is a *Refusal by the first check that fails, or ErrIgnored
// (docs/protocol/acp.md section 6, J1 to J7). Whether the method is known, and what depends on the connection, is the caller's to check.
func Decode(line []byte) (protocol.Request, error) {
	if !protocol.Valid(line) {
		return protocol.Request{}, refuse(nil, protocol.ParseError, "The line is not valid JSON.")
	}
	if !protocol.IsObject(line) {
		return protocol.Request{}, refuse(nil, BadMessage, "A message is a JSON object; batches are not supported.")
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(line, &m); err != nil {
		return protocol.Request{}, refuse(nil, protocol.ParseError, "The line is not valid JSON.")
	}
	id, hasID := m["id"]
	version, _ := protocol.Text(m["jsonrpc"])
	if m["method"] == nil && (m["result"] != nil || m["error"] != nil) { // an answer is never answered, not even a wrong one
		if version != "2.0" || !protocol.IsID(id) {
			return protocol.Request{}, ErrIgnored
		}
		return protocol.Request{Answer: answer(id, m["result"], m["error"])}, nil
	}
	if version != "2.0" {
		return protocol.Request{}, refuse(echo(id), BadMessage, "The member jsonrpc must be \"2.0\".")
	}
	if hasID && !protocol.IsID(id) {
		return protocol.Request{}, refuse(nil, BadMessage, "The id of a request is a string or a number.")
	}
	method, ok := protocol.Text(m["method"])
	if !ok || method == "" {
		return protocol.Request{}, refuse(echo(id), BadMessage, "The member method must be a string.")
	}
	params := m["params"]
	switch {
	case isNull(params):
		params = nil
	case params[0] != '{':
		if !hasID {
			return protocol.Request{}, ErrIgnored
		}
		return protocol.Request{}, refuse(id, protocol.InvalidRequest, "The params must be an object.")
	}
	return protocol.Request{ID: id, Method: method, Params: params}, nil
}

func echo(id json.RawMessage) json.RawMessage {
	if protocol.IsID(id) {
		return id
	}
	return nil
}

func isNull(v json.RawMessage) bool { return len(v) == 0 || v[0] == 'n' }

func answer(id, result, fault json.RawMessage) *protocol.Answer {
	a := &protocol.Answer{ID: id}
	if isNull(fault) {
		a.Result = result
		return a
	}
	a.Err = &protocol.Error{Kind: protocol.InternalError, Message: "The client answered with an error."}
	var e struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(fault, &e) == nil {
		if e.Message != "" {
			a.Err.Message = e.Message
		}
		a.Err.Details = map[string]any{"code": e.Code}
	}
	return a
}
