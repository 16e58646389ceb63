package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session/settings"
)

// common are the flags of every command that works on a store.
type common struct {
	cwd        string
	sessionDir string
	debug      bool
}

func (c *common) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&c.cwd, "cwd", "", "workspace folder (default: the current one)")
	fl.StringVar(&c.sessionDir, "session-dir", "", "folder of the session store (default: sessions in the data folder)")
	fl.BoolVar(&c.debug, "debug", false, "write the log to standard error as well")
}

// chosen are the flags of the commands a person talks with, prompt and chat: which session, and what answers it.
type chosen struct {
	common
	session  string
	latest   bool
	model    string
	provider string
	mode     string
}

func (c *chosen) bind(cmd *cobra.Command) {
	c.common.bind(cmd)
	fl := cmd.Flags()
	fl.StringVar(&c.session, "session", "", "go on with this session")
	fl.BoolVarP(&c.latest, "resume-latest", "c", false, "go on with the newest session of this folder")
	fl.StringVar(&c.model, "model", "", "model to use")
	fl.StringVar(&c.provider, "provider", "", "provider to use, by its name in the settings")
	fl.StringVar(&c.mode, "mode", "", "approval mode: ask, edit, read or full")
}

func (c *chosen) check() error {
	switch c.mode {
	case "", "ask", "edit", "read", "full":
	default:
		return usageError{fmt.Errorf("--mode must be ask, edit, read or full, not %q", c.mode)}
	}
	if c.session != "" && !protocol.ValidSessionID(c.session) {
		return exitf(exitUsage, "Invalid session id.")
	}
	return nil
}

// fill completes what the flags name: the session, and the model of a provider that is named alone.
func (c *chosen) fill(ctx context.Context, rt *process) error {
	if c.provider != "" && c.model == "" {
		p, _, err := rt.models.provider(c.provider)
		if err != nil {
			return asExit(err)
		}
		c.model = p.Model
	}
	if c.session == "" {
		return nil
	}
	id, err := rt.named(ctx, c.session)
	c.session = string(id)
	return err
}

// traceFlag is --trace-llm, which a variable of the environment can give too.
func traceFlag(cmd *cobra.Command, trace *bool) {
	cmd.Flags().BoolVar(trace, "trace-llm", truthy(os.Getenv("RIND_TRACE_LLM")), "log each model request (sizes and times, no content); also RIND_TRACE_LLM=1")
	cmd.Flags().Lookup("trace-llm").DefValue = "false" // what --help says does not depend on the environment
}

func truthy(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// useData makes a folder the process's data folder, as RIND_HOME would: that is the one place from which every part learns of it.
func useData(dir string) error {
	dir, err := settings.Expand(dir, os.LookupEnv)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err == nil {
		err = os.Setenv("RIND_HOME", dir)
	}
	return err
}
