package acp

import (
	"encoding/json"

	"github.com/rind-dev/rind/protocol"
)

// FileRequest are the params of fs/read_text_file and, with Content, of fs/write_text_file.
type FileRequest struct {
	Session protocol.SessionID `json:"sessionId"`
	Path    string             `json:"path"` // absolute
	Content *string            `json:"content,omitempty"`
}

// ReadFileText reads the answer to fs/read_text_file.
func ReadFileText(result json.RawMessage) (string, bool) {
	return text(ReadParams(object(result))["content"])
}
