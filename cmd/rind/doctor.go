package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/settings"
)

func doctorCommand(std *streams) *cobra.Command {
	var c common
	var asJSON, offline bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check paths, settings, store and provider", Args: noArgs,
		Long: "Looks at everything a session needs and says what is wrong. It asks the provider for its list of models; --offline does not.\nExit code 1 when something is wrong.",
		RunE: func(cmd *cobra.Command, _ []string) error { return doctor(cmd.Context(), std, &c, asJSON, offline) },
	}
	c.bind(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	cmd.Flags().BoolVar(&offline, "offline", false, "do not connect to the provider")
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
	r.found = append(r.found, finding{check, state, oneLine(fmt.Sprintf(format, args...))})
}

func doctor(ctx context.Context, std *streams, c *common, asJSON, offline bool) error {
	r := &report{}
	r.add("version", "ok", "rind %s", version())
	root, err := settings.Root(os.LookupEnv)
	if err == nil {
		err = settings.MakeRoot(root)
	}
	if err != nil {
		r.add("data folder", "wrong", "%v", err)
		return r.show(std.out, asJSON)
	}
	r.add("data folder", mode(root, 0o077), "%s", root)
	set, err := settings.Load(filepath.Join(root, settings.FileName))
	if err != nil {
		r.add("settings", "wrong", "%v", err)
		return r.show(std.out, asJSON)
	}
	if _, err := os.Stat(set.Path); err != nil {
		r.add("settings", "ok", "%s (none yet: defaults)", set.Path)
	} else {
		r.add("settings", mode(set.Path, 0o077), "%s", set.Path)
	}
	for _, u := range set.Unknown() {
		r.add("settings", "warning", "unknown setting %s in line %d is ignored", u.Key, u.Line)
	}
	rt, err := compose(&streams{nil, io.Discard, std.err}, c, composition{})
	if err != nil {
		r.add("start", "wrong", "%s", messageOf(err))
		return r.show(std.out, asJSON)
	}
	defer rt.close()
	r.store(ctx, rt)
	r.provider(ctx, rt, set, offline)
	return r.show(std.out, asJSON)
}

// mode is a warning when others may look into what should be private.
func mode(path string, others os.FileMode) string {
	if info, err := os.Stat(path); err == nil && os.PathSeparator == '/' && info.Mode().Perm()&others != 0 {
		return "warning"
	}
	return "ok"
}

func (r *report) store(ctx context.Context, rt *process) {
	if info, err := os.Stat(rt.storePath()); err != nil {
		r.add("store", "ok", "%s (none yet)", rt.storePath())
		return
	} else if info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		r.add("store", "warning", "%s can be read by others: chmod 600 it", rt.storePath())
	}
	h, err := rt.store.Health(ctx)
	if err != nil {
		r.add("store", "wrong", "%v", err)
		return
	}
	r.add("store", "ok", "%s: %d sessions, %d entries, %.1f MiB, schema %d (readable from %d)", h.Path, h.Sessions, h.Entries, float64(h.Bytes)/(1<<20), h.WrittenBy, h.ReadableFrom)
	if h.Integrity != "ok" {
		r.add("store", "wrong", "integrity check: %s; copy the file away before you go on", h.Integrity)
	}
	page, _, err := rt.store.Sessions(ctx, session.Query{Limit: 200, All: true})
	if err != nil {
		r.add("sessions", "wrong", "%v", err)
		return
	}
	bad := 0
	for _, m := range page {
		s, err := rt.all.Open(ctx, m.ID)
		if err != nil {
			bad++
			r.add("sessions", "wrong", "%s cannot be read: %s", m.ID, messageOf(err))
			continue
		}
		s.Close()
	}
	if bad == 0 {
		r.add("sessions", "ok", "the newest %d can be read", len(page))
	}
}

func (r *report) provider(ctx context.Context, rt *process, set settings.Settings, offline bool) {
	p, variable, err := set.Selected(rt.env)
	if err != nil {
		r.add("provider", "wrong", "%s", messageOf(err))
		return
	}
	if variable != "" {
		r.add("provider", "ok", "%s (%s), because %s is set; model %s", p.Name, p.Type, variable, p.Model)
	} else {
		r.add("provider", "ok", "%s (%s), model %s", p.Name, p.Type, p.Model)
	}
	key, err := p.Key(rt.env)
	if err != nil {
		r.add("key", "warning", "%s Until then 'rind prompt' answers with the built-in demo, which is no AI, if nothing else is set.", messageOf(err))
		return
	}
	r.add("key", "ok", "from %s", key.Source)
	if p.Type != settings.OpenAIChat && p.Type != settings.OpenAIResponses && p.Type != settings.Anthropic {
		return
	}
	if offline {
		r.add("connection", "ok", "not tried (--offline)")
		return
	}
	began := time.Now()
	models, err := rt.models.listOpenAI(ctx, p)
	if err != nil {
		r.add("connection", "wrong", "%s: %s", p.BaseURL, messageOf(err))
		return
	}
	r.add("connection", "ok", "%s answered in %d ms and lists %d models", p.BaseURL, time.Since(began).Milliseconds(), len(models))
	for _, m := range models {
		if m.ID == p.Model {
			return
		}
	}
	r.add("model", "warning", "%s is not in that list", p.Model)
}

func (r *report) show(out io.Writer, asJSON bool) error {
	bad := 0
	if asJSON {
		enc := json.NewEncoder(out)
		for _, f := range r.found {
			if err := enc.Encode(f); err != nil {
				return err
			}
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
