package dispatcher

import (
	"path/filepath"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// Folders keeps what new sessions in a folder begin with (docs/protocol/rind-v2.md section 4.10). Paths are absolute, links resolved; errors
// are told. Safe for concurrent use; it reads a file, and waits for nothing else.
type Folders interface {
	Folder(path string) (Folder, error)
	// Set sets the groups that d has; the others stay.
	Set(path string, d FolderDefaults) error
	// Unset removes a group of a folder's own: "model" or "reasoning_effort".
	Unset(path, group string) error
}

// FolderDefaults are what is set for one folder; members that are not are left out. Provider and model are one group.
type FolderDefaults struct {
	WorkspaceRoot   string `json:"workspace_root,omitempty"` // of inherited ones: the nearest folder above that has any
	Provider        string `json:"provider,omitempty"`
	Model           string `json:"model,omitempty"`
	ReasoningEffort string `json:"reasoning_effort,omitempty"`
}

// Folder is what holds in one folder.
type Folder struct {
	Own       FolderDefaults
	Inherited FolderDefaults
	// What a new session there begins with, and where that is from: "folder" (its own or inherited), "settings", "default".
	Resolved                  session.Selection
	ModelSource, EffortSource string
}

// folders answers where folders have no defaults.
func (k *call) folders() (Folders, bool) {
	f := k.c.d.cfg.Folders
	if f == nil {
		k.Fail(protocol.Errorf(protocol.UnsupportedOperation, "This runtime keeps no defaults of folders."))
	}
	return f, f != nil
}

// set is d, or null for a folder without any.
func (d FolderDefaults) set() []byte {
	if d == (FolderDefaults{}) {
		return []byte("null")
	}
	return protocol.MustMarshal(d)
}

func folderResult(f Folders, path string) (rindv2.Folder, error) {
	d, err := f.Folder(path)
	return rindv2.Folder{
		WorkspaceRoot: path, Folder: d.Own.set(), Inherited: d.Inherited.set(),
		Resolved: rindv2.FolderResolved{
			Provider: d.Resolved.Provider, Model: d.Resolved.Model, ReasoningEffort: d.Resolved.Effort, ModelSource: d.ModelSource, EffortSource: d.EffortSource,
		},
	}, err
}

// folder is a workspace_root that need not be there any more, if it is absolute: what was set for it can still be seen and removed.
func (c *Conn) folder(path string) (string, error) {
	abs, err := c.workspace(path)
	if err != nil && filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	return abs, err
}

func folderGet(k *call, p *rindv2.FolderParams) {
	if f, ok := k.folders(); ok {
		path, err := k.c.folder(p.WorkspaceRoot)
		if err != nil {
			k.Fail(err)
			return
		}
		k.Settle(folderResult(f, path))
	}
}

func folderSet(k *call, p *rindv2.FolderSetParams) {
	k.changeFolder(k.c.workspace, p.WorkspaceRoot, func(f Folders, path string) error {
		d := FolderDefaults{Provider: p.ProviderID, Model: p.ModelID, ReasoningEffort: p.ReasoningEffort}
		var model rindv2.ModelSetParams
		var effort rindv2.EffortParams
		if d.Model != "" {
			if err := model.Read(rindv2.Params{"model": protocol.MustMarshal(d.Model)}); err != nil {
				return err
			}
		}
		if d.ReasoningEffort != "" {
			if err := effort.Read(rindv2.Params{"reasoning_effort": protocol.MustMarshal(d.ReasoningEffort)}); err != nil {
				return err
			}
		}
		return f.Set(path, d)
	})
}

func folderUnset(k *call, p *rindv2.FolderUnsetParams) {
	k.changeFolder(k.c.folder, p.WorkspaceRoot, func(f Folders, path string) error { return f.Unset(path, p.Group) })
}

// changeFolder changes what is set for a folder, tells every connection, and answers with what holds there now.
func (k *call) changeFolder(find func(string) (string, error), root string, change func(f Folders, path string) error) {
	f, ok := k.folders()
	if !ok {
		return
	}
	path, err := find(root)
	if err != nil {
		k.Fail(err)
		return
	}
	k.Background(func() {
		if err := change(f, path); err != nil {
			k.Fail(err)
			return
		}
		k.c.d.tellAll("folder_defaults_changed", struct {
			WorkspaceRoot string `json:"workspace_root"`
		}{path})
		k.Settle(folderResult(f, path))
	})
}

// tellAll tells an event that is of no session to every connection that is initialized.
func (d *RuntimeDispatcher) tellAll(name string, fields any) {
	event := d.loose(name, "", fields)
	d.mu.Lock()
	conns := make([]*Conn, 0, len(d.conns))
	for c := range d.conns {
		conns = append(conns, c)
	}
	d.mu.Unlock()
	for _, c := range conns {
		c.mu.Lock()
		ready := c.ready
		c.mu.Unlock()
		if ready {
			c.out.event(protocol.Envelope{Event: event})
		}
	}
}

func folderResolve(k *call, p *rindv2.FolderResolveParams) {
	f, ok := k.folders()
	if !ok {
		return
	}
	res := rindv2.Folders{Folders: make([]rindv2.Folder, 0, len(p.WorkspaceRoots))}
	for _, root := range p.WorkspaceRoots {
		path, err := k.c.folder(root)
		var one rindv2.Folder
		if err == nil {
			one, err = folderResult(f, path)
		}
		if err != nil {
			k.Fail(err)
			return
		}
		res.Folders = append(res.Folders, one)
	}
	k.OK(res)
}

// folderApply sets a session to what holds in its workspace.
func folderApply(k *call, _ *rindv2.Target) {
	f, ok := k.folders()
	if !ok {
		return
	}
	k.inspect(func(v *session.View) {
		s, path, had := v.Session, v.Workspace, v.Sel
		k.Background(func() {
			d, err := f.Folder(path)
			want := d.Resolved
			answer := func(sel session.Selection, changed bool, applies string, err error) {
				k.Settle(rindv2.FolderApplied{ProviderID: sel.Provider, ModelID: sel.Model, ReasoningEffort: sel.Effort, Changed: changed, Applies: applies}, err)
			}
			if err != nil || had.Provider == want.Provider && had.Model == want.Model && had.Effort == want.Effort {
				answer(had, false, "now", err)
				return
			}
			s.Change(session.Change{Provider: &want.Provider, Model: &want.Model, Effort: &want.Effort, Source: "folder"},
				func(sel session.Selection, applies string, err error) { answer(sel, true, applies, err) })
		})
	})
}
