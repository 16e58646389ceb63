package protocol

import (
	"bytes"
	"encoding/json"
	"iter"
	"unicode/utf8"
)

// Members walks the members of an object as they stand, at a tenth of the cost of decoding; any other value has none. The object is valid JSON.
// Names are exact and decoded, and a repeated one comes again. Name and value are good as long as the object.
func Members(object []byte) iter.Seq2[[]byte, json.RawMessage] {
	return func(yield func(name []byte, value json.RawMessage) bool) {
		if !IsObject(object) {
			return
		}
		for i := behindSpace(object, 0) + 1; ; i++ {
			i = behindSpace(object, i)
			end := StringEnd(object, i)
			if end < 0 {
				return
			}
			name := object[i+1 : end-1 : end-1]
			if bytes.IndexByte(name, '\\') >= 0 {
				plain, _ := Text(object[i:end])
				name = []byte(plain)
			}
			i = behindSpace(object, behindSpace(object, end)+1) // a colon
			if end = behindValue(object, i); end < 0 || !yield(name, object[i:end:end]) {
				return
			}
			if i = behindSpace(object, end); i == len(object) || object[i] != ',' {
				return
			}
		}
	}
}

// Member returns the value of a member of an object as it stands there, the first where the name is repeated; nil when there is none. The object
// is valid JSON.
func Member(object []byte, name string) json.RawMessage {
	for n, value := range Members(object) {
		if string(n) == name {
			return value
		}
	}
	return nil
}

// IsObject reports whether a valid text is an object.
func IsObject(text []byte) bool {
	i := behindSpace(text, 0)
	return i < len(text) && text[i] == '{'
}

// IsID reports whether a value, valid and without space around it, is one that JSON-RPC can echo as an id: a string or a number.
func IsID(value json.RawMessage) bool {
	return len(value) > 0 && (value[0] == '"' || value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// Text decodes a JSON string without space around it; ok is false for any other value. Escapes of lone surrogates, and bytes that are no UTF-8,
// become U+FFFD.
func Text(value json.RawMessage) (s string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') >= 0 || !utf8.Valid(inner) {
		return s, json.Unmarshal(value, &s) == nil
	}
	return string(inner), true
}

// behindValue returns where the value of a valid text that begins at i ends; -1 when there is none.
func behindValue(text []byte, i int) int {
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
			continue // what stands between values ends none
		default:
			if i = behindScalar(text, i); i < 0 {
				return -1
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return -1
}
