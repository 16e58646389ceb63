package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

func sessionsCommand(std *streams) *cobra.Command {
	cmd := sessionsList(std)
	cmd.Use, cmd.Short = "sessions", "List, show, export and delete sessions"
	cmd.Long = "Lists the sessions of this folder, newest first, as 'rind sessions list' does. SESSION of the commands below is an id from that list, or its first\n" +
		"characters, or the first of its last part, at least 4, as far as no other session has them."
	cmd.AddCommand(sessionsList(std), sessionsShow(std), sessionsExport(std), sessionsDelete(std), sessionsPrune(std))
	return cmd
}

func sessionsList(std *streams) *cobra.Command {
	var c common
	var all, asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List the sessions of this folder, newest first", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usageError{errors.New("--limit must be at least 1")}
			}
			rt, err := compose(std, &c, composition{})
			if err != nil {
				return err
			}
			defer rt.close()
			q := session.Query{Workspace: rt.workspace, Limit: min(limit, 200)}
			if all {
				q.Workspace = ""
			}
			var found []session.Meta
			for {
				page, next, err := rt.all.List(cmd.Context(), q)
				if err != nil {
					return asExit(err)
				}
				found = append(found, page...)
				if next == "" || len(found) >= limit {
					break
				}
				q.Page = next
			}
			return showList(std.out, std.err, found[:min(limit, len(found))], asJSON)
		},
	}
	c.bind(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "sessions of every folder")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	cmd.Flags().IntVar(&limit, "limit", 20, "how many at most")
	return cmd
}

type listItem struct {
	ID        session.SessionID `json:"id"`
	Title     string            `json:"title"`
	UpdatedAt time.Time         `json:"updated_at"`
	Messages  int               `json:"messages"`
	ToolCalls int               `json:"tool_calls"`
	Workspace string            `json:"workspace_root"`
	Preview   string            `json:"preview"`
}

func showList(out, errOut io.Writer, metas []session.Meta, asJSON bool) error {
	if len(metas) == 0 && !asJSON {
		_, err := fmt.Fprintln(errOut, "No sessions here yet; 'rind sessions list --all' shows those of other folders.")
		return err
	}
	if asJSON {
		for _, m := range metas {
			if err := writeLine(out, listItem{m.ID, m.Title, m.Activity, m.Messages, m.ToolCalls, m.Workspace, m.Preview}); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tUPDATED\tMESSAGES\tTITLE")
	for _, m := range metas {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", m.ID, m.Activity.Local().Format("2006-01-02 15:04"), m.Messages, plainLine(m.Title))
	}
	return w.Flush()
}

// withSession opens the session named on the command line; "" is the newest of the folder.
func withSession(ctx context.Context, std *streams, c *common, name string, f func(rt *process, s *session.Session) error) error {
	if name != "" && !protocol.ValidSessionID(name) {
		return exitf(exitUsage, "Invalid session id.")
	}
	rt, err := compose(std, c, composition{})
	if err != nil {
		return err
	}
	defer rt.close()
	id, err := rt.named(ctx, name)
	if err != nil {
		return err
	}
	s, err := rt.all.Open(ctx, id)
	if err != nil {
		return asExit(err)
	}
	defer s.Close()
	return f(rt, s)
}

func sessionsShow(std *streams) *cobra.Command {
	var c common
	cmd := &cobra.Command{
		Use: "show [SESSION]", Short: "Show the conversation of a session, the newest of this folder without SESSION", Args: atMostArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSession(cmd.Context(), std, &c, strings.Join(args, ""), func(_ *process, s *session.Session) error {
				var wire []session.Wire
				var state *session.TurnState
				if err := s.RecallNow(cmd.Context(), func(v *session.Recalled) { wire, state = v.Wire(), v.TurnState() }); err != nil {
					return asExit(err)
				}
				return showWire(std.out, s.ID, wire, state)
			})
		},
	}
	c.bind(cmd)
	return cmd
}

// showWire shows a conversation as prompt and chat showed it: what was said, a line for each call, and how it ended.
func showWire(out io.Writer, id session.SessionID, wire []session.Wire, state *session.TurnState) error {
	text := &strings.Builder{}
	shown := newScreen(&streams{nil, text, text})
	names := map[string]string{}
	for _, m := range wire[1:] {
		switch m.Role {
		case session.RoleUser:
			fmt.Fprintf(text, "\n> %s\n\n", printable(*m.Content))
		case session.RoleAssistant:
			if m.Content != nil {
				shown.say(*m.Content)
				shown.endLine()
				if m.Interrupted {
					shown.line("(cut off)")
				}
			}
			for _, call := range m.ToolCalls {
				names[call.ID] = call.Function.Name
				shown.calls[call.ID] = shown.summary(call.Function.Name, json.RawMessage(call.Function.Arguments))
			}
		default:
			shown.outcome(m.ToolCallID, names[m.ToolCallID], *m.Content)
		}
	}
	if state != nil && state.Status == "running" {
		what := "was interrupted: 'rind prompt --resume --session %s' goes on with it, or just ask something new"
		if state.Waiting {
			what = "waits for an answer: 'rind chat --session %s' asks again"
		}
		fmt.Fprintf(text, "\n(the last turn "+what+")\n", id)
	}
	_, err := io.WriteString(out, strings.TrimLeft(text.String(), "\n"))
	return err
}

func sessionsDelete(std *streams) *cobra.Command {
	var c common
	cmd := &cobra.Command{
		Use: "delete SESSION...", Short: "Delete sessions and their bytes", Args: atLeastArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, id := range args {
				if !protocol.ValidSessionID(id) {
					return exitf(exitUsage, "Invalid session id.")
				}
			}
			rt, err := compose(std, &c, composition{})
			if err != nil {
				return err
			}
			defer rt.close()
			for _, name := range args {
				id, err := rt.named(cmd.Context(), name)
				if err != nil {
					return err
				}
				about, _ := rt.store.Session(cmd.Context(), id) // Delete says what is wrong with it
				if err := rt.all.Delete(cmd.Context(), id); err != nil {
					return asExit(err)
				}
				fmt.Fprintf(std.err, "deleted %s  %s\n", id, plainLine(about.Title))
			}
			return nil
		},
	}
	c.bind(cmd)
	return cmd
}

