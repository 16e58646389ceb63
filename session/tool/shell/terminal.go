package shell

import (
	"context"
	"fmt"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

// terminalOutput is how much of a command's output an editor's terminal is asked to keep.
const terminalOutput = 256 << 10

// inTerminal runs the command in a terminal of the editor that asked for the turn, to its end; false when no terminal took it. There it has no
// sandbox, and nothing of it goes on in the background: who sets clientTerminal wants to see it run.
func (f *foreground) inTerminal(ctx context.Context, call session.ToolCall) (session.ToolResult, bool) {
	f.before = f.roots.Snapshot(ctx, roots.DefaultSnapshot)
	env := map[string]string{}
	for name, value := range set {
		if name != "TERM" { // it is a terminal
			env[name] = value
		}
	}
	f.started = time.Now()
	ran, ok := call.Editor.Terminal.Run(ctx, session.TerminalCommand{
		Call: call.ID, Program: f.tool.shell.path, Args: append(f.tool.shell.args[:len(f.tool.shell.args):len(f.tool.shell.args)], f.request.command),
		Dir: f.cwd, Env: env, Limit: f.limit, Most: terminalOutput,
	})
	if !ok {
		f.before = nil
		return session.ToolResult{}, false
	}
	f.output = newOutput(f.createOutput)
	_, _ = f.output.writer(stdout).Write([]byte(ran.Output))
	f.output.close()
	v := f.output.shown()
	res := session.ToolResult{Meta: f.meta(v), Touched: f.touched(context.WithoutCancel(ctx))}
	res.Meta["terminal"] = "editor"
	if ran.Truncated {
		res.Meta["truncated"] = true
	}
	status := protocol.ToolCompleted
	switch {
	case ran.Lost:
		status = protocol.ToolUnknown
		res.Status, res.ErrorType = status, protocol.ErrToolOutcomeUnknown
		res.Error = "The editor's terminal stopped answering: whether the command ended, and how, is not known."
	case ctx.Err() != nil:
		status = protocol.ToolCancelled
		res.Status, res.ErrorType, res.Error = status, protocol.ErrCancelled, "The command was cancelled; data holds what it wrote until then."
	case ran.TimedOut:
		status = protocol.ToolTimedOut
		res.Status, res.ErrorType = status, protocol.ErrTimedOut
		res.Error = fmt.Sprintf("The command did not end within %d ms and was ended; data holds what it wrote until then.", f.limit.Milliseconds())
	case ran.Exit != 0 || ran.Signal != "":
		status = protocol.ToolFailed
	}
	if ran.Signal != "" {
		res.Meta["note"] = "It was ended by signal " + protocol.Prefix(ran.Signal, 40) + "."
	}
	res.Data = f.told(status, ran.Exit, v)
	return res, true
}
