package rindv2

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// Params reads the params of a request member by member: exact names, null is absent, unknown members are ignored.
type Params map[string]json.RawMessage

// ReadParams reads the object raw, which Decode has checked; nil is an empty one.
func ReadParams(raw json.RawMessage) Params {
	if raw == nil {
		return Params{}
	}
	m := Params{}
	for name, v := range protocol.Members(raw) {
		if m[string(name)] = v; v[0] == 'n' {
			delete(m, string(name))
		}
	}
	return m
}

// Has reports whether a member is there and not null.
func (p Params) Has(name string) bool { return p[name] != nil }

// Text is a string member; ok is false when it is there but no string. Absent is "".
func (p Params) Text(name string) (s string, ok bool) {
	if !p.Has(name) {
		return "", true
	}
	return protocol.Text(p[name])
}

// Name is a string member that must be there, not blank, and is trimmed; ok is false otherwise.
func (p Params) Name(name string) (s string, ok bool) {
	s, ok = protocol.Text(p[name])
	s = strings.TrimSpace(s)
	return s, ok && s != ""
}

// Bool is a boolean member; anything else counts as absent.
func (p Params) Bool(name string) bool { return string(p[name]) == "true" }

// Int is an integer member: ok is false when it is there and no integer (booleans and fractions are none). Absent is absent.
func (p Params) Int(name string, absent int64) (n int64, ok bool) {
	if !p.Has(name) {
		return absent, true
	}
	return protocol.Integer(p[name])
}

// Raw is a member as sent.
func (p Params) Raw(name string) json.RawMessage { return p[name] }

// Texts is a member that must be a list of strings; ok is false otherwise. Absent is nil.
func (p Params) Texts(name string) (list []string, ok bool) {
	if !p.Has(name) {
		return nil, true
	}
	var raw []json.RawMessage
	if json.Unmarshal(p[name], &raw) != nil {
		return nil, false
	}
	list = make([]string, len(raw))
	for i, r := range raw {
		if list[i], ok = protocol.Text(r); !ok {
			return nil, false
		}
	}
	return list, true
}

// Bad makes the error of wrong params.
func Bad(format string, args ...any) *protocol.Error {
	return protocol.Errorf(protocol.InvalidRequest, format, args...)
}

// text is an optional string member; absent is "".
func (p Params) text(name string) (string, error) {
	s, ok := p.Text(name)
	if !ok {
		return "", Bad("%s must be a string.", name)
	}
	return s, nil
}

// field is a string member and where it goes.
type field struct {
	name string
	to   *string
}

// fill takes optional string members; what is absent stays as it is.
func (p Params) fill(fields ...field) error {
	for _, f := range fields {
		if !p.Has(f.name) {
			continue
		}
		s, err := p.text(f.name)
		if err != nil {
			return err
		}
		*f.to = s
	}
	return nil
}

// need is a string member that must be there and not blank, else the error is bad.
func (p Params) need(name, bad string) (string, error) {
	s, ok := protocol.Text(p[name])
	if !ok || strings.TrimSpace(s) == "" {
		return "", Bad("%s", bad)
	}
	return s, nil
}

// word is a string member that must be one of words: missing is the error when it is absent or no text, bad when it is another.
func (p Params) word(name, missing, bad string, words ...string) (string, error) {
	s, ok := p.Name(name)
	switch {
	case !ok:
		return "", Bad("%s", missing)
	case !slices.Contains(words, s):
		return "", Bad("%s", bad)
	}
	return s, nil
}

// between is an integer member within bounds, else the error is bad.
func (p Params) between(name string, absent, least, most int64, bad string) (int, error) {
	n, ok := p.Int(name, absent)
	if !ok || n < least || n > most {
		return 0, Bad("%s", bad)
	}
	return int(n), nil
}

// cursor is a position in a log; nil when absent.
func (p Params) cursor(name, method string) (*protocol.Seq, error) {
	if !p.Has(name) {
		return nil, nil
	}
	n, ok := p.Int(name, 0)
	if !ok || n < 0 {
		return nil, Bad("%s %s must be a non-negative integer.", method, name)
	}
	seq := protocol.Seq(n)
	return &seq, nil
}

// place is an index; what is no integer is ignored.
func (p Params) place(name string) *int64 {
	n, ok := p.Int(name, 0)
	if !ok || !p.Has(name) {
		return nil
	}
	return &n
}

// texts is a list of strings; nil when absent.
func (p Params) texts(name string) ([]string, error) {
	list, ok := p.Texts(name)
	if !ok {
		return nil, Bad("%s must be a list of strings.", name)
	}
	return list, nil
}
