package portable

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
)

// MaxDepth bounds the nesting of a body; the outer value is level 1.
const MaxDepth = 256

var (
	errBadJSON = Invalid("Request body is not valid JSON")
	errTooDeep = Invalid("Request body is nested too deeply")
)

var bom = []byte("\xef\xbb\xbf")

// Text checks a request body by the rules of docs/protocol/portable-2026-09-02.md section 1.1, step 9, and returns its JSON text: nil for a
// body that counts as empty. The depth is looked at before anything is decoded.
func Text(body []byte) (json.RawMessage, error) {
	body = bytes.TrimPrefix(body, bom)
	if len(bytes.Trim(body, " \t\r\n")) == 0 {
		return nil, nil
	}
	if protocol.Deeper(body, MaxDepth) {
		return nil, errTooDeep
	}
	if !utf8.Valid(body) || !protocol.Valid(body) || !sound(body) {
		return nil, errBadJSON
	}
	return body, nil
}

// sound looks through valid JSON for what encoding/json lets pass: an escape that is half of a surrogate pair, a number beyond float64.
func sound(text []byte) bool {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			n, ok := soundString(text[i+1:])
			if !ok {
				return false
			}
			i += 1 + n
		case c == '-' || c >= '0' && c <= '9':
			j := i
			for j < len(text) && bytes.IndexByte([]byte("+-.eE0123456789"), text[j]) >= 0 {
				j++
			}
			if _, err := strconv.ParseFloat(string(text[i:j]), 64); err != nil {
				return false
			}
			i = j
		default:
			i++
		}
	}
	return true
}

// soundString walks a string behind its opening quote and returns where it ends.
func soundString(s []byte) (int, bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i + 1, true
		case '\\':
			i++
			if s[i] != 'u' {
				continue
			}
			r := unit(s[i:])
			i += 4
			switch {
			case r >= 0xDC00 && r <= 0xDFFF:
				return 0, false
			case r >= 0xD800 && r <= 0xDBFF:
				if i+6 >= len(s) || s[i+1] != '\\' || s[i+2] != 'u' {
					return 0, false
				}
				if low := unit(s[i+2:]); low < 0xDC00 || low > 0xDFFF {
					return 0, false
				}
				i += 6
			}
		}
	}
	return 0, false
}

// unit reads the four digits behind a "u".
func unit(s []byte) uint64 {
	if len(s) < 5 {
		return 0
	}
	n, _ := strconv.ParseUint(string(s[1:5]), 16, 32)
	return n
}

// members are the members of an object by their exact names; the last of a repeated one stands.
type members map[string]json.RawMessage

// object reads an object; false for any other value. text is valid JSON.
func object(text json.RawMessage) (members, bool) {
	if !protocol.IsObject(text) {
		return nil, false
	}
	m := members{}
	for name, value := range protocol.Members(text) {
		m[string(name)] = value
	}
	return m, true
}

// text reads a string member; null and other types are false.
func (m members) text(name string) (string, bool) {
	return protocol.Text(m[name])
}

// object reads an optional object member, without white space but otherwise as written; "{}" where it is absent.
func (m members) object(name string) (json.RawMessage, bool) {
	raw, ok := m[name]
	if !ok {
		return json.RawMessage("{}"), true
	}
	if !protocol.IsObject(raw) {
		return nil, false
	}
	return compact(raw), true
}

// compact takes white space out. Numbers and escapes stay as they were written.
func compact(raw json.RawMessage) json.RawMessage {
	var buf bytes.Buffer
	if json.Compact(&buf, raw) != nil {
		return raw
	}
	return buf.Bytes()
}
