package main

import (
	"os"
	"path/filepath"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/session/settings"
)

// served is what a dispatcher of this process is made of.
func (rt *process) served() dispatcher.Config {
	return dispatcher.Config{
		Sessions: rt.all, Workspace: rt.workspace, Version: version(), Log: rt.log, ErrorID: rt.errorID,
		Providers: rt.providers, Setup: rt.setup, HasDoc: hasDoc(rt.root), Resolve: rt.resolve,
		DataRoot: rt.root, Guide: rt.guide, Policy: rt.policy, Undo: rt.undo(false), Sandbox: rt.sandbox, Trust: rt.trust,
		Auth: rt.logins(), Folders: &folderDefaults{rt}, Executions: rt.executions(false),
	}
}

// resolve turns a folder named by a client into an absolute path without links.
func (rt *process) resolve(path string) (string, error) { return workspace(path, rt.env) }

// executions are the commands of the portable protocol. keep: sessions stay open between requests.
func (rt *process) executions(keep bool) *executions.Commands {
	return executions.New(executions.Config{
		Sessions: rt.all, Providers: rt.executionProviders(), Hosted: rt.hostedProviders, Version: version(), Keep: keep,
	})
}

// providers are what initialize shows of the configured providers.
func (rt *process) providers() []dispatcher.Provider {
	set, err := rt.settings()
	if err != nil {
		return []dispatcher.Provider{}
	}
	return rt.rows(set.Names(rt.env))
}

// rows describes providers by their names.
func (rt *process) rows(names []string) []dispatcher.Provider {
	out := []dispatcher.Provider{}
	for _, name := range names {
		pr, _, err := rt.models.provider(name)
		if err != nil {
			continue
		}
		row := dispatcher.Provider{ID: name, Name: name, Methods: []string{"api_key"}, Source: settings.FromNowhere}
		if source, err := pr.Source(rt.env); err == nil {
			row.Configured = true
			row.Source = source
		}
		out = append(out, row)
	}
	return out
}

// setup is what commands show of the settings.
func (rt *process) setup() dispatcher.Setup {
	var s dispatcher.Setup
	if _, err := os.Stat(rt.path); err == nil {
		s.SettingsFound = true
	}
	if pr, _, err := rt.models.provider(""); err == nil {
		s.BaseURL = pr.BaseURL
		source, err := pr.Source(rt.env)
		s.KeySet = err == nil && source != settings.FromNowhere
	}
	return s
}

// hasDoc reports whether a workspace, or the user, has a RIND.md.
func hasDoc(root string) func(string) bool {
	return func(workspace string) bool {
		for _, dir := range []string{workspace, root} {
			if info, err := os.Stat(filepath.Join(dir, "RIND.md")); err == nil && info.Mode().IsRegular() {
				return true
			}
		}
		return false
	}
}
