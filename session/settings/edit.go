package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// UnknownKeyError says that no setting has this name.
type UnknownKeyError struct{ Key string }

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("There is no setting %s; docs/settings.md lists them.", quote(e.Key))
}

// ValueError says why a value does not fit its setting. It does not repeat the value.
type ValueError struct{ Key, Reason string }

func (e *ValueError) Error() string { return e.Key + " " + e.Reason + "." }

// find takes a key apart: its path of members, and its row. "providers.NAME.model" is a member of one provider; one more name
// addresses one member of a map ("headers.X-Team").
func find(key string) ([]string, Row, error) {
	path, rows := strings.Split(key, "."), top
	depth := 0
	if path[0] == "providers" && len(path) > 1 {
		if why := isName(path[1]); why != "" {
			return nil, Row{}, &ValueError{"the provider's name in " + quote(key), why}
		}
		if len(path) == 2 {
			return path, Row{Key: key, Type: "object"}, nil
		}
		rows, depth = perProvider, 2
	}
	r, ok := rowOf(rows, path[depth])
	if !ok {
		return nil, Row{}, &UnknownKeyError{key}
	}
	rest := path[depth+1:]
	r.Key = key
	switch {
	case len(rest) == 0:
	case r.Type == "map":
		// What follows is one name, dots and all: hosts, headers and paths have dots.
		path = append(path[:depth+1:depth+1], strings.Join(rest, "."))
		r.Type, r.check = "string", nil
	case path[depth] == "mcpServers" && len(rest) == 1: // one server
	default:
		return nil, Row{}, &UnknownKeyError{key}
	}
	return path, r, nil
}

// Set changes one setting in the file at path, making the file where it is missing. value is what a person types: the text of a
// string, JSON of everything else. Members it does not touch keep their order and form, unknown ones too. The value is checked
// first; then the file is replaced in one step, mode 0600. Errors: *UnknownKeyError, *ValueError, *Error for a file that
// cannot be read, else of the file system. The last of two writers at the same moment wins.
func Set(path, key, value string) error {
	members, row, err := find(key)
	if err != nil {
		return err
	}
	raw := []byte(value)
	if row.Type == "string" {
		raw = literal(value)
	}
	n, bad := scan(raw)
	if bad != nil {
		why := "must be JSON: " + bad.reason
		if row.Type == "integer" || row.Type == "boolean" { // no form of JSON that a person would have to know
			why = row.judge(node{}, nil)
		}
		return &ValueError{key, why}
	}
	if why := row.judge(n, raw); why != "" {
		return &ValueError{key, why}
	}
	return change(path, key, func(src []byte, root node) []byte { return put(src, root, members, bytes.TrimSpace(raw), 0) })
}

// Unset removes one setting from the file at path; one that is not there is no error.
func Unset(path, key string) error {
	members, _, err := find(key)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return change(path, key, func(src []byte, root node) []byte { return drop(src, root, members) })
}

// Get gives one setting of the file at path as a person would type it, and whether the file has it; else its default. Keys and
// what else is secret are masked.
func Get(path, key string) (value string, set bool, err error) {
	members, row, err := find(key)
	if err != nil {
		return "", false, err
	}
	src, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return row.Default, false, nil
	}
	if err != nil {
		return "", false, err
	}
	if _, err := Parse(path, src); err != nil {
		return "", false, err
	}
	src, _ = decode(path, src)
	at, _ := scan(src)
	for _, name := range members {
		m, ok := at.get(name)
		if !ok || m.value.kind == null {
			return row.Default, false, nil
		}
		at = m.value
	}
	return show(members, row, src, at), true, nil
}

// show writes the value that path leads to, with what is secret masked.
func show(path []string, row Row, src []byte, n node) string {
	var v any
	_ = json.Unmarshal(src[n.start:n.end], &v) // scanned already
	switch {
	case path[0] == "providers" && len(path) == 1:
		if all, ok := v.(map[string]any); ok {
			for _, p := range all {
				hideProvider(p)
			}
		}
	case path[0] == "providers" && len(path) == 2:
		hideProvider(v)
	default:
		v = hide(v, row.Secret)
	}
	if s, ok := v.(string); ok {
		return s
	}
	return string(literal(v))
}

// hideProvider masks the secret members of one entry of `providers`, and those it does not know.
func hideProvider(v any) {
	members, _ := v.(map[string]any)
	for k := range members {
		r, known := rowOf(perProvider, k)
		members[k] = hide(members[k], !known || r.Secret)
	}
}

