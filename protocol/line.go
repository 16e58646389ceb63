package protocol

import (
	"strings"
	"unicode"
)

// OneLine makes text from outside fit to be shown in a line of at most n characters: valid UTF-8, no control characters, and none that could make
// it read otherwise than it is (those that turn the order of others around, and tags, which nobody sees). What is cut ends in "…".
func OneLine(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case Unseen(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Join(strings.Fields(text), " ")
	if CharLen(text) > n {
		text = Prefix(text, n-1) + "…"
	}
	return text
}

// Unseen tells characters that show nothing and can make a text read otherwise than it is, or hide words from people.
func Unseen(r rune) bool {
	return r >= 0xE0000 && r <= 0xE007F || unicode.Is(unicode.Bidi_Control, r)
}
