// Package rindv2 is the codec of the rind v2 protocol (docs/protocol/rind-v2.md) and of its plain JSON-RPC twin (docs/protocol/jsonrpc.md):
// pure functions between frames and the words of package protocol. Both envelopes share methods, params, results and events.
package rindv2

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// Envelope is which of the two a connection speaks.
type Envelope uint8

// Envelopes.
const (
	Rind Envelope = iota
	JSONRPC
)

// Refusal is a frame that is no request. ID is what the answer echoes: nil for null.
type Refusal struct {
	ID  json.RawMessage
	Err *protocol.Error
}

func (r *Refusal) Error() string { return r.Err.Error() }

// ErrIgnored is a frame that gets no answer: an answer to a request of ours, or a notification nobody asked for.
var ErrIgnored = errors.New("frame needs no answer")

func parseError(text string) *Refusal {
	return &Refusal{Err: &protocol.Error{Kind: protocol.ParseError, Message: text}}
}

func invalid(id json.RawMessage, text string) *Refusal {
	return &Refusal{ID: id, Err: &protocol.Error{Kind: protocol.InvalidRequest, Message: text, Details: badEnvelope}}
}

// badEnvelope marks refusals of the envelope, which JSON-RPC tells from those of params by their code; it is never shown.
var badEnvelope = map[string]any{}

// FrameFault turns a fault of a frame into its refusal: text for the table of docs/protocol/rind-v2.md section 2.
func FrameFault(text string) *Refusal { return parseError(text) }

// members reads the top level of an object: exact names, the last of duplicates wins, values raw.
func members(frame []byte) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(frame))
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if tok != json.Delim('{') {
		return nil, errNotObject
	}
	m := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, err
		}
		m[key.(string)] = v // keys of an object are strings
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("trailing data")
	}
	return m, nil
}

var errNotObject = errors.New("not an object")

// Decode reads one request. The error is a *Refusal, checked in the order of docs/protocol/rind-v2.md section 2, or ErrIgnored.
func Decode(env Envelope, frame []byte) (protocol.Request, error) {
	if !json.Valid(frame) {
		return protocol.Request{}, parseError("Invalid JSON request.")
	}
	m, err := members(frame)
	if errors.Is(err, errNotObject) {
		if env == JSONRPC {
			return protocol.Request{}, invalid(nil, "Request must be an object.")
		}
		return protocol.Request{}, parseError("Request must be an object.")
	}
	if err != nil {
		return protocol.Request{}, parseError("Invalid JSON request.")
	}
	if env == JSONRPC {
		return decodeRPC(m)
	}
	return decodeRind(m)
}

func decodeRind(m map[string]json.RawMessage) (protocol.Request, error) {
	id := m["request_id"]
	if kind, ok := text(m["kind"]); !ok || kind != "request" {
		return protocol.Request{}, invalid(id, `kind must be "request".`)
	}
	if why := idFault(id, "request_id"); why != "" {
		return protocol.Request{}, invalid(id, why)
	}
	return methodAndParams(m, id)
}

func idFault(id json.RawMessage, name string) string {
	switch {
	case id == nil, string(id) == "null", string(id) == "true", string(id) == "false":
		return name + " is required."
	case id[0] == '{' || id[0] == '[':
		return name + " must be a string or number."
	case id[0] == '"':
		if s, _ := text(id); strings.TrimSpace(s) == "" {
			return name + " must not be empty."
		}
	}
	return ""
}

func methodAndParams(m map[string]json.RawMessage, id json.RawMessage) (protocol.Request, error) {
	method, ok := text(m["method"])
	if !ok || strings.TrimSpace(method) == "" {
		return protocol.Request{}, invalid(id, "method is required.")
	}
	params := m["params"]
	if string(params) == "null" {
		params = nil
	}
	if params != nil && params[0] != '{' {
		return protocol.Request{}, invalid(id, "params must be an object.")
	}
	return protocol.Request{ID: bytes.Clone(id), Method: method, Params: bytes.Clone(params)}, nil
}

func decodeRPC(m map[string]json.RawMessage) (protocol.Request, error) {
	id, has := m["id"]
	if v, ok := text(m["jsonrpc"]); !ok || v != "2.0" {
		return protocol.Request{}, invalid(scalar(id), `jsonrpc must be "2.0".`)
	}
	if _, call := m["method"]; !call && (m["result"] != nil || m["error"] != nil) {
		return protocol.Request{}, ErrIgnored
	}
	if !has { // a notification
		req, err := methodAndParams(m, nil)
		if err != nil || req.Method != "session/cancel" && req.Method != "$/cancel_request" {
			return protocol.Request{}, ErrIgnored
		}
		return req, nil
	}
	if id[0] == '{' || id[0] == '[' || string(id) == "null" || string(id) == "true" || string(id) == "false" {
		return protocol.Request{}, invalid(nil, "id must be a string or number.")
	}
	return methodAndParams(m, id)
}

func scalar(id json.RawMessage) json.RawMessage {
	if len(id) == 0 || id[0] == '{' || id[0] == '[' {
		return nil
	}
	return id
}

