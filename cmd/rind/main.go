// Command rind is an agent runtime: the program an editor spawns to put an AI agent to work on a person's code, and a command
// line of its own over the same log. README.md is the way in, docs/cli.md lists commands and exit codes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Exit codes (docs/cli.md).
const (
	exitOK          = 0
	exitFailed      = 1   // the turn or the command failed
	exitUsage       = 2   // wrong command line
	exitCancelled   = 3   // the turn was cancelled
	exitConsent     = 4   // something needed consent and nobody could give it
	exitConfig      = 5   // settings or key
	exitLeft        = 6   // undo left a file alone
	exitInterrupted = 130 // ended by Ctrl-C
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// exit is an error that ends the program with a code of its own. Text "" prints nothing.
type exit struct {
	code int
	text string
}

func (e *exit) Error() string { return e.text }

func exitf(code int, format string, args ...any) error {
	return &exit{code, fmt.Sprintf(format, args...)}
}

// usageError marks mistakes in the command line.
type usageError struct{ error }

// streams are where a command reads and writes.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	std := &streams{stdin, stdout, stderr}
	root := rootCommand(std)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if e, ok := errors.AsType[*exit](err); ok {
		if e.text != "" {
			fmt.Fprintln(stderr, "rind: "+plainLine(e.text))
		}
		return e.code
	}
	if e, ok := errors.AsType[*startupError](err); ok {
		fmt.Fprintln(stderr, plainLine(e.text))
		return exitFailed
	}
	if _, ok := errors.AsType[usageError](err); ok || strings.HasPrefix(err.Error(), "unknown command") {
		fmt.Fprintln(stderr, "rind: "+plainLine(err.Error()))
		fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", cmd.CommandPath())
		return exitUsage
	}
	fmt.Fprintln(stderr, "rind: "+plainLine(messageOf(err)))
	return exitFailed
}

// messageOf is what a user is told of an error: the message alone, without its kind.
func messageOf(err error) string {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e.Message
	}
	if e, ok := errors.AsType[*session.ModelError](err); ok {
		return e.Message
	}
	return err.Error()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func rootCommand(std *streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "rind",
		Short:         "An agent runtime that loses nothing",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		RunE:          withoutCommand(std),
	}
	root.SetVersionTemplate("rind {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		promptCommand(std), sessionsCommand(std), replayCommand(std), configCommand(std), doctorCommand(std), demoCommand(std), versionCommand(std), appServerCommand(std), fixtureCommand(std), schemaCommand(std),
		trustCommand(std),
		chatCommand(std),
		undoCommand(std),
		diffCommand(std),
		mcpCommand(std, (*process).toolServers),
		acpCommand(std),
		serveCommand(std),
		loginCommand(std), logoutCommand(std), modelsCommand(std),
	)
	root.SetHelpCommand(helpCommand())
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.RunE = withoutCommand(std)
	}
	return root
}

// withoutCommand is what a command does that is only a group of others: it says which there are.
func withoutCommand(std *streams) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		fmt.Fprint(std.err, cmd.UsageString())
		return &exit{code: exitUsage}
	}
}

// helpCommand is cobra's, but for topics that there are none of: those are mistakes in the command line.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usageError{fmt.Errorf("there is no command %q", strings.Join(args, " "))}
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// noArgs is cobra's check, as a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return usageError{err}
	}
	return nil
}