func sessionsPrune(std *streams) *cobra.Command {
	var c common
	older := age(24 * time.Hour)
	cmd := &cobra.Command{
		Use: "prune", Short: "Fold streamed pieces of turns that ended long ago; messages, calls and results stay", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if older < age(24*time.Hour) {
				return usageError{errors.New("--older must be at least 24h")}
			}
			rt, err := compose(std, &c, composition{})
			if err != nil {
				return err
			}
			defer rt.close()
			n, err := rt.store.Prune(cmd.Context(), time.Now().Add(-time.Duration(older)))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.err, "%s folded\n", counted(n, "entry", "entries"))
			return err
		},
	}
	c.bind(cmd)
	cmd.Flags().Var(&older, "older", "age of the end of a turn, as 48h or 30d; at least 24h")
	return cmd
}

func replayCommand(std *streams) *cobra.Command {
	var c common
	var after int64
	var follow bool
	cmd := &cobra.Command{
		Use: "replay SESSION", Short: "Write the events of a session as JSON lines, and follow it",
		Long: "Writes the events of a session as they were told, one JSON object a line: durable events with --after N those behind cursor N.\n" +
			"With --follow it goes on with what is appended, also by another process, until interrupted.",
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if after < 0 {
				return usageError{errors.New("--after must be a non-negative integer")}
			}
			return withSession(cmd.Context(), std, &c, args[0], func(_ *process, s *session.Session) error {
				return replay(cmd.Context(), std.out, s, session.Seq(after), follow)
			})
		},
	}
	c.bind(cmd)
	cmd.Flags().Int64Var(&after, "after", 0, "start behind this cursor")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with what is appended")
	return cmd
}

var errDeletedMeanwhile = &exit{exitFailed, "the session was deleted"}

func replay(ctx context.Context, out io.Writer, s *session.Session, at session.Seq, follow bool) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	ended := func() error { // by a signal, or because there is nothing to follow any more
		if context.Cause(ctx) == errDeletedMeanwhile {
			return errDeletedMeanwhile
		}
		return nil
	}
	wake := make(chan struct{}, 1)
	var f *session.Follower
	if err := s.InspectNow(ctx, func(v *session.View) {
		at = min(at, v.Head) // behind the end is the end
		f = v.Follow(func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		}, nil, func() { end(errDeletedMeanwhile) })
	}); err != nil {
		return err
	}
	defer f.Stop()
	for {
		page, head, err := s.Read(ctx, at, 256)
		if err != nil {
			if ctx.Err() != nil {
				return ended()
			}
			return err
		}
		for i := range page {
			at = page[i].Seq
			if page[i].Event == nil {
				continue
			}
			line := replayLine{Cursor: 0, Durability: "incremental", Event: page[i].Event}
			switch page[i].Told() {
			case protocol.Durable:
				line.Durability, line.Cursor = "durable", at
			case protocol.DurableTask:
				line.Durability, line.TaskCursor = "durable", at
			case protocol.NotTold, protocol.Incremental:
			}
			if err := writeLine(out, line); err != nil {
				return err
			}
		}
		if at < head && len(page) > 0 {
			continue
		}
		if !follow {
			return nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return ended()
		}
	}
}

// replayLine is one event of rind replay.
type replayLine struct {
	Durability string          `json:"durability"`
	Cursor     session.Seq     `json:"cursor,omitempty"`
	TaskCursor session.Seq     `json:"task_cursor,omitempty"`
	Event      json.RawMessage `json:"event"`
}