// text reads a JSON string.
func text(j json.RawMessage) (string, bool) {
	if len(j) == 0 || j[0] != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(j, &s) == nil
}

// AppendReply adds the line of a reply.
func AppendReply(dst []byte, env Envelope, r protocol.Reply) ([]byte, error) {
	id := r.ID
	if id == nil {
		id = json.RawMessage("null")
	}
	if env == JSONRPC {
		dst = append(append(dst, `{"jsonrpc":"2.0","id":`...), id...)
	} else {
		dst = append(append(dst, `{"kind":"response","request_id":`...), id...)
	}
	if r.Err != nil {
		e, err := protocol.Marshal(wireError(env, r.Err))
		if err != nil {
			return nil, err
		}
		dst = append(append(dst, `,"error":`...), e...)
		return append(dst, '}'), nil
	}
	res, ok := r.Result.(json.RawMessage)
	if !ok {
		var err error
		if res, err = protocol.Marshal(r.Result); err != nil {
			return nil, err
		}
	}
	dst = append(append(dst, `,"result":`...), res...)
	return append(dst, '}'), nil
}

// wireError is the one place where kinds of errors become errors of the wire.
func wireError(env Envelope, e *protocol.Error) any {
	if env == JSONRPC {
		data := map[string]any{"type": e.Kind}
		for k, v := range e.Details {
			data[k] = v
		}
		return struct {
			Code    int            `json:"code"`
			Message string         `json:"message"`
			Data    map[string]any `json:"data"`
		}{code(e), e.Message, data}
	}
	if len(e.Details) == 0 {
		return struct {
			Type    protocol.ErrorKind `json:"type"`
			Message string             `json:"message"`
		}{e.Kind, e.Message}
	}
	out := map[string]any{"type": e.Kind, "message": e.Message}
	for k, v := range e.Details {
		out[k] = v
	}
	return out
}

// code is the JSON-RPC code of an error (docs/protocol/jsonrpc.md).
func code(e *protocol.Error) int {
	switch e.Kind {
	case protocol.ParseError:
		return -32700
	case protocol.InvalidRequest:
		if e.Details != nil && len(e.Details) == 0 {
			return -32600
		}
		return -32602
	case protocol.MethodNotFound:
		return -32601
	case protocol.InternalError:
		return -32603
	case protocol.ServerNotReady:
		return -32002
	case RequestCancelled:
		return -32800
	default:
		return -32000
	}
}

// RequestCancelled ends a JSON-RPC request that $/cancel_request took back. rind v2 has no such request.
const RequestCancelled protocol.ErrorKind = "RequestCancelled"

// AppendEvent adds an event line; the event object is spliced as it is stored.
func AppendEvent(dst []byte, env Envelope, e *protocol.Envelope) []byte {
	method := e.Method
	if method == "" {
		method = "session/update"
	}
	if env == JSONRPC {
		dst = append(append(dst, `{"jsonrpc":"2.0","method":"`...), method...)
		dst = append(dst, `","params":{"sequence":`...)
	} else {
		dst = append(append(dst, `{"kind":"event","method":"`...), method...)
		dst = append(dst, `","sequence":`...)
	}
	dst = strconv.AppendInt(dst, e.Sequence, 10)
	if e.Durable {
		dst = append(dst, `,"durability":"durable"`...)
	} else {
		dst = append(dst, `,"durability":"incremental"`...)
	}
	dst = protocol.AppendString(append(dst, `,"session_id":`...), string(e.Session))
	dst = append(append(dst, `,"turn_id":"`...), e.Turn...)
	dst = append(dst, '"')
	if e.Cursor > 0 {
		dst = strconv.AppendInt(append(dst, `,"cursor":`...), int64(e.Cursor), 10)
	}
	if e.TaskCursor > 0 {
		dst = strconv.AppendInt(append(dst, `,"task_cursor":`...), int64(e.TaskCursor), 10)
	}
	dst = append(append(dst, `,"event":`...), e.Event...)
	dst = append(dst, '}')
	if env == JSONRPC {
		dst = append(dst, '}')
	}
	return dst
}

// EnvelopeOf is the envelope of a stored entry; ok is false when it is not told. Sequence is left to the writer.
func EnvelopeOf(id protocol.SessionID, e *protocol.Entry) (env protocol.Envelope, ok bool) {
	env = protocol.Envelope{Session: id, Turn: e.Turn, Event: e.Event}
	switch e.Told() {
	case protocol.Incremental:
	case protocol.Durable:
		env.Durable, env.Cursor = true, e.Seq
	case protocol.DurableTask:
		env.Durable, env.TaskCursor = true, e.Seq
	case protocol.NotTold:
		return env, false
	}
	return env, true
}

// SniffEnvelope says which envelope a connection speaks by its first frame: one with a member jsonrpc is JSON-RPC.
func SniffEnvelope(frame []byte) Envelope {
	if m, err := members(frame); err == nil && m["jsonrpc"] != nil {
		return JSONRPC
	}
	return Rind
}
