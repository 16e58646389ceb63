package settings

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
)

// FolderDefaults is what new sessions in a folder begin with; "" is not set. Provider and Model are set together or not at all.
type FolderDefaults struct {
	Provider        string `json:"provider,omitempty"`
	Model           string `json:"model,omitempty"`
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
}

// Groups of FolderDefaults, as they are unset.
const (
	GroupModel  = "model" // provider and model
	GroupEffort = "reasoning_effort"
)

// Over lays d over what the folders above say.
func (d FolderDefaults) Over(above FolderDefaults) FolderDefaults {
	if d.Model == "" {
		d.Provider, d.Model = above.Provider, above.Model
	}
	if d.ReasoningEffort == "" {
		d.ReasoningEffort = above.ReasoningEffort
	}
	return d
}

// Folder tells what the settings say of a folder (absolute, links resolved): its own defaults, and those it inherits, of each group from
// the nearest folder above that has it. from is the nearest folder above that has any, "" for none.
func (s Settings) Folder(folder string) (own, inherited FolderDefaults, from string) {
	all := map[string]FolderDefaults{}
	if s.doc.FolderDefaults != nil {
		written := map[string]FolderDefaults{}
		_ = json.Unmarshal(s.doc.FolderDefaults, &written)       // the check has seen it
		for _, name := range slices.Sorted(maps.Keys(written)) { // of several names of a folder the plain one counts
			plain := filepath.Clean(name)
			if _, there := all[plain]; !there || name == plain {
				all[plain] = written[name]
			}
		}
	}
	folder = filepath.Clean(folder)
	own = all[folder]
	for at := folder; filepath.Dir(at) != at; {
		at = filepath.Dir(at)
		if d := all[at]; d != (FolderDefaults{}) {
			if from == "" {
				from = at
			}
			inherited = inherited.Over(d)
		}
	}
	return own, inherited, from
}

// SetFolder writes defaults of a folder into the file at path; groups that are not set in d stay. Errors as Set has them.
func SetFolder(path, folder string, d FolderDefaults) error {
	if why := folderWhy(folder, map[string]any{"provider": d.Provider, "model": d.Model, "reasoningEffort": d.ReasoningEffort}); why != "" {
		return &ValueError{"folderDefaults", why}
	}
	var edits []edit
	set := func(member, value string) {
		if value != "" {
			edits = append(edits, inFolder(folder, func(name string) edit { return putting(literal(value), "folderDefaults", name, member) }))
		}
	}
	set("provider", d.Provider)
	set("model", d.Model)
	set("reasoningEffort", d.ReasoningEffort)
	return change(path, "folderDefaults", inOrder(edits...))
}

// UnsetFolder removes one group of a folder's own defaults from the file at path; one that is not there is no error.
func UnsetFolder(path, folder, group string) error {
	members := []string{"provider", "model"}
	if group == GroupEffort {
		members = []string{"reasoningEffort"}
	}
	var edits []edit
	for _, m := range members {
		edits = append(edits, inFolder(folder, func(name string) edit { return dropping("folderDefaults", name, m) }))
	}
	edits = append(edits, inFolder(folder, func(name string) edit { return dropEmpty("folderDefaults", name) }))
	return change(path, "folderDefaults", inOrder(edits...))
}

// inFolder makes an edit of a folder's member under the name the file has for it: a person may have written it with a slash at its end.
func inFolder(folder string, of func(name string) edit) edit {
	folder = filepath.Clean(folder)
	return func(src []byte, root node) []byte {
		all, _ := root.get("folderDefaults")
		name := folder
		if _, plain := all.value.get(folder); !plain {
			for _, m := range all.value.members {
				if filepath.Clean(m.key) == folder {
					name = m.key
				}
			}
		}
		return of(name)(src, root)
	}
}

// Chosen tells whether the file says which model, and which effort, the selected provider is asked for.
func (s Settings) Chosen() (model, effort bool) {
	model, effort = s.Configured() || s.doc.Model != nil, s.doc.ReasoningEffort != nil
	if n, ok := s.doc.Providers[or(s.doc.Provider, DefaultProvider)]; ok {
		effort = effort || n.ReasoningEffort != nil
		model = true
	}
	return model, effort
}

func isFolders(v any) string {
	for folder, d := range v.(map[string]any) {
		members, ok := d.(map[string]any)
		if !ok {
			return "must map absolute paths to objects"
		}
		if why := folderWhy(folder, members); why != "" {
			return why
		}
	}
	return ""
}

func folderWhy(folder string, members map[string]any) string {
	if !filepath.IsAbs(folder) {
		return "must map absolute paths to objects"
	}
	set := func(name string) bool { return members[name] != nil && members[name] != "" }
	for _, name := range []string{"provider", "model", "reasoningEffort"} {
		if _, ok := members[name].(string); !ok && members[name] != nil {
			return name + " must be a string in each of its objects"
		}
	}
	switch {
	case set("provider") != set("model"):
		return "must have provider and model together"
	case set("provider") && isName(members["provider"]) != "":
		return "has a provider that is no name of one"
	case set("model") && isModel(members["model"]) != "":
		return "has a model that is not 1 to 128 characters without spaces"
	case set("reasoningEffort") && isWord(members["reasoningEffort"]) != "":
		return "has a reasoningEffort that is not one word"
	}
	return ""
}
