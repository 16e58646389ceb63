package acp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// How long the client may take over a terminal.
const (
	terminalWithin = 10 * time.Second
	terminalKill   = time.Second // to kill, and as long for the output, where the turn is being cancelled
)

// terminal is a terminal of the client in which a call runs. Guarded by Conn.mu.
type terminal struct {
	id      string
	session session.SessionID
	shown   bool // in the call, and the client was told nothing anew of the session since
}

// editorTerminal runs commands in the client's terminals (docs/protocol/acp.md section 2.7).
type editorTerminal struct {
	c *Conn
	o *opened
}

// Run implements session.EditorTerminal.
func (e *editorTerminal) Run(ctx context.Context, cmd session.TerminalCommand) (session.TerminalResult, bool) {
	req := acp.TerminalRequest{Session: e.o.s.ID, Command: cmd.Program, Args: cmd.Args, Env: []acp.Pair{}, CWD: e.o.named(cmd.Dir), Most: cmd.Most}
	for name, value := range cmd.Env {
		req.Env = append(req.Env, acp.Pair{Name: name, Value: value})
	}
	slices.SortFunc(req.Env, func(a, b acp.Pair) int { return strings.Compare(a.Name, b.Name) })
	within, stop := context.WithTimeout(ctx, terminalWithin)
	result, err := e.c.request(within, acp.MethodTerminalCreate, req)
	stop()
	if err != nil {
		e.c.d.cfg.Log.Warn("terminal of the client", "session", e.o.s.ID, "err", err)
		_, refused := errors.AsType[*protocol.Error](err)
		return session.TerminalResult{Lost: true, Exit: -1}, !refused // without an answer it may have started
	}
	id := acp.ReadTerminalID(result)
	if id == "" {
		return session.TerminalResult{Lost: true, Exit: -1}, true
	}
	e.show(cmd.Call, id)
	return e.wait(ctx, cmd.Limit, acp.TerminalNamed{Session: e.o.s.ID, Terminal: id}), true
}

// show tells the client which terminal the call runs in, behind the update that says that the call runs.
func (e *editorTerminal) show(call, id string) {
	c, s := e.c, e.o.s
	c.mu.Lock()
	c.terminals[call] = &terminal{id: id, session: s.ID, shown: true}
	c.mu.Unlock()
	s.Inspect(func(v *session.View) {
		c.out.Hold(&outlet.Hold{Stream: string(s.ID), Seq: v.Head, Exact: true, Lead: func(buf []byte, st outlet.Stream) []byte {
			if _, shown := c.terminal(call); st == nil || !shown {
				return buf
			}
			return append(acp.AppendUpdate(buf, s.ID, acp.InTerminal(call, id), 0), '\n')
		}})
	})
}

// wait waits for the end of the command and asks for its output.
func (e *editorTerminal) wait(ctx context.Context, limit time.Duration, t acp.TerminalNamed) session.TerminalResult {
	res := session.TerminalResult{Exit: -1}
	within, stop := context.WithTimeout(ctx, limit)
	result, err := e.c.request(within, acp.MethodTerminalWait, t)
	timedOut := within.Err() != nil && ctx.Err() == nil
	stop()
	patience := terminalWithin
	if ctx.Err() != nil {
		patience = terminalKill
	}
	calm := context.WithoutCancel(ctx)
	switch {
	case err == nil:
		res.Exit, res.Signal = acp.ReadTerminalExit(result)
	case timedOut || ctx.Err() != nil:
		res.TimedOut = timedOut
		within, stop := context.WithTimeout(calm, patience)
		_, err := e.c.request(within, acp.MethodTerminalKill, t)
		stop()
		res.Lost = err != nil && ctx.Err() == nil
	default:
		res.Lost = true
	}
	within, stop = context.WithTimeout(calm, patience)
	defer stop()
	if result, err := e.c.request(within, acp.MethodTerminalOutput, t); err == nil {
		res.Output, res.Truncated = acp.ReadTerminalOutput(result)
	}
	return res
}

// terminal implements acp.Teller.Terminal.
func (c *Conn) terminal(call string) (open, shown bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.terminals[call]
	return t != nil, t != nil && t.shown
}

// hideTerminals says that the client is told a session anew: its calls are shown without terminals from now on.
func (c *Conn) hideTerminals(id session.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.terminals {
		if t.session == id {
			t.shown = false
		}
	}
}

// overAfter gives the terminal of a call back once what is being written now, the end of the call, is written. Runs on the outlet's goroutine.
func (c *Conn) overAfter(call string) {
	c.mu.Lock()
	t := c.terminals[call]
	delete(c.terminals, call)
	c.mu.Unlock()
	if t == nil {
		return
	}
	c.out.Write(func(buf []byte) []byte { // in the next batch
		go func() { // ends with the answer, or a little after the time for it
			ctx, stop := context.WithTimeout(context.Background(), terminalWithin)
			defer stop()
			_, _ = c.request(ctx, acp.MethodTerminalRelease, acp.TerminalNamed{Session: t.session, Terminal: t.id})
		}()
		return buf
	})
}
