package main

import (
	"context"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/settings"
)

var _ session.WorkspaceModels = (*models)(nil)

// DefaultIn implements session.WorkspaceModels: what the settings select, under the defaults of the folder.
func (m *models) DefaultIn(workspace string) session.Selection {
	sel := m.Default()
	if m.agent != nil {
		return sel
	}
	set, err := m.settings()
	if err != nil {
		return sel
	}
	own, inherited, _ := set.Folder(workspace)
	return m.under(sel, own.Over(inherited))
}

var _ session.ProviderModels = (*models)(nil)

// DefaultOf implements session.ProviderModels.
func (m *models) DefaultOf(provider string) (model, effort string, ok bool) {
	p, _, err := m.provider(provider)
	return p.Model, p.ReasoningEffort, err == nil
}

// under lays a folder's defaults over a selection. An effort of the settings is meant for the provider selected there.
func (m *models) under(sel session.Selection, d settings.FolderDefaults) session.Selection {
	if d.Model != "" {
		if d.Provider != sel.Provider {
			sel.Effort = ""
			if p, _, err := m.provider(d.Provider); err == nil {
				sel.Effort = p.ReasoningEffort
			}
		}
		sel.Provider, sel.Model = d.Provider, d.Model
	}
	if d.ReasoningEffort != "" {
		sel.Effort = d.ReasoningEffort
	}
	return sel
}

// folderDefaults keeps defaults of folders in the settings file.
type folderDefaults struct{ rt *process }

var _ dispatcher.Folders = (*folderDefaults)(nil)

// Folder implements dispatcher.Folders.
func (f *folderDefaults) Folder(path string) (dispatcher.Folder, error) {
	set, err := f.rt.settings()
	if err != nil {
		return dispatcher.Folder{}, err
	}
	own, inherited, from := set.Folder(path)
	all := own.Over(inherited)
	out := dispatcher.Folder{
		Own:         dispatcher.FolderDefaults{Provider: own.Provider, Model: own.Model, ReasoningEffort: own.ReasoningEffort},
		Inherited:   dispatcher.FolderDefaults{WorkspaceRoot: from, Provider: inherited.Provider, Model: inherited.Model, ReasoningEffort: inherited.ReasoningEffort},
		Resolved:    f.rt.models.under(f.rt.models.Default(), all),
		ModelSource: "default", EffortSource: "default",
	}
	model, _ := set.Chosen()
	switch {
	case all.Model != "":
		out.ModelSource = "folder"
	case model:
		out.ModelSource = "settings"
	}
	switch {
	case all.ReasoningEffort != "":
		out.EffortSource = "folder"
	case out.Resolved.Effort != "":
		out.EffortSource = "settings"
	}
	return out, nil
}

// Set implements dispatcher.Folders. A provider that is not described is refused: a session could not use it.
func (f *folderDefaults) Set(path string, d dispatcher.FolderDefaults) error {
	if d.Provider != "" {
		if _, _, err := f.rt.models.provider(d.Provider); err != nil {
			return err
		}
	}
	return refusedValue(f.rt.change(context.Background(), func() error {
		return settings.SetFolder(f.rt.path, path, settings.FolderDefaults{Provider: d.Provider, Model: d.Model, ReasoningEffort: d.ReasoningEffort})
	}))
}

// Unset implements dispatcher.Folders.
func (f *folderDefaults) Unset(path, group string) error {
	return refusedValue(f.rt.change(context.Background(), func() error { return settings.UnsetFolder(f.rt.path, path, group) }))
}

// refusedValue makes an error of changing the settings one that a client is told.
func refusedValue(err error) error {
	if err == nil || protocol.KindOf(err) == protocol.ConfigurationError {
		return err
	}
	return protocol.Errorf(protocol.ConfigurationError, "The settings were not changed: %v", err)
}
