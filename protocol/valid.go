package protocol

import "encoding/binary"

// maxNesting is where encoding/json stops reading, and so where a text is no JSON any more.
const maxNesting = 10_000

// What may come next in a JSON text.
type next uint8

const (
	nextValue     next = iota
	nextElement        // a value, or the end of an array that is empty so far
	nextName           // the name of a member
	nextMember         // a name, or the end of an object that is empty so far
	nextSeparator      // behind a value: a comma, or what ends the text or its innermost array or object
)

// Valid reports what json.Valid does, several times as fast: every entry of a log that is read passes here.
func Valid(text []byte) bool {
	var room [32]byte
	open := room[:0] // the brackets that are to be closed, the innermost last
	state := nextValue
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			i++
			continue
		case state == nextSeparator && len(open) > 0 && c == open[len(open)-1],
			state == nextMember && c == '}', state == nextElement && c == ']':
			open, state = open[:len(open)-1], nextSeparator
			i++
			continue
		case state == nextSeparator && len(open) > 0 && c == ',':
			if state = nextValue; open[len(open)-1] == '}' {
				state = nextName
			}
			i++
			continue
		case state == nextSeparator:
			return false
		case state == nextName || state == nextMember:
			if i = StringEnd(text, i); i < 0 {
				return false
			}
			if i = behindSpace(text, i); i == len(text) || text[i] != ':' {
				return false
			}
			state = nextValue
			i++
			continue
		}
		switch c { // a value
		case '{':
			open, state = append(open, '}'), nextMember
			i++
		case '[':
			open, state = append(open, ']'), nextElement
			i++
		default:
			if i = behindScalar(text, i); i < 0 {
				return false
			}
			state = nextSeparator
		}
		if len(open) > maxNesting {
			return false
		}
	}
	return state == nextSeparator && len(open) == 0
}

func behindSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// behindScalar returns where the string, number or word that begins at i ends; -1 when there is none.
func behindScalar(text []byte, i int) int {
	word := ""
	switch text[i] {
	case '"':
		return StringEnd(text, i)
	case 't':
		word = "true"
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	default:
		return behindNumber(text, i)
	}
	if len(text)-i < len(word) || string(text[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

// StringEnd returns where the string that begins at i ends, behind its quote; -1 when there is none.
func StringEnd(text []byte, i int) int {
	if i == len(text) || text[i] != '"' {
		return -1
	}
	for i++; i < len(text); {
		if len(text)-i >= 8 && plain(binary.LittleEndian.Uint64(text[i:])) {
			i += 8
			continue
		}
		switch c := text[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			n := escapeLen(text[i:])
			if n == 0 {
				return -1
			}
			i += n
		case c < 0x20:
			return -1
		default:
			i++
		}
	}
	return -1
}

// plain reports whether eight bytes of a string stand for themselves: none is a quote, a backslash or a control character. It looks at all of
// them at once: x-1 borrows into the high bit of a byte of x that is 0, and only at or above such a byte.
func plain(b uint64) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := b^('"'*ones), b^('\\'*ones)
	special := (quote-ones)&^quote | (backslash-ones)&^backslash | (b-0x20*ones)&^b
	return special&highs == 0
}

// escapeLen is the length of the escape that b begins with; 0 when it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// behindNumber returns where the number that begins at i ends; -1 when there is none.
func behindNumber(text []byte, i int) int {
	digits := func() bool {
		from := i
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		return i > from
	}
	if text[i] == '-' {
		i++
	}
	if i < len(text) && text[i] == '0' {
		i++
	} else if !digits() {
		return -1
	}
	if i < len(text) && text[i] == '.' {
		if i++; !digits() {
			return -1
		}
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		if i++; i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		if !digits() {
			return -1
		}
	}
	return i
}
