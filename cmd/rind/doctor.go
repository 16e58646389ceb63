package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/session/settings"
)

// doctorFlags are what rind doctor was asked for.
type doctorFlags struct {
	common
	json, online bool
	bundle       string
	yes, force   bool
}

func doctorCommand(std *streams) *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check paths, settings, store and workspace; make a bundle for a bug report", Args: noArgs,
		Long: "Looks at everything a session needs and says what is wrong. It connects to nothing; with --online it asks the provider for its\n" +
			"list of models. Exit code 1 when something is wrong.\n\n" +
			"--bundle FILE writes a .tar.gz to attach to a bug report, - for standard output: versions, settings without secrets, the end of the\n" +
			"log file, the state of the store, names of tools. No conversation, no file contents, no environment. What is in it is shown first.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.online && cmd.Flags().Changed("offline") {
				return usageError{errors.New("--offline and --online cannot be combined")}
			}
			if f.bundle == "" && (f.yes || f.force) {
				return usageError{errors.New("--yes and --force are for --bundle")}
			}
			if f.bundle != "" && f.json {
				return usageError{errors.New("--bundle and --json cannot be combined: the bundle holds the findings as JSON")}
			}
			if f.bundle != "" {
				return bundle(cmd.Context(), std, &f)
			}
			e := examine(cmd.Context(), std, &f)
			defer e.close()
			return e.report.show(std.out, f.json)
		},
	}
	f.bind(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.json, "json", false, "one JSON object a line")
	fl.BoolVar(&f.online, "online", false, "ask the provider for its list of models")
	fl.StringVar(&f.bundle, "bundle", "", "write a bundle for a bug report to `FILE`, - for standard output")
	fl.BoolVar(&f.yes, "yes", false, "with --bundle: do not ask")
	fl.BoolVar(&f.force, "force", false, "with --bundle: replace the file")
	fl.Bool("offline", false, "connect to nothing")
	_ = fl.MarkHidden("offline") // what it says holds anyway
	return cmd
}

// finding is one line of the report.
type finding struct {
	Check string `json:"check"`
	State string `json:"state"` // ok, warning, wrong
	Text  string `json:"text"`
}

type report struct{ found []finding }

func (r *report) add(check, state, format string, args ...any) {
	r.found = append(r.found, finding{check, state, plainLine(fmt.Sprintf(format, args...))})
}

// show writes the findings. An error says that one of them is wrong.
func (r *report) show(out io.Writer, asJSON bool) error {
	bad := 0
	if asJSON {
		if err := writeLines(out, r.found); err != nil {
			return err
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range r.found {
		if f.State == "wrong" {
			bad++
		}
		if !asJSON {
			fmt.Fprintf(w, "%s\t%s\t%s\n", f.State, f.Check, f.Text)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if bad > 0 {
		return exitf(exitFailed, "%d of the checks found something wrong", bad)
	}
	return nil
}

// examined is all that doctor found, as far as it came: each part is there unless a finding says why not.
type examined struct {
	*report
	root    string            // data folder, "" for none
	set     settings.Settings // of the user's file alone
	process *process          // nil when it could not be composed
}

func (e *examined) close() {
	if e.process != nil {
		e.process.close()
	}
}

// examine looks at everything. The caller closes what it returns.
func examine(ctx context.Context, std *streams, f *doctorFlags) *examined {
	r := &report{}
	e := &examined{report: r}
	r.add("version", "ok", "rind %s", version())
	root, err := settings.Root(os.LookupEnv)
	if err == nil {
		err = settings.MakeRoot(root)
	}
	if err != nil {
		r.add("data folder", "wrong", "%v", err)
		return e
	}
	e.root = root
	r.private("data folder", root, "chmod 700")
	set, err := settings.Load(filepath.Join(root, settings.FileName))
	if err != nil {
		r.add("settings", "wrong", "%v", err)
		return e
	}
	e.set = set
	if _, err := os.Stat(set.Path); err != nil {
		r.add("settings", "ok", "%s (none yet: defaults)", set.Path)
	} else {
		r.private("settings", set.Path, "chmod 600")
	}
	for _, u := range set.Unknown() {
		r.add("settings", "warning", "unknown setting %s in line %d is ignored", u.Key, u.Line)
	}
	rt, err := compose(&streams{nil, io.Discard, std.err}, &f.common, composition{})
	if err != nil {
		r.add("start", "wrong", "%s", messageOf(err))
		return e
	}
	e.process = rt
	r.store(ctx, rt)
	r.outputs(ctx, rt)
	r.workspace(ctx, rt, set)
	r.add("sandbox", "ok", "%s", inSandbox(rt.sandbox))
	in, err := rt.settings()
	if err != nil { // of the workspace: compose would have said so
		in = set
	}
	r.search(rt, in)
	r.servers(rt)
	r.agents(rt)
	r.provider(ctx, rt, in, f.online)
	return e
}

// private adds what should be its owner's alone: a warning when others may look into it.
func (r *report) private(check, path, mend string) {
	info, err := os.Stat(path)
	if err == nil && os.PathSeparator == '/' && info.Mode().Perm()&0o077 != 0 {
		r.add(check, "warning", "%s is open to other users of this machine (mode %04o). Run %s %s.", path, info.Mode().Perm(), mend, path)
		return
	}
	r.add(check, "ok", "%s", path)
}
