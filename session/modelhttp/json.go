package modelhttp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Loose is text from a field that some server fills with something else: a string is taken as it is, null is empty, a list of parts
// is the text of its parts, and anything else is its JSON. So one odd field does not cost the whole answer.
type Loose string

// UnmarshalJSON implements json.Unmarshaler.
func (l *Loose) UnmarshalJSON(j []byte) error {
	switch {
	case len(j) == 0 || bytes.Equal(j, []byte("null")):
		return nil
	case j[0] == '"':
		if inner := j[1 : len(j)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) { // nearly all of them
			*l = Loose(inner)
			return nil
		}
		var s string
		err := json.Unmarshal(j, &s)
		*l = Loose(s)
		return err
	case j[0] == '[':
		var parts []struct {
			Text *string `json:"text"`
			Msg  *string `json:"msg"`
		}
		if json.Unmarshal(j, &parts) == nil && len(parts) > 0 {
			for _, p := range parts {
				for _, s := range []*string{p.Text, p.Msg} {
					if s != nil {
						*l += Loose(*s)
					}
				}
			}
			if *l != "" {
				return nil
			}
		}
	}
	*l = Loose(bytes.Clone(j))
	return nil
}

// Marshal writes a value as a request carries it: <, > and & stay as they are.
func Marshal(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// WellFormed makes JSON from outside fit for strict readers: valid UTF-8, no half of a surrogate pair. What is so already stays to the
// byte; what is no JSON is nil.
func WellFormed(j json.RawMessage) json.RawMessage {
	if utf8.Valid(j) && !bytes.Contains(j, []byte(`\ud`)) && !bytes.Contains(j, []byte(`\uD`)) {
		return bytes.Clone(j)
	}
	dec := json.NewDecoder(bytes.NewReader(j))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	out, err := Marshal(v)
	if err != nil {
		return nil
	}
	return out
}

// Items takes one object or a list of them, as the log keeps together what a model gave to be given back. Anything else is left out.
func Items(opaque json.RawMessage) []json.RawMessage {
	var items []json.RawMessage
	if trimmed := bytes.TrimSpace(opaque); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return []json.RawMessage{trimmed}
	} else if json.Unmarshal(opaque, &items) != nil {
		return nil
	}
	return slices.DeleteFunc(items, func(it json.RawMessage) bool { return len(it) == 0 || it[0] != '{' })
}

// Schema is the schema of a tool's arguments; a tool without one takes none.
func Schema(t session.ToolSpec) json.RawMessage {
	if len(t.Schema) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t.Schema
}

// PartText is a part of a message in words, for a model that cannot be given it otherwise. It is never blank.
func PartText(p protocol.Part) string {
	name := p.URI
	if name == "" {
		name = p.Name
	}
	switch {
	case p.Text != "" && name != "":
		return "[" + name + "]\n" + p.Text
	case strings.TrimSpace(p.Text) != "":
		return p.Text
	}
	if p.Kind == "resource_link" && p.Name != "" && p.Name != name && !strings.HasPrefix(p.URI, "file:") { // an address of the client's own says little
		name = p.Name + " " + name
	}
	if p.Size > 0 {
		name += " (" + strconv.FormatInt(p.Size, 10) + " bytes)"
	}
	return "[" + strings.TrimSpace(p.Kind+" "+name) + "]"
}
