package settings

import (
	"maps"
	"slices"
)

// edit makes new text of a file's; root is src scanned.
type edit = func(src []byte, root node) []byte

// inOrder makes one change of several.
func inOrder(edits ...edit) edit {
	return func(src []byte, root node) []byte {
		for _, e := range edits {
			src = e(src, root)
			root, _ = scan(src) // what an edit makes of an object is one
		}
		return src
	}
}

func putting(raw []byte, path ...string) edit {
	return func(src []byte, root node) []byte { return put(src, root, path, raw, 0) }
}

func dropping(path ...string) edit {
	return func(src []byte, root node) []byte { return drop(src, root, path) }
}

// dropEmpty drops the object that path leads to where nothing is left in it, then the one around it, and so on.
func dropEmpty(path ...string) edit {
	return func(src []byte, root node) []byte {
		for n := len(path); n > 0; n-- {
			at, found := root, true
			for _, name := range path[:n] {
				m, ok := at.get(name)
				at, found = m.value, found && ok
			}
			if !found || at.kind != object || len(at.members) > 0 {
				return src
			}
			src = drop(src, root, path[:n])
			root, _ = scan(src)
		}
		return src
	}
}

// SetKey writes a provider's key into the file at path, in place of a reference to the keyring; where key is "" it writes that the key is in
// the keyring, in place of a key. A file that selects no provider then selects this one: it is the one somebody just logged in to. Errors
// as Set has them, and those of Named.
func SetKey(path, provider, key string) error {
	s, err := Load(path)
	if err != nil {
		return err
	}
	if _, err := s.Named(provider); err != nil {
		return err
	}
	if why := isKey(key); why != "" || key != "" && key[0] == '$' {
		return &ValueError{"apiKey", "must be a key, without line breaks and without $ at its beginning"}
	}
	at := s.keyPlace(provider)
	edits := []edit{putting(literal(key), append(at, "apiKey")...), dropping(append(at, "keyring")...)}
	if key == "" {
		edits = []edit{dropping(append(at, "apiKey")...), putting([]byte("true"), append(at, "keyring")...)}
	}
	if !s.Configured() {
		edits = append(edits, putting(literal(provider), "provider"))
	}
	return change(path, "apiKey", inOrder(edits...))
}

// DropKey removes a provider's key from the file at path, and tells what was there: a key itself, a reference to the keyring. A name of a
// variable, and "" for none, stay: they are no keys.
func DropKey(path, provider string) (key, keyring bool, err error) {
	s, err := Load(path)
	if err != nil {
		return false, false, err
	}
	e, at := s.doc.entry, s.keyPlace(provider)
	if len(at) > 0 {
		e = s.doc.Providers[provider].entry
	}
	key, keyring = e.APIKey != nil && *e.APIKey != "" && !variable().MatchString(*e.APIKey), or(e.Keyring, false)
	var edits []edit
	if key {
		edits = append(edits, dropping(append(at, "apiKey")...))
	}
	if keyring {
		edits = append(edits, dropping(append(at, "keyring")...))
	}
	if len(edits) == 0 {
		return false, false, nil
	}
	if len(at) > 0 && isBuiltin(provider) { // an entry of another says that it exists
		edits = append(edits, dropEmpty(at...))
	}
	return key, keyring, change(path, "apiKey", inOrder(edits...))
}

// keyPlace is where a provider's key stands: at the top level, nil, where that describes it; else in its entry. The key of one that is built
// in gets an entry, so that it stays with it when another is selected.
func (s Settings) keyPlace(provider string) []string {
	_, entered := s.doc.Providers[provider]
	selected := provider == or(s.doc.Provider, DefaultProvider)
	described := s.doc.BaseURL != nil || s.doc.APIKey != nil || s.doc.Keyring != nil || s.doc.API != nil || s.doc.Headers != nil || s.doc.CAFile != nil ||
		s.doc.ContextWindow != nil || s.doc.Images != nil
	if !entered && selected && (described || !isBuiltin(provider)) {
		return nil
	}
	return []string{"providers", provider}
}

func isBuiltin(name string) bool {
	for _, b := range builtin {
		if b.Name == name {
			return true
		}
	}
	return false
}

// Login lists the providers one can log in to, sorted as Names sorts: those that can be selected and take a key, and all that are built in.
func (s Settings) Login(env Env) []string {
	all := map[string]bool{}
	for _, n := range s.Names(env) {
		if p, err := s.Named(n); err == nil && p.NeedsKey() {
			all[n] = true
		}
	}
	for _, b := range builtin {
		all[b.Name] = true
	}
	return slices.Sorted(maps.Keys(all))
}
