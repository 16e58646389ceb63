package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/dispatcher/acp"
	"github.com/rind-dev/rind/protocol/frame"
)

const acpUsage = "usage: rind acp [--agent \"CMD ARGS\"] [--pass-env NAME] [--cwd DIR] [--data DIR] [--session-dir DIR] [--max-line BYTES] [--unstable] [--acp-v2] [--debug] [--trace-llm] [-h]"

// acpCommand serves an editor over the Agent Client Protocol on standard input and output (docs/protocol/acp.md section 1).
func acpCommand(std *streams) *cobra.Command {
	var f common
	var o acpOptions
	var data, agent string
	var pass []string
	misused := func(args ...string) error {
		fmt.Fprintf(std.err, "%s (unrecognized: %s)\n", acpUsage, plainLine(strings.Join(args, " ")))
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
				if err := useData(data); err != nil {
					return misused("--data " + data)
				}
			}
			if o.maxLine < minLine || o.maxLine > maxLine {
				return misused(fmt.Sprintf("--max-line %d", o.maxLine))
			}
			switch {
			case cmd.Flags().Changed("agent"):
				spec, err := agentOf(agent, pass)
				if err != nil {
					return misused(err.Error())
				}
				o.agent = spec
			case len(pass) > 0:
				return misused("--pass-env without --agent")
			}
			return serveACP(cmd.Context(), std, &f, o)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return misused(flagOf(err)) })
	f.bind(cmd)
	cmd.Flags().StringVar(&data, "data", "", "data folder (default: RIND_HOME, else ~/.rind)")
	cmd.Flags().StringVar(&agent, "agent", "", "host this ACP agent: its command line answers every session (docs/hosting.md)")
	cmd.Flags().StringArrayVar(&pass, "pass-env", nil, "environment variable the hosted agent gets too; repeatable, commas allowed")
	cmd.Flags().IntVar(&o.maxLine, "max-line", frame.MaxBytes, "bytes of the longest line that is read")
	cmd.Flags().BoolVar(&o.unstable, "unstable", false, "offer session/fork, which is no part of the stable protocol")
	cmd.Flags().BoolVar(&o.draft, "acp-v2", false, "answer version 2, a draft, to a client that asks for it")
	traceFlag(cmd, &o.trace)
	return cmd
}

// acpOptions are the flags that only this command has.
type acpOptions struct {
	maxLine                int
	unstable, draft, trace bool
	agent                  *agentSpec // hosted, for every session; nil for none
}

// Bounds of --max-line: what any request of an editor needs, and what one line may cost.
const (
	minLine = 4 << 10
	maxLine = 1 << 30
)

func serveACP(ctx context.Context, std *streams, f *common, o acpOptions) error {
	ctx, cancel := spawned(ctx, append(endSignals(), os.Interrupt)) // all of them count as the end of the input
	defer cancel()
	wire := wireOf(std.out)
	p, err := compose(std, f, composition{trace: o.trace, agent: o.agent})
	if err != nil {
		return startup(err)
	}
	defer p.close()
	cfg := p.served()
	d := acp.New(acp.Config{
		Sessions: cfg.Sessions, Version: cfg.Version, Log: cfg.Log, ErrorID: cfg.ErrorID, Resolve: cfg.Resolve, Policy: cfg.Policy, Undo: cfg.Undo,
		Guide: cfg.Guide, Images: p.takesImages, Servers: p.servers,
		DataRoot: cfg.DataRoot, FileSize: sizeWithin, MaxLine: o.maxLine, Unstable: o.unstable, Draft: o.draft,
		ClientFiles:    func() bool { set, err := p.settings(); return err == nil && set.ClientFiles() == "auto" },
		ClientTerminal: func() bool { set, err := p.settings(); return err == nil && set.ClientTerminal() == "auto" },
		Trust:          cfg.Trust,
	})
	if err := d.Serve(ctx, std.in, wire); err != nil {
		p.log.Warn("graceful end", "err", err)
	}
	return nil
}

// sizeWithin is the size of a regular file in one of the folders.
func sizeWithin(folders []string, path string) (int64, bool) {
	for _, folder := range folders {
		f, err := openFile(folder, path)
		if err != nil {
			continue
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			return info.Size(), true
		}
	}
	return 0, false
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
