package search

import (
	"bufio"
	"io/fs"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rind-dev/rind/session/roots"
)

const maxIgnoreBytes = 1 << 20

// rule is one line of an ignore file. Rules of a folder stand behind those of the folders above it; the last that matches decides.
type rule struct {
	glob    string // as doublestar reads it, without the slashes at its ends
	depth   int    // of the folder it stands in, from the top
	named   bool   // it has no slash but at its end: it matches a name in any folder below
	folders bool   // only folders match
	back    bool   // what matches is brought back
}

// ruleOf reads a line as gitignore(5) does; false if it says nothing or can match nothing.
func ruleOf(line string, depth int) (rule, bool) {
	r := rule{depth: depth}
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	line, r.back = strings.CutPrefix(line, "!")
	for strings.HasSuffix(line, " ") && !escaped(line, len(line)-1) {
		line = line[:len(line)-1]
	}
	line, r.folders = strings.CutSuffix(line, "/")
	r.named = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	r.glob = wild(line, r.named)
	return r, line != "" && doublestar.ValidatePattern(r.glob)
}

// escaped reports whether a backslash takes the meaning from the byte at i.
func escaped(s string, i int) bool {
	n := len(s[:i]) - len(strings.TrimRight(s[:i], `\`))
	return n%2 == 1
}

// wild gives a glob of git the form doublestar reads: to git braces are characters like any other, a bracket may open with the one that
// would close it, classes have names, and stars in a row cross folders only between slashes, or where they are a path's first wildcard: git
// compares what stands before that by itself, and takes what is left for the beginning.
func wild(glob string, named bool) string {
	var b strings.Builder
	first := !named
	for i := 0; i < len(glob); i++ {
		c, leads := glob[i], first
		first = first && c != '*' && c != '?' && c != '[' && c != '\\'
		switch c {
		case '\\':
			b.WriteByte(c)
			if i++; i < len(glob) {
				b.WriteByte(glob[i])
			}
		case '{', '}':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '[':
			end := bracket(&b, glob[i:])
			if end == 0 { // it never closes: the pattern is refused
				return "["
			}
			i += end - 1
		case '*':
			stars := len(glob[i:]) - len(strings.TrimLeft(glob[i:], "*"))
			end := i + stars
			switch whole := (i == 0 || glob[i-1] == '/') && (end == len(glob) || glob[end] == '/'); {
			case stars > 1 && !whole && leads && (end == len(glob) || glob[end] == '/'):
				var form string
				form, end = leading(glob, i)
				b.WriteString(form)
			case stars == 1 || !whole:
				b.WriteString("*")
			case end == len(glob): // "a/**" is what lies below a; doublestar would match a itself
				b.WriteString("**/*")
			default:
				b.WriteString("**")
			}
			i = end - 1
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// leading is what stars in a row at i, and such behind them, stand for where they are the first wildcard, and where they end: folders and the
// beginning of a name, or everything.
func leading(glob string, i int) (form string, end int) {
	for {
		rest := strings.TrimLeft(glob[i:], "*")
		switch stars := len(glob) - i - len(rest); {
		case stars > 1 && rest == "":
			return "{*,*/**}", len(glob)
		case stars > 1 && rest[0] == '/':
			i += stars + 1
		default:
			return "{,*/**/}", i
		}
	}
}

// classes holds no '/': no bracket matches it.
var classes = strings.NewReplacer(
	"[:alnum:]", "a-zA-Z0-9", "[:alpha:]", "a-zA-Z", "[:blank:]", " \t", "[:cntrl:]", "\x00-\x1f\x7f", "[:digit:]", "0-9", "[:graph:]", `\!-.0-~`, "[:lower:]", "a-z",
	"[:print:]", " -.0-~", "[:punct:]", `\!-.:-@\[-`+"`{-~", "[:space:]", " \t-\r", "[:upper:]", "A-Z", "[:xdigit:]", "0-9a-fA-F",
)

// bracket writes the bracket expression s begins with and returns its length, 0 if it does not close.
func bracket(b *strings.Builder, s string) int {
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	b.WriteString(s[:i])
	if i > 1 {
		b.WriteByte('/') // which no bracket matches
	}
	for first := i; i < len(s); i++ {
		switch {
		case s[i] == ']' && i > first:
			b.WriteByte(']')
			return i + 1
		case s[i] == ']':
			b.WriteString(`\]`)
		case s[i] == '\\' && i+1 < len(s):
			b.WriteString(s[i : i+2])
			i++
		case strings.HasPrefix(s[i:], "[:"):
			end := strings.Index(s[i:], ":]")
			if end < 0 {
				return 0
			}
			b.WriteString(classes.Replace(s[i : i+end+2]))
			i += end + 1
		case i+2 < len(s) && s[i+1] == '-' && s[i] < '/' && s[i+2] > '/' && s[i+2] != ']' && s[i+2] != '\\' && s[i+2] != '[':
			// A range over '/' is two without it.
			b.WriteString(s[i:i+2] + ".0-" + s[i+2:i+3])
			i += 2
		default:
			b.WriteByte(s[i])
		}
	}
	return 0
}

// ignored reports whether git would leave out parts, the way from the top to a file or folder. The folders on the way are not: a walk does
// not come below an ignored one.
func ignored(rules []rule, parts []string, folder bool) bool {
	for i := len(rules) - 1; i >= 0; i-- {
		r := &rules[i]
		if r.folders && !folder {
			continue
		}
		at := parts[len(parts)-1]
		if !r.named {
			at = strings.Join(parts[r.depth:], "/")
		}
		if doublestar.MatchUnvalidated(r.glob, at) {
			return !r.back
		}
	}
	return false
}

// above reads the rules of the folders above the start. A folder that they ignore is searched nevertheless, as it was named.
func above(r *roots.Roots, place roots.Place, parts []string) ([]rule, error) {
	top, _, err := r.OpenTop(place)
	if err != nil {
		return nil, err
	}
	defer func() { top.Close() }()
	rules := exclude(top)
	for i, part := range parts {
		rules = append(rules, ignores(top, i)...)
		if ignored(rules, parts[:i+1], true) {
			return nil, nil
		}
		next, err := top.Dir(part)
		if err != nil {
			break // replaced since it was resolved; the walk itself has its own handle
		}
		top.Close()
		top = next
	}
	return rules, nil
}

// ignores reads the .gitignore of a folder.
func ignores(d *roots.Dir, depth int) []rule { return readRules(d, ".gitignore", depth) }

// exclude reads .git/info/exclude of a work tree's top.
func exclude(top *roots.Dir) []rule {
	git, err := top.Dir(".git")
	if err != nil {
		return nil
	}
	defer git.Close()
	info, err := git.Dir("info")
	if err != nil {
		return nil
	}
	defer info.Close()
	return readRules(info, "exclude", 0)
}

func readRules(d *roots.Dir, name string, depth int) []rule {
	if info, err := d.Lstat(name); err != nil || info.Mode()&fs.ModeType != 0 || info.Size() > maxIgnoreBytes {
		return nil
	}
	f, _, err := d.File(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []rule
	in := bufio.NewScanner(f)
	in.Buffer(nil, maxIgnoreBytes+1)
	for first := true; in.Scan(); first = false {
		line := in.Text()
		if first {
			line = strings.TrimPrefix(line, "\uFEFF")
		}
		if r, ok := ruleOf(line, depth); ok {
			out = append(out, r)
		}
	}
	return out
}
