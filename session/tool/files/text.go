package files

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

const (
	mark = "\uFEFF" // byte order mark, as UTF-8
	crlf = "\r\n"
)

// whyNoText says why data is not taken for UTF-8 text; "" if it is.
func whyNoText(data string) string {
	switch {
	case strings.HasPrefix(data, "\xff\xfe"), strings.HasPrefix(data, "\xfe\xff"):
		return "UTF-16 text"
	case strings.IndexByte(data, 0) >= 0:
		return "a binary file"
	case !utf8.ValidString(data):
		return "text in an encoding that is not UTF-8"
	}
	return ""
}

// inStyleOf gives text the byte order mark and the line ends of old: models are shown neither. A file whose lines do not all end with CRLF
// has no style, and text with a CR of its own is meant as it is.
func inStyleOf(old, text string) string {
	if n := strings.Count(old, "\n"); n > 0 && n == strings.Count(old, crlf) && !strings.Contains(text, "\r") {
		text = strings.ReplaceAll(text, "\n", crlf)
	}
	if strings.HasPrefix(old, mark) && !strings.HasPrefix(text, mark) {
		text = mark + text
	}
	return text
}

// sought is a text in which passages are looked for as models see them: CRLF as LF.
type sought struct {
	raw  string
	view string
	ends []int // places in view of the LF that are CRLF in raw
}

// seek prepares to look for passage. One that holds a CR itself is meant as it is.
func seek(raw, passage string) *sought {
	s := &sought{raw: raw, view: raw}
	if strings.Contains(passage, "\r") || !strings.Contains(raw, crlf) {
		return s
	}
	s.view = strings.ReplaceAll(raw, crlf, "\n")
	for from := 0; ; {
		i := strings.Index(raw[from:], crlf)
		if i < 0 {
			return s
		}
		s.ends = append(s.ends, from+i-len(s.ends))
		from += i + len(crlf)
	}
}

// at turns a place in view into one in raw: before the CR for a CRLF.
func (s *sought) at(i int) int { return i + sort.SearchInts(s.ends, i) }

// find returns the first places of passage in view, overlapping ones too, at most most.
func (s *sought) find(passage string, most int) []int {
	var out []int
	for from := 0; len(out) < most; {
		i := strings.Index(s.view[from:], passage)
		if i < 0 {
			break
		}
		out = append(out, from+i)
		from += i + 1
	}
	return out
}

// lineOf is the number of the line a place in view is in, from 1.
func (s *sought) lineOf(i int) int { return 1 + strings.Count(s.view[:i], "\n") }

// replace puts text in the place of passage, which stands in view at i. What the two have in common at both ends is left as it is, byte
// for byte; new line ends are those of the lines around.
func (s *sought) replace(i int, passage, text string) string {
	end := i + len(passage)
	if !strings.Contains(text, "\r") {
		pre := common(passage, text, false)
		passage, text = passage[pre:], text[pre:]
		post := common(passage, text, true)
		text = text[:len(text)-post]
		i, end = i+pre, end-post
		if s.crlfAt(i) {
			text = strings.ReplaceAll(text, "\n", crlf)
		}
	}
	return s.raw[:s.at(i)] + text + s.raw[s.at(end):]
}

// crlfAt reports whether lines at i end with CRLF: the one i is in, else the one before it.
func (s *sought) crlfAt(i int) bool {
	lf := strings.IndexByte(s.view[i:], '\n')
	if lf >= 0 {
		lf += i
	} else if lf = strings.LastIndexByte(s.view[:i], '\n'); lf < 0 {
		return false
	}
	_, is := slices.BinarySearch(s.ends, lf)
	return is
}

// common is how many bytes a and b share at their beginning or end.
func common(a, b string, atEnd bool) int {
	n := 0
	for n < len(a) && n < len(b) {
		if !atEnd && a[n] != b[n] || atEnd && a[len(a)-1-n] != b[len(b)-1-n] {
			break
		}
		n++
	}
	return n
}
