// Package files holds the tools that read and write single files: read_file, write_file and edit_file (docs/protocol/rind-v2.md section 9).
// They touch files through session/roots only, hold a bounded part of a file in memory, and own no goroutine. What a writing tool replaces
// is kept first (session.Images), so that it can be undone.
package files

import (
	"fmt"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

func failed(errorType, format string, args ...any) session.ToolResult {
	return session.ToolResult{Status: protocol.ToolFailed, ErrorType: errorType, Error: fmt.Sprintf(format, args...)}
}

// notText refuses a file that is no text.
func notText(format string, args ...any) session.ToolResult {
	return session.ToolResult{Status: protocol.ToolRejected, ErrorType: protocol.ErrInvalidArguments, Error: fmt.Sprintf(format, args...)}
}
