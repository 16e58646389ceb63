package main

import (
	"context"

	"github.com/rind-dev/rind/session/record"
	"github.com/rind-dev/rind/session/settings"
)

// configuration is what this process goes by: the user's settings file, read anew each time, with a trusted workspace's own laid over it and
// the keys of the system's keyring. Safe for concurrent use.
type configuration struct {
	path      string // of the settings file
	workspace string
	env       settings.Env
	keys      *keyCache
	changing  chan struct{} // taken by whoever changes the file: of this process one at a time, since a change is read, edit and write
}

// newConfiguration makes one; log never shows a key it reads from the keyring.
func newConfiguration(path, workspace string, env settings.Env, log *record.Log) *configuration {
	return &configuration{path: path, workspace: workspace, env: env, keys: &keyCache{log: log}, changing: make(chan struct{}, 1)}
}

// settings are the user's, with a trusted workspace's own laid over them.
func (c *configuration) settings() (settings.Settings, error) {
	set, err := settings.Load(c.path)
	set = set.WithKeyring(c.keys.key)
	if err != nil || set.TrustedWorkspaces()[c.workspace] == "" {
		return set, err
	}
	content, err := enabledBy(c.workspace)
	if err != nil { // nothing of it takes effect
		return set, nil
	}
	return set.With(content, c.workspace)
}

// change runs f while nobody else of this process changes the settings.
func (c *configuration) change(ctx context.Context, f func() error) error {
	select {
	case c.changing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-c.changing }()
	return f()
}

// trusts reports whether a person trusts what a workspace enables as it is now.
func (c *configuration) trusts(workspace string) bool {
	set, err := settings.Load(c.path)
	if err != nil || set.TrustedWorkspaces()[workspace] == "" {
		return false
	}
	content, err := enabledBy(workspace)
	return err == nil && set.Trusted(workspace, content)
}

// trust trusts a workspace as it is now, and returns the files it enables.
func (c *configuration) trust(workspace string) ([]string, error) {
	content, err := enabledBy(workspace)
	if err != nil {
		return nil, err
	}
	if err := settings.Trust(c.path, workspace, content); err != nil {
		return nil, err
	}
	return content.Paths(), nil
}