func hide(v any, secret bool) any {
	switch v := v.(type) {
	case string:
		if secret {
			return Mask(v)
		}
		return withoutPassword(v)
	case []any:
		for i := range v {
			v[i] = hide(v[i], secret)
		}
	case map[string]any:
		for k := range v {
			v[k] = hide(v[k], secret)
		}
	}
	return v
}

// Mask shortens a secret to what tells two of them apart. References to variables and the empty text are no secrets.
func Mask(s string) string {
	switch {
	case s == "" || variable().MatchString(s):
		return s
	case len(s) >= 20:
		return "…" + s[len(s)-4:]
	}
	return "…"
}

func withoutPassword(s string) string {
	if u, err := url.Parse(s); err == nil && u.User != nil {
		return u.Redacted()
	}
	return s
}

// change reads the file, lets edit make new text of it, checks that and replaces the file.
func change(path, key string, edit func(src []byte, root node) []byte) error {
	src, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		src, err = []byte("{}\n"), nil
	}
	if err == nil {
		src, err = decode(path, src)
	}
	if err != nil {
		return err
	}
	root, bad := scan(src)
	if bad == nil && root.kind != object {
		bad = &fault{root.start, "it must be an object"}
	}
	if bad != nil {
		return faultAt(path, src, bad)
	}
	out := edit(src, root)
	if bytes.Equal(out, src) {
		return nil
	}
	if _, err := Parse(path, out); err != nil {
		return err // something else in the file is wrong, or a member of the path is no object
	}
	if err := replace(path, out); err != nil {
		return fmt.Errorf("write setting %s: %w", key, err)
	}
	return nil
}

// replace puts data in place of the file at path in one step: whoever reads sees the old file or the new one. Where path is a link the
// file it names is replaced and the link stays.
func replace(path string, data []byte) (err error) {
	path, err = target(path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".settings-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// target is the file that a link leads to, which need not be there yet.
func target(path string) (string, error) {
	for range 40 {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real, nil
		}
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // it is no link: a file that is to be made
		}
		if !filepath.IsAbs(to) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return "", fmt.Errorf("the links of %s go round in circles", path)
}

// put gives src with the member that path leads to set to raw, making the objects on the way.
func put(src []byte, obj node, path []string, raw []byte, depth int) []byte {
	m, ok := obj.get(path[0])
	if ok && len(path) > 1 && m.value.kind == object {
		return put(src, m.value, path[1:], raw, depth+1)
	}
	for i := len(path) - 1; i > 0; i-- {
		raw = []byte("{" + string(literal(path[i])) + ": " + string(raw) + "}")
	}
	if ok {
		return splice(src, m.value.start, m.value.end, raw)
	}
	added := string(literal(path[0])) + ": " + string(raw)
	if n := len(obj.members); n > 0 {
		last := obj.members[n-1]
		return splice(src, last.value.end, last.value.end, []byte(","+lead(src, obj, last)+added))
	}
	indent := strings.Repeat("  ", depth)
	return splice(src, obj.start, obj.end, []byte("{\n"+indent+"  "+added+"\n"+indent+"}"))
}

// lead is the white space that stands before a member: a new one gets the same.
func lead(src []byte, obj node, m member) string {
	from := m.keyStart
	for from > obj.start+1 && strings.IndexByte(" \t\r\n", src[from-1]) >= 0 {
		from--
	}
	if from == m.keyStart {
		return " "
	}
	return string(src[from:m.keyStart])
}

// drop gives src without the member that path leads to.
func drop(src []byte, obj node, path []string) []byte {
	for i, m := range obj.members {
		switch {
		case m.key != path[0]:
		case len(path) > 1:
			if m.value.kind == object {
				return drop(src, m.value, path[1:])
			}
		case i > 0:
			return splice(src, obj.members[i-1].value.end, m.value.end, nil)
		case len(obj.members) > 1:
			return splice(src, m.keyStart, obj.members[1].keyStart, nil)
		default:
			return splice(src, obj.start+1, obj.end-1, nil)
		}
	}
	return src
}

func splice(src []byte, from, to int, with []byte) []byte {
	return bytes.Join([][]byte{src[:from], with, src[to:]}, nil)
}

// literal writes a value as JSON, < and & as they are.
func literal(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // strings, and what came out of JSON, always go in again
	return bytes.TrimSpace(b.Bytes())
}
