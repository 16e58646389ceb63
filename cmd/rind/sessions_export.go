package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

func sessionsExport(std *streams) *cobra.Command {
	var c common
	cmd := &cobra.Command{
		Use: "export SESSION", Short: "Write the whole log of a session as JSON lines", Args: exactArgs(1),
		Long: "Writes every entry of the log of a session, one JSON object a line. Entries that are damaged are left out and named on standard error;\n" +
			"the exit code is 1 then.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !protocol.ValidSessionID(args[0]) {
				return exitf(exitUsage, "Invalid session id.")
			}
			rt, err := compose(std, &c, composition{})
			if err != nil {
				return err
			}
			defer rt.close()
			id, err := rt.named(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			// The session is not opened: that needs entries that may be the damaged ones.
			about, err := rt.store.Session(cmd.Context(), id)
			if errors.Is(err, session.ErrNotFound) {
				return asExit(protocol.Errorf(protocol.SessionNotFound, "Session not found: %s", id))
			}
			if err != nil {
				return err
			}
			left, err := exportLog(cmd.Context(), std.out, rt.store, about)
			if err == nil && len(left) > 0 {
				err = exitf(exitFailed, "%s of session %s cannot be read and %s left out", left, id, left.verb())
			}
			return err
		},
	}
	c.bind(cmd)
	return cmd
}

// exportLine is one entry of an export: everything the log holds of it.
type exportLine struct {
	Seq   session.Seq     `json:"seq"`
	Turn  session.TurnID  `json:"turn_id,omitempty"`
	Kind  string          `json:"kind"`
	TS    string          `json:"ts"`
	Event json.RawMessage `json:"event,omitempty"`
	More  json.RawMessage `json:"more,omitempty"`
}

// exportLog writes what can be read of the log of a session, and returns what cannot.
func exportLog(ctx context.Context, out io.Writer, log session.Log, about session.Meta) (left leftOut, err error) {
	for at := session.Seq(0); at < about.Head; {
		page, err := log.Read(ctx, about.ID, at, 512, protocol.ViewAll)
		for i := range page {
			e := &page[i]
			at = e.Seq
			if err := writeLine(out, exportLine{e.Seq, e.Turn, e.Kind.String(), protocol.FormatTime(e.Time), e.Event, e.More}); err != nil {
				return left, err
			}
		}
		switch {
		case errors.Is(err, session.ErrCorrupt):
			at++ // where nothing says which entry it is, the next readable one is found step by step
			if e, ok := errors.AsType[*session.DamagedEntry](err); ok {
				at = max(at, e.Seq)
			}
			left.add(at)
		case err != nil:
			return left, err
		case len(page) == 0:
			return left, nil
		}
	}
	return left, nil
}

// leftOut are the entries an export lacks, as runs of numbers.
type leftOut []struct{ first, last session.Seq }

func (l *leftOut) add(at session.Seq) {
	if n := len(*l); n > 0 && (*l)[n-1].last == at-1 {
		(*l)[n-1].last = at
		return
	}
	*l = append(*l, struct{ first, last session.Seq }{at, at})
}

func (l leftOut) one() bool { return len(l) == 1 && l[0].first == l[0].last }

func (l leftOut) verb() string {
	if l.one() {
		return "was"
	}
	return "were"
}

func (l leftOut) String() string {
	words := make([]string, len(l))
	for i, run := range l {
		words[i] = fmt.Sprint(run.first)
		if run.last > run.first {
			words[i] += fmt.Sprintf("-%d", run.last)
		}
	}
	if l.one() {
		return "entry " + words[0]
	}
	return "entries " + strings.Join(words, ", ")
}
