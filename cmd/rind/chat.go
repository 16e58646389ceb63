package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/session"
)

func chatCommand(std *streams) *cobra.Command {
	var f chosen
	cmd := &cobra.Command{
		Use:   "chat [PROMPT]",
		Short: "Talk with the agent in the terminal",
		Long: "A conversation, line by line. A line typed while the agent works steers it; lines that begin with / are commands (/help). Ctrl-C\n" +
			"cancels the turn, twice or at rest it ends the program; Ctrl-D ends when the turn has. docs/chat.md tells it all.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return runChat(cmd.Context(), std, &f, strings.Join(args, " "))
		},
	}
	f.bind(cmd)
	return cmd
}

// runChat composes a process as app-server does and talks to it over a connection of its own: chat knows nothing a client cannot know.
//
// Goroutines: the caller holds the conversation and is the only one that writes to the terminal. Serve is the connection's server end; it ends
// with the answer to shutdown. receive reads what it writes and ends with it. One reads standard input: it ends with it, or, where a read of
// a terminal blocks, with the process. One passes signals on and ends with runChat.
func runChat(ctx context.Context, std *streams, f *chosen, prompt string) error {
	if err := f.check(); err != nil {
		return err
	}
	attended := isTerminal(std.in) && isTerminal(std.err)
	p, err := compose(std, &f.common, composition{typed: true, temporary: true, unattended: !attended, modelFlag: f.model != "" || f.provider != ""})
	if err != nil {
		return err
	}
	defer p.close()
	if err := f.fill(ctx, p); err != nil {
		return err
	}
	cfg := p.served()
	cfg.Session, cfg.Latest = session.SessionID(f.session), f.latest && f.session == ""
	d := dispatcher.New(cfg)
	p.servers.Workspace(p.workspace).Start()
	marks := attended && understands(std.err)
	if marks {
		fmt.Fprint(std.err, pasteOn)
		defer fmt.Fprint(std.err, pasteOff)
	}
	sigs, stop := interrupts(func() {
		if marks {
			fmt.Fprint(std.err, pasteOff)
		}
		os.Exit(exitInterrupted)
	})
	defer stop()
	t := newTalk(std, attended, sigs)
	return t.hold(ctx, f, prompt, func(in io.Reader, out io.Writer) error {
		return d.Serve(context.WithoutCancel(ctx), in, out, dispatcher.Options{Envelope: envelope("rind")})
	})
}

// interrupts passes the signals that end a turn or the program on. One that comes before the last was taken means that the program does not
// react: force ends it then.
func interrupts(force func()) (<-chan os.Signal, func()) {
	from, to, done := make(chan os.Signal, 8), make(chan os.Signal, 1), make(chan struct{})
	if sigs := heeded(); len(sigs) > 0 { // Notify without signals takes all of them
		signal.Notify(from, sigs...)
	}
	go func() {
		for {
			select {
			case s := <-from:
				select {
				case to <- s:
				default:
					force()
				}
			case <-done:
				return
			}
		}
	}()
	return to, func() {
		signal.Stop(from)
		close(done)
	}
}
