package acp

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/rind-dev/rind/protocol"
)

// Kinds of errors that only this dialect has.
const (
	BadMessage       protocol.ErrorKind = "BadMessage"       // JSON, but no message
	RequestCancelled protocol.ErrorKind = "RequestCancelled" // by $/cancel_request
	AuthRequired     protocol.ErrorKind = "AuthRequired"     // no usable credentials
)

// codes is the one table from error kinds to the codes of docs/protocol/acp.md section 2.0. What is not in it is our fault: -32603.
var codes = map[protocol.ErrorKind]int{
	protocol.ParseError:            -32700,
	BadMessage:                     -32600,
	protocol.ServerNotReady:        -32600,
	protocol.MethodNotFound:        -32601,
	protocol.UnsupportedOperation:  -32601,
	protocol.InvalidRequest:        -32602,
	protocol.Unsupported:           -32602,
	protocol.NotFound:              -32602,
	AuthRequired:                   -32000,
	protocol.ConfigurationError:    -32000,
	protocol.SessionNotFound:       -32002,
	NoResource:                     -32002,
	OutsideWorkspace:               -32602,
	RequestCancelled:               -32800,
	protocol.SessionBusy:           -32050,
	protocol.Overloaded:            -32050,
	protocol.TurnActive:            -32050,
	protocol.InputTooLong:          -32050, // its bound is one with that of the queue (section 4)
	protocol.InputQueueFull:        -32050,
	protocol.Unavailable:           -32050,
	protocol.IdempotencyConflict:   -32051,
	protocol.Conflict:              -32051,
	protocol.TurnNotActive:         -32052,
	protocol.InputNotPending:       -32052,
	protocol.ActionNotFound:        -32052,
	protocol.ActionAlreadyResolved: -32052,
	protocol.QuestionNotFound:      -32052,
	protocol.ServerStopping:        -32053,
	protocol.ProviderError:         -32603,
	protocol.PersistenceError:      -32603,
	protocol.RequestFailed:         -32603,
	protocol.TaskNotOwned:          -32603,
	protocol.ShutdownFailed:        -32603,
	protocol.InternalError:         -32603,
}

// Code is the code of an error of kind k.
func Code(k protocol.ErrorKind) int {
	if c, ok := codes[k]; ok {
		return c
	}
	return -32603
}

// wireError is the error member of an answer.
type wireError struct {
	Code    int            `json:"code"`
	Message string         `json:"message"`
	Data    map[string]any `json:"data,omitempty"`
}

// toWire makes the wire form of e: data.reason is its kind in snake_case, or what Details say.
func toWire(e *protocol.Error) wireError {
	data := map[string]any{"reason": Snake(string(e.Kind))}
	for k, v := range e.Details {
		switch k {
		case "error_id":
			data["ref"] = v
		default:
			data[k] = v
		}
	}
	return wireError{Code(e.Kind), e.Message, data}
}

// Snake writes a CamelCase word in snake_case.
func Snake(word string) string {
	var b strings.Builder
	for i, r := range word {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Refusal is a line that is no request, and how it is answered. ID is nil where the answer's id is null.
type Refusal struct {
	ID  json.RawMessage
	Err *protocol.Error
}

func (r *Refusal) Error() string { return r.Err.Error() }

func refuse(id json.RawMessage, k protocol.ErrorKind, text string) *Refusal {
	return &Refusal{ID: id, Err: &protocol.Error{Kind: k, Message: text}}
}
