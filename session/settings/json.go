package settings

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a settings file; nothing in it needs more than a handful of levels.
const maxDepth = 64

// node is one JSON value with its place in the text, so that an error can name the place and a change can leave the rest alone.
type node struct {
	start, end int // bytes, end exclusive
	kind       byte
	members    []member // kind '{'
	items      []node   // kind '['
}

// Kinds of a node.
const (
	object = '{'
	array  = '['
	text   = '"'
	number = '0'
	truth  = 't'
	null   = 'n'
)

type member struct {
	key      string
	keyStart int
	value    node
}

// get finds a member of an object by its key.
func (n node) get(key string) (member, bool) {
	for _, m := range n.members {
		if m.key == key {
			return m, true
		}
	}
	return member{}, false
}

// scanner reads JSON text strictly: no comments, no trailing commas, no duplicate keys. Its reasons never repeat what the file says
// but for keys, because a value may be a key to somebody's account.
type scanner struct {
	src []byte
	pos int
}

// fault is a reason with its place in the text.
type fault struct {
	pos    int
	reason string
}

func (f *fault) Error() string { return f.reason }

// scan reads one JSON value that fills src.
func scan(src []byte) (node, *fault) {
	s := &scanner{src: src}
	s.space()
	if s.pos == len(src) {
		return node{}, s.fail("the file is empty; {} is an empty object")
	}
	n, err := s.value(0)
	if err != nil {
		return node{}, err
	}
	s.space()
	if s.pos < len(src) {
		return node{}, s.fail(s.or("something follows the end of the object"))
	}
	return n, nil
}

func (s *scanner) fail(reason string) *fault { return &fault{s.pos, reason} }

// or names the mistakes people make most, else gives the general reason.
func (s *scanner) or(reason string) string {
	switch rest := s.src[s.pos:]; {
	case len(rest) == 0:
		return "the file ends too early"
	case bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("/*")), rest[0] == '#':
		return "comments are not allowed"
	case rest[0] == '\'':
		return "strings are written in double quotes"
	}
	return reason
}

func (s *scanner) space() {
	for s.pos < len(s.src) && strings.IndexByte(" \t\r\n", s.src[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *scanner) at(c byte) bool { return s.pos < len(s.src) && s.src[s.pos] == c }

func (s *scanner) value(depth int) (node, *fault) {
	if depth > maxDepth {
		return node{}, s.fail("values are nested too deeply")
	}
	n := node{start: s.pos}
	var err *fault
	switch {
	case s.at('{'):
		n.kind = object
		n.members, err = s.object(depth)
	case s.at('['):
		n.kind = array
		n.items, err = s.array(depth)
	case s.at('"'):
		n.kind = text
		_, err = s.text()
	default:
		n.kind, err = s.word()
	}
	n.end = s.pos
	return n, err
}

func (s *scanner) object(depth int) ([]member, *fault) {
	var members []member
	seen := map[string]bool{}
	s.pos++
	for s.space(); !s.at('}'); s.space() {
		if len(members) > 0 {
			if !s.at(',') {
				return nil, s.fail(s.or("a comma or } is missing here"))
			}
			comma := s.pos
			s.pos++
			s.space()
			if s.at('}') {
				return nil, &fault{comma, "a comma must not stand before }"}
			}
		}
		m := member{keyStart: s.pos}
		if !s.at('"') {
			return nil, s.fail(s.or("a member's name in double quotes is missing here"))
		}
		var err *fault
		if m.key, err = s.text(); err != nil {
			return nil, err
		}
		if seen[m.key] {
			return nil, &fault{m.keyStart, "the member " + quote(m.key) + " stands here twice"}
		}
		seen[m.key] = true
		if s.space(); !s.at(':') {
			return nil, s.fail(s.or("a colon is missing here"))
		}
		s.pos++
		s.space()
		if m.value, err = s.value(depth + 1); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	s.pos++
	return members, nil
}

func (s *scanner) array(depth int) ([]node, *fault) {
	var items []node
	s.pos++
	for s.space(); !s.at(']'); s.space() {
		if len(items) > 0 {
			if !s.at(',') {
				return nil, s.fail(s.or("a comma or ] is missing here"))
			}
			comma := s.pos
			s.pos++
			s.space()
			if s.at(']') {
				return nil, &fault{comma, "a comma must not stand before ]"}
			}
		}
		item, err := s.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	s.pos++
	return items, nil
}

// text reads a string and gives what it says. Escapes are left to encoding/json, which knows them all.
func (s *scanner) text() (string, *fault) {
	start := s.pos
	for s.pos++; s.pos < len(s.src); s.pos++ {
		switch c := s.src[s.pos]; {
		case c == '\\':
			s.pos++
		case c == '"':
			s.pos++
			var out string
			if json.Unmarshal(s.src[start:s.pos], &out) != nil {
				return "", &fault{start, "this string has an escape that JSON does not know"}
			}
			return out, nil
		case c < 0x20:
			return "", s.fail("this string is not closed on its line")
		}
	}
	s.pos = len(s.src)
	return "", &fault{start, "this string is not closed"}
}

// word reads a number, true, false or null.
func (s *scanner) word() (byte, *fault) {
	start := s.pos
	for s.pos < len(s.src) && strings.IndexByte(" \t\r\n,:{}[]\"", s.src[s.pos]) < 0 {
		s.pos++
	}
	word := s.src[start:s.pos]
	s.pos = start
	if len(word) == 0 || !json.Valid(word) {
		return 0, s.fail(s.or("a value is missing or not JSON here"))
	}
	s.pos += len(word)
	switch word[0] {
	case 't', 'f':
		return truth, nil
	case 'n':
		return null, nil
	}
	return number, nil
}

// place turns an offset into a line and a column, both from 1; a column counts characters.
func place(src []byte, pos int) (line, col int) {
	before := src[:min(pos, len(src))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// quote writes a key of the file into a one-line text: bounded, without control characters.
func quote(key string) string {
	const longest = 40
	if r := []rune(key); len(r) > longest {
		key = string(r[:longest]) + "…"
	}
	out, _ := json.Marshal(key) // a string always marshals
	return string(out)
}
