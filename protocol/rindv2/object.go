package rindv2

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// The functions here walk text that json.Valid accepted. encoding/json would match member names in any case, and would decode ids
// and params only to encode them differently.

// each calls f with every member of obj, in order; obj must be a valid JSON object. The value is raw; both are valid as long as obj.
func each(obj []byte, f func(name []byte, value json.RawMessage)) {
	i := skipSpace(obj, 0) + 1 // behind {
	for {
		i = skipSpace(obj, i)
		if obj[i] == '}' {
			return
		}
		end := skipString(obj, i)
		name := obj[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			plain, _ := text(obj[i:end])
			name = []byte(plain)
		}
		i = skipSpace(obj, skipSpace(obj, end)+1) // behind :
		end = skipValue(obj, i)
		f(name, json.RawMessage(obj[i:end:end]))
		i = skipSpace(obj, end)
		if obj[i] == ',' {
			i++
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the place behind the string that begins at i.
func skipString(b []byte, i int) int {
	for near := i + 32; i < near; { // most strings are short
		i++
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	for i++; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		esc := bytes.IndexByte(b[i:i+n], '\\')
		if esc < 0 {
			return i + n + 1
		}
		i += esc + 1
	}
}

// skipValue returns the place behind the value that begins at i.
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
	default: // a number or a word
		for i < len(b) && !delimits(b[i]) {
			i++
		}
		return i
	}
	for deep := 0; ; {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			continue
		case '{', '[':
			deep++
		case '}', ']':
			if deep--; deep == 0 {
				return i + 1
			}
		}
		i++
	}
}

func delimits(c byte) bool {
	switch c {
	case ',', ' ', '\t', '\n', '\r', '}', ']':
		return true
	}
	return false
}

// text decodes a JSON string; ok is false for any other value. Escapes of lone surrogates become U+FFFD.
func text(j json.RawMessage) (s string, ok bool) {
	if len(j) < 2 || j[0] != '"' {
		return "", false
	}
	inner := j[1 : len(j)-1]
	for _, c := range inner {
		if c == '\\' || c >= utf8.RuneSelf {
			return s, json.Unmarshal(j, &s) == nil
		}
	}
	return string(inner), true
}

// isNumber reports whether a JSON value is a number.
func isNumber(j json.RawMessage) bool {
	return len(j) > 0 && (j[0] == '-' || j[0] >= '0' && j[0] <= '9')
}
