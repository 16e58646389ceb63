package rindv2

import (
	"bytes"
	"encoding/json"

	"github.com/rind-dev/rind/protocol"
)

// The texts of docs/protocol/rind-v2.md section 2, in the order of its table.
const (
	TextLineTooLong    = "Request line exceeds 16777216 bytes."
	TextNotUTF8        = "Request is not valid UTF-8."
	TextTooDeep        = "Request nesting exceeds 1000 levels."
	TextNotJSON        = "Invalid JSON request."
	TextNotObject      = "Request must be an object."
	TextKind           = `kind must be "request".`
	TextIDRequired     = "request_id is required."
	TextIDEmpty        = "request_id must not be empty."
	TextIDType         = "request_id must be a string or number."
	TextMethodRequired = "method is required."
	TextParams         = "params must be an object."
	TextDuplicateID    = "request_id is already in flight."
	TextStopping       = "Runtime is shutting down."
	TextNotReady       = "Runtime worker is not initialized."
	TextOverloaded     = "Too many requests in flight (maximum 64)."

	// Of JSON-RPC in place of kind and the request_id rules.
	TextVersion    = `jsonrpc must be "2.0".`
	TextRPCIDType  = "id must be a string or number."
	TextBadHeaders = "Header block has no valid Content-Length."
)

// Bounds of what one connection may have open (docs/protocol/rind-v2.md section 2).
const (
	MaxInFlight   = 64
	retryAfterMS  = 1000
	maxMethodName = 200 // characters of an unknown name that are told back
)

// Refusal is a frame that is no request. ID is what the answer echoes, nil for null.
type Refusal struct {
	ID  json.RawMessage
	Err *protocol.Error
}

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns the error the client is told.
func (r *Refusal) Unwrap() error { return r.Err }

// FrameFault is the refusal of a frame that cannot be read; text is one of the first five of the table.
func FrameFault(text string) *Refusal {
	return &Refusal{Err: &protocol.Error{Kind: protocol.ParseError, Message: text}}
}

// invalid refuses an envelope, echoing the id as it was sent. What is no scalar loses its white space, which could hold a line end.
func invalid(id json.RawMessage, text string) *Refusal {
	if len(id) > 0 && (id[0] == '{' || id[0] == '[') {
		var tight bytes.Buffer
		if json.Compact(&tight, id) == nil {
			id = tight.Bytes()
		}
	}
	return &Refusal{ID: bytes.Clone(id), Err: badEnvelope(text)}
}

// badEnvelope is an InvalidRequest of the envelope, which JSON-RPC tells from one of params by its code. Details that are there but
// empty are the mark; they show nothing.
func badEnvelope(text string) *protocol.Error {
	return &protocol.Error{Kind: protocol.InvalidRequest, Message: text, Details: map[string]any{}}
}

// The refusals of the table that need the connection's state.

// DuplicateID refuses an id that is still in flight; the first request goes on.
func DuplicateID() *protocol.Error { return badEnvelope(TextDuplicateID) }

// Stopping refuses what is read after the end began.
func Stopping() *protocol.Error {
	return &protocol.Error{Kind: protocol.ServerStopping, Message: TextStopping}
}

// NotReady refuses what is read before initialize.
func NotReady() *protocol.Error {
	return &protocol.Error{Kind: protocol.ServerNotReady, Message: TextNotReady}
}

// UnknownMethod refuses a method nobody serves.
func UnknownMethod(name string) *protocol.Error {
	return protocol.Errorf(protocol.MethodNotFound, "Unknown method: %s", protocol.Prefix(name, maxMethodName))
}

// SessionRequired refuses what names no session where one is needed, or names it by what is no text.
func SessionRequired() *protocol.Error { return Bad("session_id is required for this method.") }

// SessionNotFound refuses what names a session that is not there, or not any more.
func SessionNotFound(id protocol.SessionID) *protocol.Error {
	return protocol.Errorf(protocol.SessionNotFound, "Session not found: %s", id)
}

// Overloaded refuses one request too many.
func Overloaded() *protocol.Error {
	return &protocol.Error{Kind: protocol.Overloaded, Message: TextOverloaded, Details: map[string]any{"retry_after_ms": retryAfterMS}}
}
