package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

const appServerUsage = "usage: rind app-server --stdio [--cwd DIR] [--session ID] [-c|--resume-latest] [--session-dir DIR] [--no-user-question] [--envelope=rind|jsonrpc] [--debug] [--trace-llm] [-h]"

type appServerFlags struct {
	common
	session    string
	latest     bool
	noQuestion bool
	envelope   string
	trace      bool
}

// appServerCommand serves rind v2 and its JSON-RPC twin on standard input and output (docs/protocol/rind-v2.md section 1).
func appServerCommand(std *streams) *cobra.Command {
	var f appServerFlags
	var stdio bool
	misused := func(args ...string) error {
		fmt.Fprintf(std.err, "%s\nrind: error: unrecognized arguments: %s\n", appServerUsage, plainLine(strings.Join(args, " ")))
		return &exit{code: exitUsage}
	}
	cmd := &cobra.Command{
		Use: "app-server", Short: "Serve an editor over standard input and output (rind v2, JSON-RPC 2.0)",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return misused(args...)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.envelope != "" && f.envelope != "rind" && f.envelope != "jsonrpc" {
				return misused("--envelope=" + f.envelope)
			}
			return appServer(cmd.Context(), std, &f)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return misused(flagOf(err)) })
	f.common.bind(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&stdio, "stdio", true, "the only transport")
	fl.StringVar(&f.session, "session", "", "session to begin with")
	fl.BoolVarP(&f.latest, "resume-latest", "c", false, "begin with the newest session of the workspace")
	fl.BoolVar(&f.noQuestion, "no-user-question", false, "nobody can be asked: what needs consent is rejected")
	fl.StringVar(&f.envelope, "envelope", "", "rind or jsonrpc; the first line decides otherwise")
	traceFlag(cmd, &f.trace)
	return cmd
}

// flagOf is the argument an error of the flag parser is about.
func flagOf(err error) string {
	text := err.Error()
	if _, after, ok := strings.Cut(text, "flag needs an argument: "); ok {
		text = after
	}
	for _, word := range strings.Fields(text) {
		word = strings.Trim(word, "\"',:")
		if strings.HasPrefix(word, "-") && len(word) > 1 {
			return word
		}
	}
	return text
}

func appServer(ctx context.Context, std *streams, f *appServerFlags) error {
	swallow(os.Interrupt)
	ctx, cancel := spawned(ctx, endSignals())
	defer cancel()
	wire := wireOf(std.out)
	p, err := compose(std, &f.common, composition{unattended: f.noQuestion, trace: f.trace})
	if err != nil {
		return startup(err)
	}
	defer p.close()
	cfg := p.served()
	cfg.Executions.Adopt(requeueWithin)
	cfg.Latest = f.latest && f.session == ""
	if f.session != "" {
		if !protocol.ValidSessionID(f.session) {
			return exitLine("Startup error: Invalid session id.")
		}
		cfg.Session = session.SessionID(f.session)
		s, err := p.all.Open(ctx, cfg.Session)
		if err != nil {
			if protocol.KindOf(err) == protocol.SessionNotFound {
				return exitLine("Startup error: Session not found: " + f.session)
			}
			return exitLine("Startup error: " + messageOf(err))
		}
		defer s.Close()
	}
	p.servers.Workspace(p.workspace).Start() // they connect in the background; initialize does not wait for them
	if err := dispatcher.New(cfg).Serve(ctx, std.in, wire, dispatcher.Options{Envelope: envelope(f.envelope)}); err != nil {
		p.log.Warn("graceful end", "err", err)
		if protocol.KindOf(err) == protocol.ShutdownFailed { // the client was told
			return &exit{code: exitFailed}
		}
	}
	return nil
}

// exitLine is a start-up failure: one line, as the contract words it.
func exitLine(text string) error { return &startupError{text} }

// startupError is shown without a prefix, and ends the program with 1.
type startupError struct{ text string }

func (e *startupError) Error() string { return e.text }

// startup gives failures of composing the form app-server's contract demands.
func startup(err error) error {
	if e, ok := errors.AsType[*exit](err); ok && e.text != "" {
		return exitLine(e.text)
	}
	return err
}
