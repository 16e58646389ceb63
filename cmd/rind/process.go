package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/session/settings"
)

// workspace resolves --cwd.
func workspace(dir string, env settings.Env) (string, error) {
	shown := dir
	if dir == "" {
		shown = "."
	}
	path, err := settings.Expand(shown, env)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(path); err == nil && !info.IsDir() {
			err = errors.New("not a directory")
		}
	}
	if err != nil {
		return "", &exit{exitFailed, "Startup error: Workspace directory does not exist: " + shown}
	}
	return path, nil
}

// dataRoot finds and makes the data folder.
func (rt *process) dataRoot(stderr io.Writer, temporary bool) error {
	root, err := settings.Root(rt.env)
	if err == nil {
		err = settings.MakeRoot(root)
	}
	if err == nil {
		rt.root = root
		return nil
	}
	if !temporary {
		return exitf(exitFailed, "Startup error: %s", messageOf(err))
	}
	reason := err.Error()
	if rt.root, err = os.MkdirTemp("", "rind-"); err != nil {
		return &exit{exitFailed, "Startup error: " + reason}
	}
	if err := settings.MakeRoot(rt.root); err != nil {
		return exitf(exitFailed, "Startup error: %s", messageOf(err))
	}
	fmt.Fprintf(stderr, "rind: %s\nrind: this session is kept in %s only\n", oneLine(reason), rt.root)
	return nil
}

// killPoint ends the process at a named point of a write: for chaos tests, which set RIND_TEST_KILL=point:n.
func killPoint(env settings.Env) func(string) {
	spec, ok := env("RIND_TEST_KILL")
	if !ok || spec == "" {
		return nil
	}
	return killAt(spec)
}

// settings are the user's, with a trusted workspace's own laid over them.
func (rt *process) settings() (settings.Settings, error) {
	keptKeys.hideIn(rt.record)
	return loadSettings(rt.path, rt.workspace)
}

// hide keeps the keys of every provider there is out of texts and of what commands get, whichever of them answers.
func (rt *process) hide(set settings.Settings) {
	for _, name := range set.Names(rt.env) {
		if p, err := set.Named(name); err == nil {
			rt.record.Add(p.Secrets(rt.env)...)
		}
	}
}

func loadSettings(path, workspace string) (settings.Settings, error) {
	set, err := settings.Load(path)
	set = set.WithKeyring(keptKeys.key)
	if err != nil || set.TrustedWorkspaces()[workspace] == "" {
		return set, err
	}
	content, err := enabledBy(workspace)
	if err != nil { // nothing of it takes effect
		return set, nil
	}
	return set.With(content, workspace)
}

// trusts reports whether a person trusts what the workspace enables as it is now.
func (rt *process) trusts(workspace string) bool {
	set, err := settings.Load(rt.path)
	if err != nil || set.TrustedWorkspaces()[workspace] == "" {
		return false
	}
	content, err := enabledBy(workspace)
	return err == nil && set.Trusted(workspace, content)
}

// trust trusts the workspace as it is now.
func (rt *process) trust(workspace string) (dispatcher.Trusted, error) {
	content, err := enabledBy(workspace)
	if err != nil {
		return dispatcher.Trusted{}, err
	}
	if err := settings.Trust(rt.path, workspace, content); err != nil {
		return dispatcher.Trusted{}, err
	}
	return dispatcher.Trusted{Trusted: true, Files: content.Paths()}, nil
}

// served is what a dispatcher of this process is made of.
func (rt *process) served() dispatcher.Config {
	return dispatcher.Config{
		Sessions: rt.all, Workspace: rt.workspace, Version: version(), Log: rt.log, ErrorID: func(err error) string { return rt.record.ErrorID(err) },
		Providers: rt.providers, Setup: rt.setup, HasDoc: hasDoc(rt.root), Resolve: func(path string) (string, error) { return workspace(path, rt.env) },
		DataRoot: rt.root, Guide: rt.guide, Policy: rt.policy, Undo: rt.undo(false), Sandbox: rt.sandbox, Trust: rt.trust,
		Auth: rt.logins(), Folders: &folderDefaults{rt},
		Executions: rt.executions(false),
	}
}
