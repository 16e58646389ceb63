package rindv2

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
)

// AppendReply adds the answer to a request, without a line end. It fails only on results that cannot be encoded, and then adds nothing.
func AppendReply(dst []byte, env Envelope, r protocol.Reply) ([]byte, error) {
	start := len(dst)
	if env == JSONRPC {
		dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	} else {
		dst = append(dst, `{"kind":"response","request_id":`...)
	}
	if r.ID == nil {
		dst = append(dst, "null"...)
	}
	dst = append(dst, r.ID...)
	if r.Err != nil {
		out, err := appendError(append(dst, `,"error":`...), env, r.Err)
		if err != nil {
			return dst[:start], fmt.Errorf("encode error %s: %w", r.Err.Kind, err)
		}
		return append(out, '}'), nil
	}
	res, ok := r.Result.(json.RawMessage)
	if !ok {
		var err error
		if res, err = protocol.Marshal(r.Result); err != nil {
			return dst[:start], fmt.Errorf("encode result: %w", err)
		}
	}
	dst = appendJSON(append(dst, `,"result":`...), res)
	return append(dst, '}'), nil
}

// AppendCall adds a request of ours to the client (docs/protocol/rind-v2.md section 4.10), without a line end.
func AppendCall(dst []byte, env Envelope, c protocol.Call) []byte {
	if env == JSONRPC {
		dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	} else {
		dst = append(dst, `{"kind":"request","request_id":`...)
	}
	dst = protocol.AppendString(dst, c.ID)
	dst = protocol.AppendString(append(dst, `,"method":`...), c.Method)
	dst = append(dst, `,"params":`...)
	if c.Params == nil {
		dst = append(dst, "{}"...)
	}
	dst = appendJSON(dst, c.Params)
	return append(dst, '}')
}

// AppendWithdrawal adds what takes a call of ours back, without a line end. rind v2 has no such message: ok is false and nothing is added.
func AppendWithdrawal(dst []byte, env Envelope, callID string) (_ []byte, ok bool) {
	if env != JSONRPC {
		return dst, false
	}
	dst = append(dst, `{"jsonrpc":"2.0","method":"`+MethodCancelRequest+`","params":{"id":`...)
	return append(protocol.AppendString(dst, callID), "}}"...), true
}

// AppendEvent adds an event line, without its line end; the event object is spliced as it is stored. Lines of executions name these, lines
// of a login name nothing, all others session and turn.
func AppendEvent(dst []byte, env Envelope, e *protocol.Envelope) []byte {
	method := e.Method
	if method == "" {
		method = MethodUpdate
	}
	if env == JSONRPC {
		dst = append(append(dst, `{"jsonrpc":"2.0","method":"`...), method...)
		dst = append(dst, `","params":{"sequence":`...)
	} else {
		dst = append(append(dst, `{"kind":"event","method":"`...), method...)
		dst = append(dst, `","sequence":`...)
	}
	dst = strconv.AppendInt(dst, e.Sequence, 10)
	switch method {
	case MethodExecution:
		dst = protocol.AppendString(append(dst, `,"execution_id":`...), e.Execution)
	case MethodAuthUpdate:
	default:
		dst = appendPlace(dst, e)
	}
	dst = appendJSON(append(dst, `,"event":`...), e.Event)
	dst = append(dst, '}')
	if env == JSONRPC {
		dst = append(dst, '}')
	}
	return dst
}

// appendPlace adds what a session's event line says of its event.
func appendPlace(dst []byte, e *protocol.Envelope) []byte {
	if e.Durable {
		dst = append(dst, `,"durability":"durable"`...)
	} else {
		dst = append(dst, `,"durability":"incremental"`...)
	}
	dst = protocol.AppendString(append(dst, `,"session_id":`...), string(e.Session))
	dst = protocol.AppendString(append(dst, `,"turn_id":`...), string(e.Turn))
	if e.Cursor > 0 {
		dst = strconv.AppendInt(append(dst, `,"cursor":`...), int64(e.Cursor), 10)
	}
	if e.TaskCursor > 0 {
		dst = strconv.AppendInt(append(dst, `,"task_cursor":`...), int64(e.TaskCursor), 10)
	}
	return dst
}

// appendJSON adds JSON that others wrote. It is copied as it is, unless it holds what a line of ours must not: bytes that are not UTF-8,
// or raw U+2028, U+2029 and line ends. All but the last stand in strings only, so that their escapes mean the same; a line end is
// white space there.
func appendJSON(dst []byte, j json.RawMessage) []byte {
	if fitsALine(j) {
		return append(dst, j...)
	}
	for i := 0; i < len(j); {
		r, size := utf8.DecodeRune(j[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, `\ufffd`...)
		case r == '\u2028':
			dst = append(dst, `\u2028`...)
		case r == '\u2029':
			dst = append(dst, `\u2029`...)
		case r == '\n' || r == '\r':
			dst = append(dst, ' ')
		default:
			dst = append(dst, j[i:i+size]...)
		}
		i += size
	}
	return dst
}

func fitsALine(j []byte) bool {
	return utf8.Valid(j) && bytes.IndexByte(j, '\n') < 0 && bytes.IndexByte(j, '\r') < 0 && !separates(j)
}

// Written is how many bytes JSON that others wrote takes in a line of ours.
func Written(j json.RawMessage) int {
	if fitsALine(j) {
		return len(j)
	}
	return len(appendJSON(nil, j))
}

// separates reports whether j holds a raw U+2028 or U+2029.
func separates(j []byte) bool {
	for {
		i := bytes.IndexByte(j, 0xE2)
		if i < 0 || i+2 >= len(j) {
			return false
		}
		if j[i+1] == 0x80 && (j[i+2] == 0xA8 || j[i+2] == 0xA9) {
			return true
		}
		j = j[i+1:]
	}
}
