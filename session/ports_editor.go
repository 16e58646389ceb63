package session

import (
	"context"
	"time"
)

// Editor is what the client that asked for a turn does for its tools (docs/protocol/acp.md section 2.7). A nil member is not offered. It holds
// for the turns that client asks for: what others start works on the disk and in processes of our own.
type Editor struct {
	Files    EditorFiles
	Terminal EditorTerminal
}

// EditorFiles are files as they stand in an editor's buffers. Paths are absolute, links resolved, and checked before. Safe for concurrent use.
type EditorFiles interface {
	// ReadFile returns the whole text of a file; false when the editor does not give it: what is on disk counts.
	ReadFile(ctx context.Context, path string) (text string, ok bool)
	// WriteFile gives the editor the whole text of a file; false when it does not take it: it is to be written to disk.
	WriteFile(ctx context.Context, path, text string) bool
}

// TerminalCommand is a command for an editor's terminal.
type TerminalCommand struct {
	Call    string // id of the tool call it belongs to
	Program string // absolute
	Args    []string
	Dir     string            // absolute
	Env     map[string]string // beside the editor's own
	Limit   time.Duration     // after which it is ended
	Most    int               // bytes of output that are kept, the last ones
}

// TerminalResult is how it ended.
type TerminalResult struct {
	Output    string
	Truncated bool   // the beginning is missing
	Exit      int    // -1 where it is not known
	Signal    string // that ended it; "" for none
	TimedOut  bool   // it was ended because its time was up
	Lost      bool   // the editor stopped answering: nothing is known of its end
}

// EditorTerminal runs commands in an editor's terminals. Safe for concurrent use.
type EditorTerminal interface {
	// Run runs a command to its end; false when the editor did not start it. Where ctx ends it is ended, and the result tells what it wrote.
	Run(ctx context.Context, c TerminalCommand) (TerminalResult, bool)
}

// Editor is what the client that asked for the turn does for its tools.
func (t *Turn) Editor() Editor {
	if t.prompt == nil {
		return Editor{}
	}
	return t.prompt.req.Editor
}
