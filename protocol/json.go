package protocol

import (
	"bytes"
	"encoding/json"
	"sync"
	"unicode/utf8"
)

// Marshal is json.Marshal without HTML escaping: what we write is for programs, not for pages. U+2028 and U+2029 stay
// escaped and invalid UTF-8 becomes U+FFFD.
func Marshal(v any) (json.RawMessage, error) {
	e := encoders.Get().(*encoder)
	defer e.release()
	if err := e.encode(v); err != nil {
		return nil, err
	}
	return e.take(), nil
}

// encoder is a JSON text being written, in memory that is used again.
type encoder struct {
	text []byte
	enc  *json.Encoder // writes to text
}

var encoders = sync.Pool{New: func() any {
	e := &encoder{}
	e.enc = json.NewEncoder(e)
	e.enc.SetEscapeHTML(false)
	return e
}}

// keepEncoder is how much memory an encoder may have that is kept.
const keepEncoder = 64 << 10

// Write is what enc calls.
func (e *encoder) Write(b []byte) (int, error) {
	e.text = append(e.text, b...)
	return len(b), nil
}

// encode appends the JSON text of v.
func (e *encoder) encode(v any) error {
	if err := e.enc.Encode(v); err != nil {
		return err
	}
	e.text = e.text[:len(e.text)-1] // Encode ends with a newline
	return nil
}

// take returns what was written and begins anew.
func (e *encoder) take() []byte {
	b := e.text
	if cap(b) > keepEncoder {
		e.text = nil
		return b[:len(b):len(b)]
	}
	e.text = b[:0]
	return bytes.Clone(b)
}

func (e *encoder) release() {
	if cap(e.text) <= keepEncoder {
		e.text = e.text[:0]
		encoders.Put(e)
	}
}

// MustMarshal is Marshal for values that cannot fail to marshal.
func MustMarshal(v any) json.RawMessage {
	b, err := Marshal(v)
	if err != nil {
		panic("protocol: marshal: " + err.Error())
	}
	return b
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string, escaped exactly as Marshal does it. It exists because deltas are the hot path.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\b':
				dst = append(dst, '\\', 'b')
			case '\f':
				dst = append(dst, '\\', 'f')
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, s[start:i]...)
			dst = append(dst, `\ufffd`...)
		case r == '\u2028' || r == '\u2029':
			dst = append(dst, s[start:i]...)
			dst = append(dst, '\\', 'u', '2', '0', '2', hexDigits[r&0xf])
		default:
			i += size
			continue
		}
		i += size
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// Suffix returns the last n characters of s.
func Suffix(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}

// Prefix returns at most n characters of s, never cutting one in two.
func Prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// CharLen counts the characters (code points) of s.
func CharLen(s string) int { return utf8.RuneCountInString(s) }
