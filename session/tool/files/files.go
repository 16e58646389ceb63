// Package files holds the tools that read and write single files: read_file, write_file and edit_file (docs/protocol/rind-v2.md section 9).
// They touch files through session/roots only, hold a bounded part of a file in memory, and own no goroutine. What a writing tool replaces
// is kept first (session.Images), so that it can be undone.
package files

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

// open opens the folders a call may touch. The caller closes them.
func open(call session.ToolCall) (*roots.Roots, error) {
	r, err := roots.Open(call.Roots...)
	if err != nil {
		return nil, err
	}
	r.Allow(call.Outside...)
	return r, nil
}

// decode reads the arguments of a call. Numbers go into float64 fields: 1.0 is an integer, too.
func decode(call session.ToolCall, into any) (refused session.ToolResult, ok bool) {
	if err := json.Unmarshal(call.Arguments, into); err != nil {
		return invalid("Invalid arguments for %s: %v.", call.Name, err), false
	}
	return session.ToolResult{}, true
}

func invalid(format string, args ...any) session.ToolResult {
	return session.ToolResult{Status: protocol.ToolRejected, ErrorType: protocol.ErrInvalidArguments, Error: fmt.Sprintf(format, args...)}
}

func failed(errorType, format string, args ...any) session.ToolResult {
	return session.ToolResult{Status: protocol.ToolFailed, ErrorType: errorType, Error: fmt.Sprintf(format, args...)}
}

// refusal is the result for a path that cannot be used; an error that is none of the path's comes back as it is.
func refusal(err error) (session.ToolResult, error) {
	e, ok := errors.AsType[*roots.PathError](err)
	if !ok {
		return session.ToolResult{}, err
	}
	status, errorType := e.Outcome()
	return session.ToolResult{Status: status, ErrorType: errorType, Error: e.Text}, nil
}
