package rindv2

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// Methods whose names the envelope itself has to know.
const (
	MethodAuthPrompt    = "rind/auth/prompt" // a call of ours; rind v2 answers it with a request of the same name
	MethodCancelRequest = "$/cancel_request" // a notification of JSON-RPC
	methodCancel        = "session/cancel"   // may be one
	MethodUpdate        = "session/update"   // event lines
	MethodExecution     = "execution/event"  // event lines of executions
	MethodAuthUpdate    = "rind/auth/update" // event lines of a login
)

// envelope holds the members of a frame that matter, raw; those that are absent are nil.
type envelope struct {
	kind, version, id, method, params, result, err json.RawMessage
}

// read takes the members of a valid object: exact names, the last of duplicates wins, unknown ones are ignored.
func (m *envelope) read(obj []byte, env Envelope) {
	for name, v := range protocol.Members(obj) {
		switch string(name) {
		case "kind":
			m.kind = v
		case "jsonrpc":
			m.version = v
		case "request_id":
			if env == Rind {
				m.id = v
			}
		case "id":
			if env == JSONRPC {
				m.id = v
			}
		case "method":
			m.method = v
		case "params":
			m.params = v
		case "result":
			m.result = v
		case "error":
			m.err = v
		}
	}
}

// Decode reads one frame, which must be valid UTF-8 and of bounded depth; it is not kept. The request has its id and params as they were
// sent, or is an Answer to a call of ours. The error is a *Refusal, by the first check of docs/protocol/rind-v2.md section 2 that fails, or
// ErrIgnored. Duplicate ids, unknown methods and all that depends on the connection's state are the caller's to check.
func Decode(env Envelope, frame []byte) (protocol.Request, error) {
	if !protocol.Valid(frame) {
		return protocol.Request{}, FrameFault(TextNotJSON)
	}
	if !protocol.IsObject(frame) {
		if env == JSONRPC {
			return protocol.Request{}, invalid(nil, TextNotObject) // a batch, or a value that is no message: -32600
		}
		return protocol.Request{}, FrameFault(TextNotObject)
	}
	var m envelope
	m.read(frame, env)
	if env == JSONRPC {
		return m.rpc()
	}
	return m.rind()
}

func (m *envelope) rind() (protocol.Request, error) {
	if kind, ok := protocol.Text(m.kind); !ok || kind != "request" {
		return protocol.Request{}, invalid(m.id, TextKind)
	}
	switch {
	case m.id == nil, m.id[0] == 'n', m.id[0] == 't', m.id[0] == 'f':
		return protocol.Request{}, invalid(m.id, TextIDRequired)
	case m.id[0] == '{', m.id[0] == '[':
		return protocol.Request{}, invalid(m.id, TextIDType)
	case m.id[0] == '"':
		if s, _ := protocol.Text(m.id); strings.TrimSpace(s) == "" {
			return protocol.Request{}, invalid(m.id, TextIDEmpty)
		}
	}
	req, err := m.request(m.id)
	if err == nil && req.Method == MethodAuthPrompt { // nobody asks this of us
		value := json.RawMessage("{}")
		if req.Params != nil {
			value = req.Params
		}
		return protocol.Request{Answer: &protocol.Answer{ID: req.ID, Result: value}}, nil
	}
	return req, err
}

func (m *envelope) rpc() (protocol.Request, error) {
	version, ok := protocol.Text(m.version)
	current := ok && version == "2.0"
	if m.method == nil && (m.result != nil || m.err != nil) { // an answer is never answered, not even a wrong one
		if !current || !protocol.IsID(m.id) {
			return protocol.Request{}, ErrIgnored
		}
		return protocol.Request{Answer: m.answer()}, nil
	}
	switch {
	case !current:
		id := m.id
		if !protocol.IsID(id) {
			id = nil
		}
		return protocol.Request{}, invalid(id, TextVersion)
	case m.id == nil: // a notification
		req, err := m.request(nil)
		if err != nil || req.Method != methodCancel && req.Method != MethodCancelRequest {
			return protocol.Request{}, ErrIgnored
		}
		return req, nil
	case !protocol.IsID(m.id):
		return protocol.Request{}, invalid(nil, TextRPCIDType)
	}
	return m.request(m.id)
}

// request checks method and params.
func (m *envelope) request(id json.RawMessage) (protocol.Request, error) {
	method, ok := protocol.Text(m.method)
	if !ok || strings.TrimSpace(method) == "" {
		return protocol.Request{}, invalid(id, TextMethodRequired)
	}
	params := m.params
	switch {
	case params == nil, params[0] == 'n':
		params = nil
	case params[0] != '{':
		return protocol.Request{}, invalid(id, TextParams)
	}
	return protocol.Request{ID: bytes.Clone(id), Method: method, Params: bytes.Clone(params)}, nil
}

func (m *envelope) answer() *protocol.Answer {
	a := &protocol.Answer{ID: bytes.Clone(m.id)}
	if m.err == nil || m.err[0] == 'n' {
		a.Result = bytes.Clone(m.result)
		return a
	}
	a.Err = &protocol.Error{Kind: protocol.InternalError, Message: "The client answered with an error."}
	if m.err[0] != '{' {
		return a
	}
	for name, v := range protocol.Members(m.err) {
		switch string(name) {
		case "message":
			if s, ok := protocol.Text(v); ok && s != "" {
				a.Err.Message = s
			}
		case "data":
			if kind, ok := protocol.Text(protocol.Member(v, "type")); ok && known(protocol.ErrorKind(kind)) {
				a.Err.Kind = protocol.ErrorKind(kind)
			}
		}
	}
	return a
}

// SniffEnvelope says which envelope a connection speaks by its first frame: an object with a member jsonrpc is JSON-RPC.
func SniffEnvelope(frame []byte) Envelope {
	if !protocol.Valid(frame) || !protocol.IsObject(frame) {
		return Rind
	}
	var m envelope
	m.read(frame, JSONRPC)
	if m.version != nil {
		return JSONRPC
	}
	return Rind
}

// ErrIgnored is a frame that gets no answer: an answer to nothing, or a notification nobody asked for.
var ErrIgnored = errors.New("frame needs no answer")
