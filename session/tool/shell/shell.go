// Package shell holds the tool bash (docs/protocol/rind-v2.md section 9): it runs a command in the user's shell, in a process group of its
// own, with an empty standard input, in a sandbox where the system offers one. docs/containment.md says what the sandbox lets through and
// what becomes of processes.
//
// A command's output is made text once, before it is stored or shown; of it a bounded part is held in memory, and a bounded part in a file.
// A command that its call does not wait for goes on as a task: the call hands it to the session, which ends and closes it.
//
// The goroutines of a running command are session/proc's. The package owns one for each task: it awaits the end of the command, ends it
// when its time is up, and ends with it. A command that was not handed off is ended before Run comes back.
package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/roots"
)

// Config is what the tool is made of. Children is needed, the rest may be left out.
type Config struct {
	Children *proc.Children
	// Images keep what files held before a command changed them; nil keeps nothing.
	Images session.Images
	// Outputs is the folder for a session's output that is too long to show; nil keeps none.
	Outputs func(id session.SessionID) string
	// Private are folders no command reads or writes, where there is a sandbox: the data folder, the folder of sessions. Absolute.
	Private []string
	// Mode is ModeAuto or ModeOff; "" is ModeAuto.
	Mode string
	// Secrets reports variables that commands do not get, beside those whose name says so (environ.go).
	Secrets func(name, value string) bool
	// Environ is the user's environment; nil is this process's.
	Environ func() []string
	// MaxTime is how long a command may take while its call waits for it; 0 is 10 minutes. A task may take longer.
	MaxTime time.Duration

	began func(*proc.Process) // told of each command that was started; may be nil
}

const (
	maxTime    = 10 * time.Minute
	maxCommand = 100_000 // bytes: the kernel takes 128 KiB for one argument
	maxTouched = 200     // files
	liveTasks  = 8       // of a session (docs/protocol/rind-v2.md section 7.5); the session counts them
)

type bash struct {
	Config
	shell   interpreter
	earlier roots.Earlier // what files held when the last command began
}

// Bash is the tool bash.
func Bash(c Config) session.Tool {
	if c.Environ == nil {
		c.Environ = os.Environ
	}
	if c.MaxTime <= 0 {
		c.MaxTime = maxTime
	}
	return &bash{Config: c, shell: findShell()}
}

// Spec implements session.Tool.
func (b *bash) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name: "bash", Kind: "execute",
		Description: fmt.Sprintf("Run a command in %s and return its output, exit code and status. "+
			"It starts in the workspace; standard input is empty, there is no terminal. "+
			"A command that takes longer than yield_time_ms goes on in the background: status is \"running\", task_id names it for task_control. "+
			"What a command itself leaves running is ended with it, so start servers with yield_time_ms 0, not with &. Long output is shortened in the middle; meta.output_path then names a file with all of it. "+
			"With meta.sandbox, \"Permission denied\" may come from the sandbox, which lets commands write in the workspace and in caches only: say so to the user.", b.shell.words),
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"command":{"type":"string","description":"the command line"},` +
			`"cwd":{"type":"string","description":"folder to run it in, relative to the workspace; default: the workspace"},` +
			`"yield_time_ms":{"type":"integer","minimum":0,"maximum":60000,"default":10000,"description":"how long to wait for its end before it goes on in the background"},` +
			`"timeout_ms":{"type":"integer","minimum":1,"description":"end it after this time"},` +
			`"notify":{"type":"string","enum":["on_exit","manual"],"default":"on_exit","description":"on_exit: you are told when it ends in the background"},` +
			`"run_in_background":{"type":"boolean","description":"older form of yield_time_ms 0"},` +
			`"wait_ms":{"type":"integer","minimum":0,"maximum":60000,"description":"older form of yield_time_ms"}},` +
			`"required":["command"],"additionalProperties":false}`),
	}
}

// Run implements session.Tool. Data is a told, meta {truncated, total_bytes, total_lines, output_path?, output_incomplete?, lossy?, sandbox?,
// note?}. A command that fails is a completed call; only being cancelled or running out of time ends the call otherwise. Where out is a
// session.Background the command goes on as a task of the session once its call has waited long enough (job.go).
func (b *bash) Run(ctx context.Context, call session.ToolCall, out session.Progress) (session.ToolResult, error) {
	req, refused := readRequest(call)
	if refused != nil {
		return *refused, nil
	}
	f, refused, err := b.prepare(ctx, call, req)
	if err != nil || refused != nil {
		return session.Ended(refused, err)
	}
	defer f.close()
	bg, _ := out.(session.Background)
	if bg != nil && req.yield == 0 {
		return f.detach(ctx, call, bg)
	}
	if call.Editor.Terminal != nil && !call.Reads { // what only reads is held to that by the sandbox
		if res, ok := f.inTerminal(ctx, call); ok {
			return res, nil
		}
		if ctx.Err() != nil {
			return *notRun("The turn was cancelled before the command was started."), nil
		}
	}
	if !call.Reads {
		f.before = b.earlier.Snapshot(ctx, f.roots, roots.DefaultSnapshot)
	}
	if refused, err = f.start(call); err != nil || refused != nil {
		return session.Ended(refused, err)
	}
	return f.wait(ctx, bg)
}

// folder is where the command runs: absolute, inside the roots or consented to.
func folder(r *roots.Roots, cwd string) (string, *session.ToolResult, error) {
	if cwd == "" {
		return r.Base(), nil, nil
	}
	d, place, err := r.OpenDir(cwd)
	if err != nil {
		e, ok := errors.AsType[*roots.PathError](err)
		if !ok {
			return "", nil, err
		}
		status, errorType := e.Outcome()
		return "", &session.ToolResult{Status: status, ErrorType: errorType, Error: e.Text}, nil
	}
	d.Close()
	return place.Abs, nil, nil
}

// interpreter is the shell commands are for.
type interpreter struct {
	backend string // "bash", "sh", "powershell"
	path    string // absolute; "" when there is none
	words   string // for the tool's description
	args    []string
}

func (s interpreter) shown() string { return filepath.ToSlash(s.path) }
