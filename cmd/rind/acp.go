package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/dispatcher/acp"
	"github.com/rind-dev/rind/session/settings"
)

const acpUsage = "usage: rind acp [--cwd DIR] [--data DIR] [--session-dir DIR] [--debug] [--trace-llm] [-h]"

// acpCommand serves an editor over the Agent Client Protocol on standard input and output (docs/protocol/acp.md section 1).
func acpCommand(std *streams) *cobra.Command {
	var f common
	var data string
	var trace bool
	misused := func(args ...string) error {
		fmt.Fprintf(std.err, "%s (unrecognized: %s)\n", acpUsage, strings.Join(args, " "))
		return &exit{code: exitUsage}
	}
	cmd := &cobra.Command{
		Use: "acp", Short: "Serve an editor over standard input and output (Agent Client Protocol)",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return misused(args...)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if data != "" {
				root, err := settings.Expand(data, os.LookupEnv)
				if err == nil {
					err = os.Setenv("RIND_HOME", root)
				}
				if err != nil {
					return misused("--data " + data)
				}
			}
			return serveACP(cmd.Context(), std, &f, trace || truthy(os.Getenv("RIND_TRACE_LLM")))
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return misused(flagOf(err)) })
	f.bind(cmd)
	cmd.Flags().StringVar(&data, "data", "", "data folder (default: RIND_HOME, else ~/.rind)")
	cmd.Flags().BoolVar(&trace, "trace-llm", false, "log each model request (sizes and times, no content); also RIND_TRACE_LLM=1")
	return cmd
}

func serveACP(ctx context.Context, std *streams, f *common, trace bool) error {
	ignorePipe()
	wire := wireOf(std.out)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(40) // as for app-server: memory matters more here than collector time
	}
	p, err := compose(std, f, composition{trace: trace})
	if err != nil {
		return startup(err)
	}
	defer p.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sigs := make(chan os.Signal, 2)
	signal.Notify(sigs, append(endSignals(), os.Interrupt)...) // all of them count as the end of the input
	go func() {                                                // ends with the process
		<-sigs
		cancel()
		<-sigs
		os.Exit(exitOK) // what is left is left to the next process
	}()
	cfg := p.served()
	d := acp.New(acp.Config{
		Sessions: cfg.Sessions, Version: cfg.Version, Log: cfg.Log, ErrorID: cfg.ErrorID, Resolve: cfg.Resolve, Policy: cfg.Policy, Undo: cfg.Undo,
		Guide: cfg.Guide, Images: p.takesImages,
	})
	if err := d.Serve(ctx, std.in, wire); err != nil {
		p.log.Warn("graceful end", "err", err)
	}
	return nil
}

// takesImages reports whether the settings name a model that takes images.
func (p *process) takesImages() bool {
	set, err := p.settings()
	if err != nil {
		return false
	}
	for _, name := range set.Names(p.env) {
		pr, _, err := p.models.provider(name)
		if err == nil && pr.Images != nil && *pr.Images {
			return true
		}
	}
	return false
}
