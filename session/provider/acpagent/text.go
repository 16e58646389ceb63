package acpagent

import (
	"strings"
	"unicode"

	"github.com/rind-dev/rind/protocol"
)

// oneLine is a text on one line, without control characters, at most n characters.
func oneLine(s string, n int) string {
	if len(s) > 8*n {
		s = s[:8*n]
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return protocol.Prefix(strings.Join(strings.Fields(s), " "), n)
}

// lastLine is the last line of a text that is not blank.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// lastBytes is the end of s, at most n bytes, on a rune boundary.
func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[len(s)-n:], "")
}
