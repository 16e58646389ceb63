package rindv2

import (
	"maps"
	"slices"
	"strconv"

	"github.com/rind-dev/rind/protocol"
)

// RequestCancelled ends a JSON-RPC request that $/cancel_request took back. rind v2 has no such request.
const RequestCancelled protocol.ErrorKind = "RequestCancelled"

// Codes of JSON-RPC (docs/protocol/jsonrpc.md).
const (
	codeParse      = -32700
	codeEnvelope   = -32600
	codeMethod     = -32601
	codeParams     = -32602
	codeInternal   = -32603
	codeNotReady   = -32002
	codeCancelled  = -32800
	codeEverything = -32000 // told apart by data.type
)

// codes is the one table from kinds of errors to errors of the wire; rind v2 shows the kind itself as type (section 12).
var codes = map[protocol.ErrorKind]int{
	protocol.ParseError:            codeParse,
	protocol.InvalidRequest:        codeParams, // of an envelope: codeEnvelope
	protocol.MethodNotFound:        codeMethod,
	protocol.UnsupportedOperation:  codeEverything,
	protocol.Conflict:              codeEverything,
	protocol.Unsupported:           codeEverything,
	protocol.Unavailable:           codeEverything,
	protocol.ServerNotReady:        codeNotReady,
	protocol.ServerStopping:        codeEverything,
	protocol.ShutdownFailed:        codeEverything,
	protocol.Overloaded:            codeEverything,
	protocol.SessionNotFound:       codeEverything,
	protocol.SessionBusy:           codeEverything,
	protocol.TurnActive:            codeEverything,
	protocol.TurnNotActive:         codeEverything,
	protocol.InputTooLong:          codeEverything,
	protocol.InputQueueFull:        codeEverything,
	protocol.InputNotPending:       codeEverything,
	protocol.QuestionNotFound:      codeEverything,
	protocol.ActionNotFound:        codeEverything,
	protocol.ActionAlreadyResolved: codeEverything,
	protocol.NotFound:              codeEverything,
	protocol.TaskNotOwned:          codeEverything,
	protocol.IdempotencyConflict:   codeEverything,
	protocol.RequestFailed:         codeEverything,
	protocol.ConfigurationError:    codeEverything,
	protocol.ProviderError:         codeEverything,
	protocol.PersistenceError:      codeEverything,
	protocol.InternalError:         codeInternal,
	RequestCancelled:               codeCancelled,
}

func known(k protocol.ErrorKind) bool { _, ok := codes[k]; return ok }

// appendError adds the error object of an envelope: rind v2 {type,message,…details}, JSON-RPC {code,message,data:{type,…details}}.
// A kind outside of the table is told as InternalError: clients validate the set.
func appendError(dst []byte, env Envelope, e *protocol.Error) ([]byte, error) {
	kind := e.Kind
	code, ok := codes[kind]
	if !ok {
		kind, code = protocol.InternalError, codeInternal
	}
	if kind == protocol.InvalidRequest && e.Details != nil && len(e.Details) == 0 {
		code = codeEnvelope
	}
	if env == JSONRPC {
		dst = strconv.AppendInt(append(dst, `{"code":`...), int64(code), 10)
		dst = protocol.AppendString(append(dst, `,"message":`...), e.Message)
		dst = protocol.AppendString(append(dst, `,"data":{"type":`...), string(kind))
	} else {
		dst = protocol.AppendString(append(dst, `{"type":`...), string(kind))
		dst = protocol.AppendString(append(dst, `,"message":`...), e.Message)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Details)) {
		if name == "type" || name == "message" && env == Rind {
			continue // the kind and the text are not for details to change
		}
		v, err := protocol.Marshal(e.Details[name])
		if err != nil {
			return nil, err
		}
		dst = append(protocol.AppendString(append(dst, ','), name), ':')
		dst = appendJSON(dst, v)
	}
	if env == JSONRPC {
		dst = append(dst, '}')
	}
	return append(dst, '}'), nil
}
