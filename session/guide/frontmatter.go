package guide

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// Bounds of a skill's file.
const (
	maxHeadBytes        = 8 << 10
	maxBodyBytes        = 64 << 10
	maxDescriptionChars = 1024
)

// head is what the front matter of a skill says.
type head struct {
	name        string // lower case; "" when it says none
	description string // one line
}

var skillName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`) })

// parseSkill reads a skill's file: front matter between two lines `---`, then the text. Of YAML it knows what such heads hold: `key: value`
// lines with plain, quoted, literal (|) and folded (>) values; keys other than name and description are passed over with what belongs
// to them.
func parseSkill(text string) (head, string, error) {
	lines := strings.Split(text, "\n")
	if strings.TrimRight(lines[0], " \t") != "---" {
		return head{}, "", errors.New("it does not begin with front matter (a line ---, name and description, a line ---)")
	}
	end, size := 0, 0
	for i, line := range lines[1:] {
		if size += len(line) + 1; size > maxHeadBytes {
			return head{}, "", fmt.Errorf("its front matter is longer than %d KiB", maxHeadBytes>>10)
		}
		if line = strings.TrimRight(line, " \t"); line == "---" || line == "..." {
			end = i + 1
			break
		}
	}
	if end == 0 {
		return head{}, "", errors.New("its front matter does not end with a line ---")
	}
	h, err := parseHead(lines[1:end])
	if err != nil {
		return head{}, "", err
	}
	body := strings.TrimRight(strings.TrimLeft(strings.Join(lines[end+1:], "\n"), "\n"), " \t\n")
	switch {
	case h.name != "" && !skillName().MatchString(h.name):
		return head{}, "", fmt.Errorf("its name %q is not made of a-z, 0-9 and -, at most 64", shorten(oneLine(h.name), 80))
	case h.description == "":
		return head{}, "", errors.New("it has no description")
	case strings.TrimSpace(body) == "":
		return head{}, "", errors.New("it has no text below its front matter")
	case len(body) > maxBodyBytes:
		return head{}, "", fmt.Errorf("its text is longer than %d KiB", maxBodyBytes>>10)
	}
	return h, body, nil
}

func parseHead(lines []string) (head, error) {
	var h head
	seen := map[string]bool{}
	for i := 0; i < len(lines); {
		key, rest, ok := strings.Cut(lines[i], ":")
		i++
		if !ok || key == "" || strings.ContainsAny(key[:1], " \t#-") || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
			continue // a comment, an entry of a list, or nothing we know
		}
		from := i
		for i < len(lines) && (strings.TrimSpace(lines[i]) == "" || indent(lines[i]) > 0) {
			i++
		}
		if key != "name" && key != "description" {
			continue
		}
		if seen[key] {
			return h, fmt.Errorf("its front matter gives %s twice", key)
		}
		seen[key] = true
		value, err := scalar(strings.TrimSpace(rest), lines[from:i])
		if err != nil {
			return h, fmt.Errorf("its %s %w", key, err)
		}
		if value = oneLine(value); key == "name" {
			h.name = strings.ToLower(value)
		} else {
			h.description = shorten(value, maxDescriptionChars)
		}
	}
	return h, nil
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// scalar is a value that begins with first and goes on in the indented lines more. Whether a line break is kept or folded makes no
// difference here: names and descriptions are told on one line.
func scalar(first string, more []string) (string, error) {
	text := []string{}
	switch {
	case first != "" && (first[0] == '|' || first[0] == '>'):
		if i := strings.Index(first, " #"); i >= 0 {
			first = first[:i]
		}
		if strings.Trim(first[1:], "+-0123456789 ") != "" {
			return "", fmt.Errorf("begins with %s, which no value does", first[:1])
		}
		return strings.Join(more, "\n"), nil
	case first != "" && (first[0] == '"' || first[0] == '\''):
		for _, line := range more {
			text = append(text, strings.TrimSpace(line))
		}
		return unquote(strings.TrimSpace(first + " " + strings.Join(text, " ")))
	}
	for _, line := range append([]string{first}, more...) {
		line = strings.TrimSpace(line)
		if i := strings.Index(line, " #"); i >= 0 {
			line = line[:i]
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		text = append(text, line)
	}
	value := strings.TrimSpace(strings.Join(text, " "))
	if value == "~" || value == "null" {
		value = ""
	}
	return value, nil
}

// escapes of double-quoted values beside \x, \u and \U.
var escapes = map[byte]string{
	'0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", 'n': "\n", 'v': "\v", 'f': "\f", 'r': "\r", 'e': "\x1b", ' ': " ", '"': `"`, '/': "/",
	'\\': `\`, 'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029",
}

// unquote reads a quoted value, behind which only a comment may stand.
func unquote(s string) (string, error) {
	var b strings.Builder
	quote := s[0]
	i := 1
	for {
		if i >= len(s) {
			return "", errors.New("has a quote that does not end")
		}
		c := s[i]
		i++
		switch {
		case c == quote && quote == '\'' && i < len(s) && s[i] == '\'':
			b.WriteByte('\'')
			i++
			continue
		case c == quote:
			if rest := strings.TrimSpace(s[i:]); rest != "" && rest[0] != '#' {
				return "", errors.New("goes on behind its quotes")
			}
			return b.String(), nil
		case c != '\\' || quote == '\'':
			b.WriteByte(c)
			continue
		}
		text, n, err := escape(s[i:])
		if err != nil {
			return "", err
		}
		b.WriteString(text)
		i += n
	}
}

// escape reads what follows a backslash: its text, and how many bytes it takes.
func escape(s string) (string, int, error) {
	unknown := errors.New("has an unknown escape")
	if s == "" {
		return "", 0, errors.New("has a quote that does not end")
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]
	if digits == 0 {
		text, ok := escapes[s[0]]
		if !ok {
			return "", 0, unknown
		}
		return text, 1, nil
	}
	if len(s) < 1+digits {
		return "", 0, unknown
	}
	var r rune
	for _, c := range []byte(s[1 : 1+digits]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return "", 0, unknown
		}
		r = r<<4 | rune(c)
	}
	if !utf8.ValidRune(r) {
		r = utf8.RuneError
	}
	return string(r), 1 + digits, nil
}
