package settings

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// check holds a scanned file against the table. It gives the first thing that is wrong, and the members nobody knows.
func check(src []byte, root node) (unknown []Unknown, _ *fault) {
	if root.kind != object {
		return nil, &fault{root.start, "it must be an object"}
	}
	unknown, err := checkMembers(src, root, top, "")
	if err != nil {
		return nil, err
	}
	if m, ok := root.get("providers"); ok && m.value.kind == object {
		for _, p := range m.value.members {
			prefix := "providers." + p.key
			if why := isName(p.key); why != "" {
				return nil, &fault{p.keyStart, "the provider's name " + quote(p.key) + " " + why}
			}
			if p.value.kind != object {
				return nil, &fault{p.value.start, prefix + " must be an object"}
			}
			more, err := checkMembers(src, p.value, perProvider, prefix+".")
			if err != nil {
				return nil, err
			}
			unknown = append(unknown, more...)
		}
	}
	slices.SortFunc(unknown, func(a, b Unknown) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Col - b.Col
	})
	return unknown, nil
}

func checkMembers(src []byte, obj node, rows []Row, prefix string) (unknown []Unknown, _ *fault) {
	for _, m := range obj.members {
		r, ok := rowOf(rows, m.key)
		if !ok {
			line, col := place(src, m.keyStart)
			unknown = append(unknown, Unknown{Key: prefix + m.key, Line: line, Col: col})
			continue
		}
		if m.value.kind == null {
			continue // as if it were not there
		}
		if why := r.judge(m.value, src[m.value.start:m.value.end]); why != "" {
			return nil, &fault{m.value.start, prefix + m.key + " " + why}
		}
	}
	return unknown, nil
}

// judge tells what is wrong with a value, "" for nothing. raw is valid JSON of the node's kind.
func (r Row) judge(n node, raw []byte) string {
	want, words := byte(text), "must be a string"
	switch r.Type {
	case "integer":
		want, words = number, "must be a whole number"
	case "boolean":
		want, words = truth, "must be true or false"
	case "list":
		want, words = array, "must be a list of strings"
	case "map":
		want, words = object, "must be an object of strings"
	case "object":
		want, words = object, "must be an object"
	}
	if n.kind != want {
		return words
	}
	if r.Type == "list" && slices.ContainsFunc(n.items, func(i node) bool { return i.kind != text }) {
		return words
	}
	if r.Type == "map" && slices.ContainsFunc(n.members, func(m member) bool { return m.value.kind != text }) {
		return words
	}
	var value any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&value); err != nil {
		return "is not JSON"
	}
	if s, ok := value.(string); ok && r.Enum != nil && !slices.Contains(r.Enum, s) {
		return "must be one of " + strings.Join(r.Enum, ", ")
	}
	if num, ok := value.(json.Number); ok {
		if _, err := strconv.Atoi(num.String()); err != nil {
			return words
		}
	}
	if r.check != nil {
		return r.check(value)
	}
	return ""
}

// fill decodes the members of a checked object into the fields of dst, a pointer to a struct, by their json tags, and exactly:
// encoding/json would also take a member whose name differs in case.
func fill(src []byte, obj node, dst any) { fillStruct(src, obj, reflect.ValueOf(dst).Elem()) }

func fillStruct(src []byte, obj node, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			fillStruct(src, obj, v.Field(i))
			continue
		}
		if m, ok := obj.get(f.Tag.Get("json")); ok && m.value.kind != null {
			// The table's check has seen the value: it fits, or the table and the struct disagree, which a test rules out.
			_ = json.Unmarshal(src[m.value.start:m.value.end], v.Field(i).Addr().Interface())
		}
	}
}
