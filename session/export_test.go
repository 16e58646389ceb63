package session

import "context"

// RunTool runs a tool as the loop does once its start is on disk.
func RunTool(ctx context.Context, l *Loop, t *Turn, tool Tool, call ToolCall) (ToolResult, error) {
	return (&work{Loop: l, t: t}).run(ctx, tool, call)
}
