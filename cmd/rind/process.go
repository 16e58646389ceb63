package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/record"
	"github.com/rind-dev/rind/session/settings"
	"github.com/rind-dev/rind/session/undo"
)

// process is one running program: settings, store, log file, sessions.
type process struct {
	*configuration
	root      string
	log       *slog.Logger
	record    *record.Log
	store     session.Store
	storeFile string
	all       *session.Sessions
	models    *models
	guide     session.Guide
	policy    session.Policy
	secret    func(path string) bool // of the policy: whether a file holds credentials
	kept      session.Images         // contents from before tools changed files
	children  *proc.Children
	servers   *toolRoster // servers of the Model Context Protocol
	hosts     *agentHosts
	sandbox   string   // what commands run in, in words
	sandboxed bool     // whether they run in one
	offered   []string // names of the tools that models are given
}

// begin finds where the process lives: its workspace and data folder, its log file and its settings.
func (rt *process) begin(std *streams, c *common, o composition) (settings.Settings, error) {
	env := os.LookupEnv
	ws, err := workspace(c.cwd, env)
	if err != nil {
		return settings.Settings{}, err
	}
	if rt.root, err = dataRoot(std.err, env, o.temporary); err != nil {
		return settings.Settings{}, err
	}
	file := record.Options{Path: filepath.Join(rt.root, "logs", "rind.log"), Level: slog.LevelInfo}
	if c.debug {
		file.Debug = std.err
	}
	if o.trace {
		file.Level = slog.LevelDebug
	}
	rt.record = record.New(file)
	rt.log = rt.record.Logger()
	rt.configuration = newConfiguration(filepath.Join(rt.root, settings.FileName), ws, env, rt.record)
	set, err := rt.settings()
	if err != nil {
		return set, exitf(exitConfig, "Configuration error: %s", messageOf(err))
	}
	rt.hide(set)
	return set, nil
}

// hide keeps the keys of every provider there is out of texts and of what commands get, whichever of them answers.
func (rt *process) hide(set settings.Settings) {
	for _, name := range set.Names(rt.env) {
		if p, err := set.Named(name); err == nil {
			rt.record.Add(p.Secrets(rt.env)...)
		}
	}
}

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
func dataRoot(stderr io.Writer, env settings.Env, temporary bool) (string, error) {
	root, err := settings.Root(env)
	if err == nil {
		err = settings.MakeRoot(root)
	}
	switch {
	case err == nil:
		return root, nil
	case !temporary:
		return "", exitf(exitFailed, "Startup error: %s", messageOf(err))
	}
	reason := err.Error()
	if root, err = os.MkdirTemp("", "rind-"); err != nil {
		return "", &exit{exitFailed, "Startup error: " + reason}
	}
	if err := settings.MakeRoot(root); err != nil {
		return "", exitf(exitFailed, "Startup error: %s", messageOf(err))
	}
	fmt.Fprintf(stderr, "rind: %s\nrind: this session is kept in %s only\n", plainLine(reason), root)
	return root, nil
}

// placeOfStore is the file of the store: in the data folder, or in the one --session-dir names.
func (rt *process) placeOfStore(named string) (string, error) {
	dir := filepath.Join(rt.root, "sessions")
	if named != "" {
		var err error
		if dir, err = settings.Expand(named, rt.env); err != nil {
			return "", exitf(exitFailed, "Startup error: %s", messageOf(err))
		}
	}
	return filepath.Join(dir, "rind.db"), nil
}

// locks is the folder in which instances hold their locks.
func (rt *process) locks() string { return filepath.Join(rt.root, "locks") }

// outputs is the folder of what tools of a session wrote.
func (rt *process) outputs(id session.SessionID) string {
	return filepath.Join(rt.root, "outputs", string(id))
}

// private are the folders that no command may look into.
func (rt *process) private() []string { return []string{rt.root, filepath.Dir(rt.storeFile)} }

// errorID puts an error into the log file and returns the id it is found by.
func (rt *process) errorID(err error) string { return rt.record.ErrorID(err) }

// keepChildren keeps account of the processes we start, and ends what runtimes that were killed left running. Nothing waits for that: its
// goroutine ends with it.
func (rt *process) keepChildren() {
	journal := filepath.Join(rt.locks(), "children")
	rt.children = proc.NewChildren(journal)
	go func() {
		if dead, err := proc.Sweep(journal); err != nil || dead > 0 {
			rt.log.Info("sweep of children", "dead_instances", dead, "err", err)
		}
	}()
}

// killPoint ends the process at a named point of a write: for chaos tests, which set RIND_TEST_KILL=point:n.
func killPoint(env settings.Env) func(string) {
	spec, ok := env("RIND_TEST_KILL")
	if !ok || spec == "" {
		return nil
	}
	return killAt(spec)
}

// pause waits between the tries of a model request; nil is the loop's own. Tests, which have no time, set RIND_TEST_PAUSES=0.
func pause(env settings.Env) func(context.Context, time.Duration) error {
	if none, _ := env("RIND_TEST_PAUSES"); none != "0" {
		return nil
	}
	return func(context.Context, time.Duration) error { return nil }
}

// undo puts back what tools wrote. alone: this process has the session not open itself.
func (rt *process) undo(alone bool) *undo.Undo {
	return undo.New(undo.Config{Store: rt.store, Images: rt.kept, Keep: true, Lease: alone, Secret: rt.secret})
}

// close ends the process's work: within 3 s, or what is left is left to the next process.
func (rt *process) close() {
	if rt.children != nil {
		rt.children.Refuse()
	}
	if rt.all != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		if err := rt.all.Shutdown(ctx); err != nil {
			rt.log.Warn("shutdown", "err", err)
		}
		cancel()
	}
	if rt.hosts != nil {
		rt.hosts.Close()
	}
	if rt.servers != nil {
		rt.servers.Close()
	}
	if rt.children != nil {
		if err := rt.children.KillAll(); err != nil {
			rt.log.Warn("end of children", "err", err)
		}
	}
	if rt.store != nil {
		if err := rt.store.Close(); err != nil {
			rt.log.Warn("close store", "err", err)
		}
	}
	if rt.record != nil {
		rt.record.Close()
	}
}
