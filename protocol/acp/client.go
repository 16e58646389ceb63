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
	return protocol.Text(ReadParams(object(result))["content"])
}

// TerminalRequest are the params of terminal/create.
type TerminalRequest struct {
	Session protocol.SessionID `json:"sessionId"`
	Command string             `json:"command"`
	Args    []string           `json:"args"`
	Env     []Pair             `json:"env"`
	CWD     string             `json:"cwd"`
	Most    int                `json:"outputByteLimit"`
}

// TerminalNamed are the params of the other methods of terminals.
type TerminalNamed struct {
	Session  protocol.SessionID `json:"sessionId"`
	Terminal string             `json:"terminalId"`
}

// ReadTerminalID reads the answer to terminal/create; "" where it names none.
func ReadTerminalID(result json.RawMessage) string {
	id, _ := protocol.Text(ReadParams(object(result))["terminalId"])
	return id
}

// ReadTerminalOutput reads the answer to terminal/output.
func ReadTerminalOutput(result json.RawMessage) (output string, truncated bool) {
	p := ReadParams(object(result))
	output, _ = protocol.Text(p["output"])
	return output, isTrue(p["truncated"])
}

// ReadTerminalExit reads the answer to terminal/wait_for_exit; code is -1 where it is not told.
func ReadTerminalExit(result json.RawMessage) (code int, signal string) {
	p := ReadParams(object(result))
	if p["exitCode"] == nil || json.Unmarshal(p["exitCode"], &code) != nil {
		code = -1
	}
	signal, _ = protocol.Text(p["signal"])
	return code, signal
}

// InTerminal is the update that shows a terminal of the client in a call.
func InTerminal(callID, terminal string) json.RawMessage {
	return protocol.MustMarshal(Call{ToolCallUpdate, CallUpdate{ID: callID, Status: StatusInProgress, Content: []CallContent{{Terminal: terminal}}}})
}
