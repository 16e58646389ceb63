package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/session"
)

func diffCommand(std *streams) *cobra.Command {
	var f turnFlags
	return turnCommand(std, "diff [TURN]", "Show what tools changed in a turn",
		"Shows what tools changed in TURN (an id, or at least its first 4 characters; default: the last turn that changed files), as one\n"+
			"unified diff a file, from before its first change in the turn to after its last.", "No turn here changed files yet.", &f,
		func(ctx context.Context, rt *process, id session.SessionID, turn session.TurnID) error {
			turn, diffs, err := rt.undo(true).Diff(ctx, id, turn)
			if err != nil {
				return err
			}
			if f.json {
				for _, d := range diffs {
					if err := writeLine(std.out, diffLine{id, turn, d.Path, d.Created, d.Removed, d.Kept, d.Reason, d.Diff}); err != nil {
						return err
					}
				}
				return nil
			}
			return showDiffs(std, turn, diffs)
		})
}

// diffLine is one line of diff --json: one file.
type diffLine struct {
	Session session.SessionID `json:"session_id"`
	Turn    session.TurnID    `json:"turn_id"`
	Path    string            `json:"path"`
	Created bool              `json:"created"`
	Removed bool              `json:"removed"`
	Kept    bool              `json:"kept"`
	Reason  string            `json:"reason,omitempty"`
	Diff    string            `json:"diff"`
}

// showDiffs writes the diffs to standard output, where they can be piped into a patch, and all else to standard error.
func showDiffs(std *streams, turn session.TurnID, diffs []session.FileDiff) error {
	switch {
	case turn == "":
		fmt.Fprintln(std.err, "No turn here changed files yet.")
		return nil
	case len(diffs) == 0:
		fmt.Fprintf(std.err, "Turn %s changed no files.\n", turn)
		return nil
	}
	safe := isTerminal(std.out)
	for _, d := range diffs {
		if d.Diff == "" {
			fmt.Fprintf(std.err, "%s: %s\n", pathLine(d.Path), printable(oneLine(d.Reason)))
			continue
		}
		text := d.Diff
		if safe {
			text = printable(text)
		}
		if _, err := io.WriteString(std.out, text); err != nil {
			return err
		}
	}
	fmt.Fprintf(std.err, "Turn %s: %s\n", turn, count(len(diffs), "file"))
	return nil
}
