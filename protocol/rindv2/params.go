package rindv2

import (
	"encoding/json"
	"math"
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
	each(raw, func(name string, v json.RawMessage) {
		if m[name] = v; v[0] == 'n' {
			delete(m, name)
		}
	})
	return m
}

// Has reports whether a member is there and not null.
func (p Params) Has(name string) bool { return p[name] != nil }

// Text is a string member; ok is false when it is there but no string. Absent is "".
func (p Params) Text(name string) (s string, ok bool) {
	if !p.Has(name) {
		return "", true
	}
	return text(p[name])
}

// Name is a string member that must be there, not blank, and is trimmed; ok is false otherwise.
func (p Params) Name(name string) (s string, ok bool) {
	s, ok = text(p[name])
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
	return integer(p[name])
}

func integer(raw json.RawMessage) (int64, bool) {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	var n int64
	if json.Unmarshal(raw, &n) == nil {
		return n, true
	}
	var f float64
	if json.Unmarshal(raw, &f) == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f), true
	}
	return 0, false
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
		if list[i], ok = text(r); !ok {
			return nil, false
		}
	}
	return list, true
}

// Bad makes the error of wrong params.
func Bad(format string, args ...any) *protocol.Error {
	return protocol.Errorf(protocol.InvalidRequest, format, args...)
}
