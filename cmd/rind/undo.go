package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// turnFlags name a session and one of its turns.
type turnFlags struct {
	common
	session string
	latest  bool
	json    bool
}

func (f *turnFlags) bind(cmd *cobra.Command) {
	f.common.bind(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.session, "session", "", "session (default: the newest of this folder)")
	fl.BoolVarP(&f.latest, "resume-latest", "c", false, "the newest session of this folder, as without --session")
	fl.BoolVar(&f.json, "json", false, "write JSON lines")
}

// turnCommand makes a command about one turn of a session; run gets the session and the turn as it was named, "" for none. A folder
// without a session is told as nothing is.
func turnCommand(std *streams, use, short, long, nothing string, f *turnFlags, run func(ctx context.Context, rt *process, id session.SessionID, turn session.TurnID) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: atMostArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.latest && f.session != "":
				return usageError{errors.New("-c cannot be combined with --session")}
			case f.session != "" && !protocol.ValidSessionID(f.session):
				return exitf(exitUsage, "Invalid session id.")
			case len(args) == 1 && args[0] == "":
				return usageError{errors.New("TURN is empty")}
			}
			rt, err := compose(std, &f.common, composition{})
			if err != nil {
				return err
			}
			defer rt.close()
			ctx, stop := signalContext(cmd.Context())
			defer stop()
			id, err := session.SessionID(""), error(nil)
			if f.session != "" {
				if id, err = rt.named(ctx, f.session); err != nil {
					return err
				}
			} else {
				page, _, err := rt.all.List(ctx, session.Query{Workspace: rt.workspace, Limit: 1})
				if err != nil {
					return asExit(err)
				}
				if len(page) == 0 {
					fmt.Fprintln(std.err, nothing)
					return nil
				}
				id = page[0].ID
			}
			err = run(ctx, rt, id, session.TurnID(strings.Join(args, "")))
			if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
				return &exit{exitCancelled, "cancelled"}
			}
			if e, ok := errors.AsType[*protocol.Error](err); ok && e.Kind == protocol.SessionBusy && e.Cause == nil { // of a turn that was left open
				return exitf(exitFailed, "%s 'rind prompt --resume --session %s' finishes it.", e.Message, id)
			}
			return asExit(err)
		},
	}
	f.bind(cmd)
	return cmd
}

func undoCommand(std *streams) *cobra.Command {
	var f turnFlags
	var dry bool
	cmd := turnCommand(std, "undo [TURN]", "Put back the files that tools changed in a turn",
		"Puts back what tools wrote in TURN (an id, or at least its first 4 characters; default: the last turn that changed files and is not\n"+
			"undone yet, so that repeating it steps back). A file that somebody changed since is left alone and named. Exit code 6 says that\n"+
			"a file was left alone.", "Nothing to undo.", &f,
		func(ctx context.Context, rt *process, id session.SessionID, turn session.TurnID) error {
			u := rt.undo(true)
			do := u.Undo
			if dry {
				do = u.Plan
			}
			done, err := do(ctx, id, turn)
			if err != nil && len(done.Files) == 0 {
				return err
			}
			return errors.Join(err, showUndone(std, id, done, f.json, dry))
		})
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be put back")
	return cmd
}

// undoneLine is the one line of undo --json.
type undoneLine struct {
	Session session.SessionID  `json:"session_id"`
	Turn    session.TurnID     `json:"turn_id"`
	DryRun  bool               `json:"dry_run"`
	Files   []session.FileUndo `json:"files"`
}

// showUndone tells what became of each file; the error carries the exit code where one was left alone.
func showUndone(std *streams, id session.SessionID, done session.Undone, asJSON, dry bool) error {
	left := 0
	for _, f := range done.Files {
		if f.Status != session.FileRestored {
			left++
		}
	}
	if asJSON {
		if done.Files == nil {
			done.Files = []session.FileUndo{}
		}
		if err := writeLine(std.out, undoneLine{id, done.Turn, dry, done.Files}); err != nil {
			return err
		}
	} else if err := tellUndone(std, done, left, dry); err != nil {
		return err
	}
	if left > 0 {
		return &exit{code: exitLeft}
	}
	return nil
}

func tellUndone(std *streams, done session.Undone, left int, dry bool) error {
	words := map[string]string{session.FileRestored: "restored", session.FileChangedSince: "changed since", session.FileNotKept: "not kept"}
	if dry {
		words[session.FileRestored] = "to restore"
	}
	for _, f := range done.Files {
		line := fmt.Sprintf("%-13s  %s", words[f.Status], pathLine(f.Path))
		if f.Reason != "" {
			line += "  (" + printable(oneLine(f.Reason)) + ")"
		}
		if _, err := fmt.Fprintln(std.out, line); err != nil {
			return err
		}
	}
	switch {
	case done.Turn == "":
		fmt.Fprintln(std.err, "Nothing to undo.")
	case len(done.Files) == 0:
		fmt.Fprintf(std.err, "Turn %s changed no files.\n", done.Turn)
	case left > 0:
		fmt.Fprintf(std.err, "Turn %s: %s left alone; 'rind diff %.8s' shows what the turn changed.\n", done.Turn, count(left, "file"), done.Turn)
	case dry:
		fmt.Fprintf(std.err, "Turn %s can be undone.\n", done.Turn)
	default:
		fmt.Fprintf(std.err, "Turn %s is undone.\n", done.Turn)
	}
	return nil
}

// pathLine shows a path on one line, with the spaces it has.
func pathLine(path string) string { return strings.ReplaceAll(unturned(path), "\n", "\uFFFD") }

func count(n int, what string) string { return counted(n, what, what+"s") }

// counted is a number with the word for that many.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
