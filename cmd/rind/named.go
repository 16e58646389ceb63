package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// leastNamed is how many characters of an id a person has to type at least.
const leastNamed = 4

// named is the session a person means by id: the whole of it, or so much of its beginning, or of the beginning of its last part, that it
// fits one session only. "" is the newest session of the workspace. Protocols never come here: there an id is an id.
func (rt *process) named(ctx context.Context, id string) (session.SessionID, error) {
	if id == "" {
		page, _, err := rt.all.List(ctx, session.Query{Workspace: rt.workspace, Limit: 1})
		if err != nil {
			return "", asExit(err)
		}
		if len(page) == 0 {
			return "", exitf(exitFailed, "no session here yet; 'rind sessions list --all' shows those of other folders")
		}
		return page[0].ID, nil
	}
	if !protocol.ValidSessionID(id) {
		return "", exitf(exitUsage, "Invalid session id.")
	}
	if _, err := rt.store.Session(ctx, session.SessionID(id)); !errors.Is(err, session.ErrNotFound) || len(id) < leastNamed {
		return session.SessionID(id), nil // there, or for whoever opens it to refuse
	}
	var fits []session.SessionID
	q := session.Query{Limit: 200}
	for {
		page, next, err := rt.all.List(ctx, q)
		if err != nil {
			return "", asExit(err)
		}
		for _, m := range page {
			last := string(m.ID)[strings.LastIndexByte(string(m.ID), '_')+1:]
			if strings.HasPrefix(string(m.ID), id) || strings.HasPrefix(last, id) {
				fits = append(fits, m.ID)
			}
		}
		if q.Page = next; next == "" {
			break
		}
	}
	switch len(fits) {
	case 0:
		return session.SessionID(id), nil
	case 1:
		return fits[0], nil
	}
	return "", exitf(exitFailed, "%s could be %d sessions, %s and %s among them: give more of the id", id, len(fits), fits[0], fits[1])
}

// exactArgs wants the words that use names, no more and no fewer, and says which are missing.
func exactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return tooMany(cmd, args[n])
		}
		return missing(cmd, args, n)
	}
}

func atLeastArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return missing(cmd, args, n) }
}

func atMostArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return tooMany(cmd, args[n])
		}
		return nil
	}
}

func missing(cmd *cobra.Command, args []string, n int) error {
	if len(args) >= n {
		return nil
	}
	words := strings.Fields(strings.ReplaceAll(cmd.Use, " -- ", " "))
	return usageError{fmt.Errorf("%s is missing: %s", strings.TrimSuffix(words[len(args)+1], "..."), useOf(cmd))}
}

func tooMany(cmd *cobra.Command, first string) error {
	return usageError{fmt.Errorf("%q is too much: %s", first, useOf(cmd))}
}

// useOf is how a command is typed, without flags.
func useOf(cmd *cobra.Command) string { return strings.TrimSuffix(cmd.UseLine(), " [flags]") }

// age is a duration that may be written in days.
type age time.Duration

func (a *age) String() string { return time.Duration(*a).String() }
func (a *age) Type() string   { return "duration" }

func (a *age) Set(s string) error {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		var days uint16
		if _, err := fmt.Sscanf(n+"\n", "%d\n", &days); err == nil {
			*a = age(days) * age(24*time.Hour)
			return nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("it is written as 48h or 30d")
	}
	*a = age(d)
	return nil
}
