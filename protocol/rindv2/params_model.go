package rindv2

import (
	"strings"
	"unicode"

	"github.com/rind-dev/rind/protocol"
)

// ModelListParams are those of model/list (section 4.6).
type ModelListParams struct {
	Target
	Refresh       bool   `json:"refresh,omitempty"`
	WorkspaceRoot string `json:"workspace_root,omitempty"`
}

// Read takes whether to ask the provider again.
func (m *ModelListParams) Read(p Params) error {
	if err := m.Target.Read(p); err != nil {
		return err
	}
	m.Refresh = p.Bool("refresh")
	return p.fill(field{"workspace_root", &m.WorkspaceRoot})
}

// ModelSetParams are those of model/set; model is the older name of model_id.
type ModelSetParams struct {
	Target
	Model      string `json:"model,omitempty"`
	ModelID    string `json:"model_id,omitempty"`
	ProviderID string `json:"provider_id,omitempty"`
}

// Read takes a model; Model is set, whichever name it was given by.
func (m *ModelSetParams) Read(p Params) error {
	if err := m.Target.Read(p); err != nil {
		return err
	}
	name, ok := p.Name("model")
	if !ok {
		name, ok = p.Name("model_id")
	}
	switch {
	case !ok:
		return Bad("model/set requires model.")
	case !ValidModel(name):
		return Bad("Model name must be 1 to 128 characters without spaces.")
	}
	m.Model = name
	return p.fill(field{"provider_id", &m.ProviderID})
}

// ValidModel reports whether a model may be called so: 1 to 128 characters without spaces.
func ValidModel(name string) bool {
	return name != "" && protocol.CharLen(name) <= 128 && !strings.ContainsFunc(name, unicode.IsSpace)
}

// Efforts are the reasoning efforts a model may know.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// EffortParams are those of model/effort.
type EffortParams struct {
	Target
	ReasoningEffort string `json:"reasoning_effort"`
}

// Read takes an effort.
func (e *EffortParams) Read(p Params) (err error) {
	if err := e.Target.Read(p); err != nil {
		return err
	}
	name, ok := p.Name("reasoning_effort")
	if !ok {
		return Bad("model/effort requires reasoning_effort.")
	}
	e.ReasoningEffort, err = p.word("reasoning_effort", "", "Unsupported reasoning effort: "+protocol.Prefix(name, 100), Efforts...)
	return err
}

// LoginParams are those of rind/auth/login (section 4.10).
type LoginParams struct {
	ProviderID    string `json:"provider_id"`
	Method        string `json:"method,omitempty"` // default api_key
	WorkspaceRoot string `json:"workspace_root,omitempty"`
}

// Read takes a provider.
func (l *LoginParams) Read(p Params) (err error) {
	if l.ProviderID, err = p.need("provider_id", "rind/auth/login requires provider_id."); err != nil {
		return err
	}
	l.Method = "api_key"
	return p.fill(field{"method", &l.Method}, field{"workspace_root", &l.WorkspaceRoot})
}

// LogoutParams are those of rind/auth/logout.
type LogoutParams struct {
	ProviderID string `json:"provider_id"`
}

// Read takes a provider.
func (l *LogoutParams) Read(p Params) (err error) {
	l.ProviderID, err = p.need("provider_id", "rind/auth/logout requires provider_id.")
	return err
}

// FolderParams are those of rind/folder_defaults/get.
type FolderParams struct {
	WorkspaceRoot string `json:"workspace_root,omitempty"`
}

// Read takes a folder.
func (f *FolderParams) Read(p Params) error { return p.fill(field{"workspace_root", &f.WorkspaceRoot}) }

// FolderSetParams are those of rind/folder_defaults/set: provider and model together, an effort, or all three.
type FolderSetParams struct {
	FolderParams
	ProviderID      string `json:"provider_id,omitempty"`
	ModelID         string `json:"model_id,omitempty"`
	ReasoningEffort string `json:"reasoning_effort,omitempty"`
}

// Read takes the defaults of a folder.
func (f *FolderSetParams) Read(p Params) error {
	if err := f.FolderParams.Read(p); err != nil {
		return err
	}
	if err := p.fill(field{"provider_id", &f.ProviderID}, field{"model_id", &f.ModelID}, field{"reasoning_effort", &f.ReasoningEffort}); err != nil {
		return err
	}
	if (f.ProviderID == "") != (f.ModelID == "") || f.ModelID == "" && f.ReasoningEffort == "" {
		return Bad("rind/folder_defaults/set requires provider_id and model_id together, or reasoning_effort.")
	}
	return nil
}

// FolderUnsetParams are those of rind/folder_defaults/unset.
type FolderUnsetParams struct {
	FolderParams
	Group string `json:"group" enum:"model,reasoning_effort"`
}

// Read takes what is to be forgotten.
func (f *FolderUnsetParams) Read(p Params) (err error) {
	if err := f.FolderParams.Read(p); err != nil {
		return err
	}
	bad := "group must be model or reasoning_effort."
	f.Group, err = p.word("group", bad, bad, "model", "reasoning_effort")
	return err
}

// FolderResolveParams are those of rind/folder_defaults/resolve.
type FolderResolveParams struct {
	WorkspaceRoots []string `json:"workspace_roots"`
}

// Read takes folders.
func (f *FolderResolveParams) Read(p Params) (err error) {
	if f.WorkspaceRoots, err = p.texts("workspace_roots"); err == nil && f.WorkspaceRoots == nil {
		err = Bad("workspace_roots must be a list of strings.")
	}
	return err
}
