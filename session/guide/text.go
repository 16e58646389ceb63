package guide

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// errUnread is wrapped where the operating system failed: the next look may go better.
var errUnread = errors.New("it cannot be read")

// Why a file is no text.
var (
	errUTF16  = errors.New("it is UTF-16 text; save it as UTF-8")
	errBinary = errors.New("it is a binary file, not text")
)

// readText reads at most limit bytes of text, and tells whether there is more. A byte order mark is dropped, line ends become LF, bytes that
// are no UTF-8 become U+FFFD. What is longer is cut at the end of a line where one is near, never within a character.
func readText(f io.Reader, limit int) (text string, more bool, err error) {
	const mark = "\uFEFF"
	data, err := io.ReadAll(io.LimitReader(f, int64(limit+len(mark)+1)))
	if err != nil {
		return "", false, fmt.Errorf("%w: %w", errUnread, cause(err))
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return "", false, errUTF16
	}
	text = strings.TrimPrefix(string(data), mark)
	if len(text) > limit {
		text, more = cut(text, limit), true
	}
	if strings.IndexByte(text, 0) >= 0 {
		return "", false, errBinary
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	if len(text) > limit { // replacements are longer than what they stand for
		text, more = cut(text, limit), true
	}
	return text, more, nil
}

// cut shortens s to at most limit bytes: to its last whole line, unless that would lose more than half.
func cut(s string, limit int) string {
	end := limit
	for end > limit-utf8.UTFMax && end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	s = s[:end]
	if i := strings.LastIndexByte(s, '\n'); i+1 > limit/2 {
		s = s[:i+1]
	}
	return s
}

// oneLine makes s a line that can be shown anywhere: white space becomes single blanks, control and formatting characters go.
func oneLine(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return ' '
		case unicode.IsControl(c), unicode.Is(unicode.Cf, c):
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// shorten cuts s to n characters, the last of them an ellipsis.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimRight(string([]rune(s)[:n-1]), " ") + "…"
}
