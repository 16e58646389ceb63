package acp

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/rind-dev/rind/protocol"
)

// AppendReply adds the line of an answer to dst, without its newline. It fails only when the result does not marshal.
func AppendReply(dst []byte, r protocol.Reply) ([]byte, error) {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if r.ID == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, r.ID...)
	}
	name, value := `,"result":`, r.Result
	if r.Err != nil {
		name, value = `,"error":`, toWire(r.Err)
	}
	j, err := protocol.Marshal(value)
	if err != nil {
		return dst, fmt.Errorf("encode answer: %w", err)
	}
	if r.Err == nil && string(j) == "null" { // an empty result is an object
		j = json.RawMessage("{}")
	}
	return append(append(append(dst, name...), j...), '}'), nil
}

// AppendUpdate adds the line of one session/update to dst, without its newline. With cursor, every fact up to it has been told.
func AppendUpdate(dst []byte, id protocol.SessionID, update json.RawMessage, cursor protocol.Seq) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":`...)
	dst = protocol.AppendString(dst, string(id))
	dst = append(append(dst, `,"update":`...), update...)
	if cursor > 0 {
		dst = append(dst, `,"_meta":{"rind/cursor":`...)
		dst = append(protocol.AppendString(dst, CursorText(cursor)), '}')
	}
	return append(dst, "}}"...)
}

// AppendCall adds the line of a call of ours, whose id is a decimal number, without its newline.
func AppendCall(dst []byte, c protocol.Call) []byte {
	dst = append(append(dst, `{"jsonrpc":"2.0","id":`...), c.ID...)
	dst = protocol.AppendString(append(dst, `,"method":`...), c.Method)
	return append(append(append(dst, `,"params":`...), c.Params...), '}')
}

// AppendWithdrawal adds the line that takes a call of ours back.
func AppendWithdrawal(dst []byte, callID string) []byte {
	return append(append(append(dst, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":`...), callID...), "}}"...)
}

// CursorText is a cursor as clients see it: opaque to them.
func CursorText(seq protocol.Seq) string { return strconv.FormatInt(int64(seq), 10) }

// ParseCursor reads a cursor.
func ParseCursor(s string) (protocol.Seq, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || CursorText(protocol.Seq(n)) != s {
		return 0, &protocol.Error{Kind: protocol.InvalidRequest, Message: "The cursor is not one of ours."}
	}
	return protocol.Seq(n), nil
}
