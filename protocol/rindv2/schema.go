package rindv2

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// Schema is the protocol as JSON Schema (2020-12): every type under $defs, and under methods the params and result of each. It tells
// what we write and what we read; what it does not name may be added at any time and is to be ignored (docs/compatibility.md). The text is
// the same for the same protocol, byte by byte.
func Schema() ([]byte, error) {
	s := describe()
	type method struct {
		Params any `json:"params"`
		Result any `json:"result"`
	}
	methods := map[string]method{}
	for _, m := range Methods() {
		methods[m.Name] = method{ref(reflect.TypeOf(m.Params).Elem().Name()), ref(reflect.TypeOf(m.Result).Name())}
	}
	defs := map[string]any{}
	for name, shape := range s.named {
		defs[name] = shape.schema()
	}
	doc, err := protocol.Marshal(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "rind v2", "$defs": defs, "methods": methods,
	})
	if err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, doc, "", "  "); err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func ref(name string) any { return map[string]any{"$ref": "#/$defs/" + name} }

func (s *shape) schema() any {
	if !s.null {
		return s.bare()
	}
	if s.word != "" && s.enum == nil && s.word != "any" {
		return map[string]any{"type": []string{s.word, "null"}}
	}
	return map[string]any{"anyOf": []any{s.bare(), map[string]any{"type": "null"}}}
}

func (s *shape) bare() any {
	switch {
	case s.word == "any":
		return map[string]any{}
	case s.enum != nil:
		return map[string]any{"type": "string", "enum": s.enum}
	case s.word != "":
		return map[string]any{"type": s.word}
	case s.items != nil:
		return map[string]any{"type": "array", "items": s.items.schema()}
	case s.values != nil:
		return map[string]any{"type": "object", "additionalProperties": s.values.schema()}
	case s.ref != "":
		return ref(s.ref)
	case s.oneOf != nil:
		of := make([]any, len(s.oneOf))
		for i, o := range s.oneOf {
			of[i] = o.schema()
		}
		return map[string]any{"anyOf": of}
	}
	o := map[string]any{"type": "object"}
	properties, required := map[string]any{}, []string{}
	for _, m := range s.fields {
		properties[m.name] = m.shape.schema()
		if !m.optional {
			required = append(required, m.name)
		}
	}
	if len(properties) > 0 {
		o["properties"] = properties
	}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

// TypeScript is the protocol as declarations for clients: an interface a type, Event for any event, and Methods from names to params and
// results. The text is the same for the same protocol, byte by byte.
func TypeScript() []byte {
	s := describe()
	var b bytes.Buffer
	b.WriteString("// The rind v2 protocol. Written by its codec, not by hand. Members that are not named here may appear at any time.\n")
	for _, name := range slices.Sorted(maps.Keys(s.named)) {
		shape := s.named[name]
		if shape.fields == nil {
			fmt.Fprintf(&b, "\nexport type %s = %s;\n", name, shape.script(""))
			continue
		}
		fmt.Fprintf(&b, "\nexport interface %s %s\n", name, shape.script(""))
	}
	b.WriteString("\nexport interface Methods {\n")
	for _, m := range Methods() {
		fmt.Fprintf(&b, "  %q: { params: %s; result: %s };\n", m.Name, reflect.TypeOf(m.Params).Elem().Name(), reflect.TypeOf(m.Result).Name())
	}
	b.WriteString("}\n")
	return b.Bytes()
}

func (s *shape) script(indent string) string {
	out := s.bareScript(indent)
	if s.null {
		out += " | null"
	}
	return out
}

func (s *shape) bareScript(indent string) string {
	switch {
	case s.enum != nil:
		quoted := make([]string, len(s.enum))
		for i, e := range s.enum {
			quoted[i] = fmt.Sprintf("%q", e)
		}
		return strings.Join(quoted, " | ")
	case s.word == "any":
		return "unknown"
	case s.word == "object":
		return "Record<string, unknown>"
	case s.word == "integer":
		return "number"
	case s.word != "":
		return s.word
	case s.items != nil:
		item := s.items.script(indent)
		if strings.Contains(item, " ") {
			item = "(" + item + ")"
		}
		return item + "[]"
	case s.values != nil:
		return "Record<string, " + s.values.script(indent) + ">"
	case s.ref != "":
		return s.ref
	case s.oneOf != nil:
		of := make([]string, len(s.oneOf))
		for i, o := range s.oneOf {
			of[i] = o.script(indent)
		}
		return strings.Join(of, " | ")
	}
	var b strings.Builder
	b.WriteString("{\n")
	for _, m := range s.fields {
		mark := ""
		if m.optional {
			mark = "?"
		}
		fmt.Fprintf(&b, "%s  %s%s: %s;\n", indent, m.name, mark, m.shape.script(indent+"  "))
	}
	b.WriteString(indent + "}")
	return b.String()
}
