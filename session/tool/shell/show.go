package shell

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// show is the text of a stream in at most about size bytes, as JSON, and lines lines: all of it, or head and tail around a marker.
func (s *stream) show(size, lines int) (text string, cut bool) {
	if s.total <= keptHead && s.lines <= int64(lines) && escapedLen(s.head) <= size {
		return string(s.head), false
	}
	tail := s.tail
	if s.total <= int64(len(s.head)+len(s.tail)) { // all of it is here
		tail = append(s.head[:len(s.head):len(s.head)], s.tail...)
	}
	head := string(prefix(s.head, size/2, lines/2))
	end := string(suffix(tail, size/2, lines/2))
	left := s.total - int64(len(head)+len(end))
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return fmt.Sprintf("%s[… %d bytes left out …]\n%s", head, max(left, 0), end), true
}

// escaped is how many bytes a character of text takes in JSON.
func escapedRune(r rune, size int) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t':
		return 2
	case r == '\u2028' || r == '\u2029':
		return 6
	}
	return size
}

func escapedLen(text []byte) (n int) {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		n += escapedRune(r, size)
		text = text[size:]
	}
	return n
}

// prefix is the longest beginning of text that takes at most size bytes and lines lines. It prefers to end with a line.
func prefix(text []byte, size, lines int) []byte {
	at, line := 0, 0
	for at < len(text) {
		r, n := utf8.DecodeRune(text[at:])
		if !utf8.FullRune(text[at:]) { // the head was cut in the middle of a character
			break
		}
		if size -= escapedRune(r, n); size < 0 {
			break
		}
		at += n
		if r == '\n' {
			line = at
			if lines--; lines <= 0 {
				break
			}
		}
	}
	if line > at/2 {
		at = line
	}
	return text[:at]
}

// suffix is the longest end of text that takes at most size bytes and lines lines. It prefers to begin with a line.
func suffix(text []byte, size, lines int) []byte {
	at := len(text)
	line := at
	for at > 0 {
		r, n := utf8.DecodeLastRune(text[:at])
		if r == utf8.RuneError && n == 1 { // the tail was cut in the middle of a character
			break
		}
		if r == '\n' && at < len(text) {
			line = at
			if lines--; lines <= 0 {
				break
			}
		}
		if size -= escapedRune(r, n); size < 0 {
			break
		}
		at -= n
	}
	if len(text)-line > (len(text)-at)/2 {
		at = line
	}
	return text[at:]
}
