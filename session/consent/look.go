package consent

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rind-dev/rind/session/roots"
)

// look finds out where the names in a command lead.
type look struct {
	p    *Policy
	open *roots.Roots
	read int // entries of folders read for wildcards so far
	done int // names followed so far
}

// seen is what the names of a step lead to.
type seen struct {
	outside string // the first place outside the roots; "" for none
	secret  string // the first secret file; "" for none
	lost    bool   // where some name leads is not known
	guarded bool   // some name lies where other programs look for what to obey
}

func (s *seen) join(o seen) {
	if s.outside == "" {
		s.outside = o.outside
	}
	if s.secret == "" {
		s.secret = o.secret
	}
	s.lost, s.guarded = s.lost || o.lost, s.guarded || o.guarded
}

// step looks at all names of a step.
func (l *look) step(p *step) seen {
	var out seen
	if p.other == "redirection" {
		return l.word(p.target, p.dirs, true)
	}
	if len(p.argv) == 0 {
		return out
	}
	name, isReader := readerName(p.argv)
	row := readers[name]
	out.lost = isReader && name == p.argv[0].text && l.planted(name, p.dirs)
	if name == "git" && isReader {
		out.join(l.git(p))
		return out
	}
	if name == "timeout" || name == "nice" {
		if inner, _ := unwrap(p.argv); len(inner) > 0 {
			out.join(l.step(&step{argv: inner, dirs: p.dirs}))
			return out
		}
	}
	if head := p.argv[0].text; strings.Contains(head, "/") && !isReader {
		out.join(l.name(head, p.dirs))
	}
	if row.flags != nil && isReader {
		if g := row.flags.read(p.argv[1:]); g.ok {
			out.join(l.options(row, g, p))
			out.join(l.search(name, p.argv[1:], p.dirs))
			return out
		}
	}
	text := row.text
	names := row.names
	if name == "find" {
		f := finds(p.argv[1:])
		names = !f.tells()
		for _, run := range f.runs {
			out.join(l.step(&step{argv: slices.DeleteFunc(slices.Clone(run), func(w word) bool { return w.text == "{}" }), dirs: p.dirs}))
		}
	}
	code := interpreters[name] || shells[name]
	over := false
	for _, w := range p.argv[1:] {
		switch {
		case w.glob != "": // becomes names, whatever it is for
		case text == -1:
			continue
		case !over && w.text == "--":
			over = true
			continue
		case over || !strings.HasPrefix(w.text, "-") || w.text == "-":
			if text > 0 && isReader {
				text--
				continue
			}
		}
		out.join(l.word(w, p.dirs, !names))
		if code && out.secret == "" {
			out.secret = mentions(w.text)
		}
	}
	if isReader {
		out.join(l.search(name, p.argv[1:], p.dirs))
	}
	return out
}

// builtins are readers that a shell has itself.
var builtins = strings.Fields("[ [[ test echo printf pwd cd true false : exit break continue set type command")

// planted tells whether a program is found in the workspace, where it may have been written a moment ago. A link that leads out of it is no
// such program.
func (l *look) planted(name string, dirs []string) bool {
	if l.p.cfg.Path == "" || slices.Contains(builtins, name) {
		return false
	}
	for _, in := range filepath.SplitList(l.p.cfg.Path) {
		if filepath.IsAbs(in) {
			if at := in + "/" + name; exists(at) {
				_, err := l.open.Resolve(at)
				return err == nil
			}
			continue
		}
		for _, d := range dirs { // "" and "." too
			if d == elsewhere || exists(d+"/"+in+"/"+name) {
				return true
			}
		}
	}
	return false
}

// options looks at the words of a call whose flags are known: its operands but the text among them, and what flags name.
func (l *look) options(row reader, g given, p *step) seen {
	var out seen
	files := g.operands
	if row.text > 0 {
		files = g.files(row.flags)
	}
	for i, w := range g.operands {
		if i >= len(g.operands)-len(files) || w.glob != "" {
			out.join(l.word(w, p.dirs, !row.names))
		}
	}
	for _, f := range g.flags {
		if f.late && !row.flags.whole || slices.Contains(row.flags.paths, f.name) {
			out.join(l.word(f.value, p.dirs, !row.names))
		}
	}
	for _, w := range p.argv[1:] {
		if w.glob != "" && strings.HasPrefix(w.text, "-") {
			out.join(l.glob(w.glob, p.dirs, !row.names)) // it becomes names, whatever it is for
		}
	}
	return out
}

// git looks at a call of git, whose folder may be another, and whose operands may name a file of a commit.
func (l *look) git(p *step) seen {
	var out seen
	dirs := p.dirs
	for i := 1; i < len(p.argv); i++ {
		w := p.argv[i]
		if w.text == "-C" && i+1 < len(p.argv) {
			to := p.argv[i+1]
			out.join(l.word(to, dirs, false))
			var next []string
			for _, d := range dirs {
				switch {
				case path.IsAbs(to.text):
					d = to.text
				case d != elsewhere:
					d += "/" + to.text
				}
				next = append(next, d)
			}
			dirs = next
			i++
			continue
		}
		if lines, ok := strings.CutPrefix(w.text, "-L"); ok && lines != "" { // -L1,5:FILE
			w.text = lines
		}
		flag, _, valued := strings.Cut(w.text, "=")
		if group().MatchString(w.text) && !strings.HasPrefix(w.text, "-S") && !strings.HasPrefix(w.text, "-G") {
			valued = true // -fFILE
		}
		if strings.HasPrefix(flag, "-") && (!valued || slices.Contains(gitTexts, flag)) {
			continue
		}
		out.join(l.word(w, dirs, true))
	}
	out.lost = out.lost || slices.ContainsFunc(dirs, embedded)
	if sub, rest, ok := gitSub(p.argv[1:]); ok && (sub == "grep" || sub == "diff") {
		out.join(l.search("git "+sub, rest, dirs))
	}
	return out
}

// embedded tells whether git may take a folder, or one above, for a repository though that is not called .git: anybody may write down there what
// it is to run.
func embedded(dir string) bool {
	for dir = resolved(filepath.Clean(dir)); ; dir = filepath.Dir(dir) {
		there := func(name string) bool { return exists(dir + "/" + name) }
		if there("HEAD") && (there("objects") || there("commondir")) {
			return true
		}
		if up := filepath.Dir(dir); there(".git") || up == dir {
			return false
		}
	}
}

// word looks at what one word may name. contents: what it names is read, not only listed.
func (l *look) word(w word, dirs []string, contents bool) seen {
	var out seen
	for _, name := range named(w.text) {
		if strings.Contains(name, unknownText) {
			if Secret(name) {
				out.secret = strings.ReplaceAll(name, unknownText, "…")
			}
			continue
		}
		out.join(l.name(name, dirs))
	}
	if w.glob != "" {
		out.join(l.glob(w.glob, dirs, contents))
	}
	return out
}

// named are the parts of a word that may be paths: all of it, the value of a flag, what stands behind = : , or @.
func named(t string) []string {
	if t == "" {
		return nil
	}
	var out []string
	if strings.HasPrefix(t, "-") {
		if flag, v, ok := strings.Cut(t, "="); ok {
			if flag == "--exclude" || flag == "--exclude-dir" {
				return nil // what is left out
			}
			out = append(out, v)
		} else if len(t) > 2 && t[1] != '-' && (strings.ContainsAny(t[2:], "/~") || strings.HasPrefix(t[2:], ".")) {
			out = append(out, t[2:])
		} else {
			return nil
		}
	} else {
		out = append(out, t)
	}
	if strings.ContainsAny(t, "=:,@") && !strings.Contains(t, "://") {
		for _, f := range strings.FieldsFunc(t, func(c rune) bool { return c == '=' || c == ':' || c == ',' || c == '@' }) {
			if f != t && !strings.HasPrefix(f, "-") {
				out = append(out, f)
			}
		}
	}
	return out
}

// name looks at one path.
func (l *look) name(name string, dirs []string) seen {
	var out seen
	if name == "" || name == "/dev/null" || name == "/dev/stdin" {
		return out
	}
	if l.done++; l.done > mostNames {
		out.lost = true
		return out
	}
	if l.p.secret(name) {
		out.secret = name
	}
	if path.IsAbs(name) {
		out.join(l.resolve(name, name))
		return out
	}
	out.lost = lost(dirs)
	for _, d := range dirs {
		if d != elsewhere {
			out.join(l.resolve(d+"/"+name, name))
		}
	}
	return out
}

func (l *look) resolve(abs, name string) seen {
	var out seen
	place, err := l.open.Resolve(abs)
	if err != nil {
		e, ok := errors.AsType[*roots.PathError](err)
		switch {
		case ok && e.Reason == roots.Outside:
			out.outside = e.Resolved
			place.Abs = e.Resolved
		case ok && e.Reason == roots.Invalid && len(name) > 255:
			return out // no name at all, but text
		default:
			out.lost = true
			return out
		}
	}
	if l.p.secret(place.Abs) {
		out.secret = name
	}
	out.guarded = out.outside == "" && isGuarded(l.open.Show(place))
	return out
}

// mostEntries bounds what is read of folders for the wildcards of one command.
const mostEntries = 4096

// mostNames bounds how many names of a command are followed.
const mostNames = 20_000

// glob looks at what a wildcard may become: by its text, and by what lies in the folders now.
func (l *look) glob(pattern string, dirs []string, contents bool) seen {
	var out seen
	if contents && secretGlob(pattern) {
		out.secret = unescape(pattern)
		return out
	}
	out.lost = !path.IsAbs(pattern) && lost(dirs)
	starts := dirs
	if path.IsAbs(pattern) {
		starts = []string{"/"}
	}
	for _, d := range starts {
		if d == elsewhere {
			continue
		}
		l.expand(d, strings.Split(strings.Trim(pattern, "/"), "/"), contents, !path.IsAbs(pattern), &out)
	}
	if l.read > mostEntries {
		out.lost = true
	}
	return out
}

// expand follows a pattern part by part below a folder. first: a name that is found is what the word begins with, and may be taken for a
// flag.
func (l *look) expand(dir string, parts []string, contents, first bool, out *seen) {
	for len(parts) > 0 && (!strings.ContainsAny(parts[0], "*?[")) {
		first = false
		dir += "/" + unescape(parts[0])
		parts = parts[1:]
	}
	if l.read > mostEntries {
		return
	}
	at := l.resolve(dir, dir)
	if !contents {
		at.secret = ""
	}
	out.join(at)
	if at.outside != "" || at.lost || len(parts) == 0 {
		return
	}
	entries, err := os.ReadDir(dir)
	l.read++
	if err != nil {
		return
	}
	for _, e := range entries {
		if l.read++; l.read > mostEntries {
			return
		}
		name := e.Name()
		if strings.HasPrefix(name, ".") && strings.ContainsAny(parts[0][:1], "*?") {
			continue
		}
		if ok, err := path.Match(parts[0], name); err == nil && !ok {
			continue
		}
		if first && strings.HasPrefix(name, "-") {
			out.lost = true
			return
		}
		at := dir + "/" + name
		if contents && l.p.secret(at) {
			out.join(seen{secret: name})
			return
		}
		if e.Type()&os.ModeSymlink != 0 {
			link := l.resolve(at, name)
			if !contents {
				link.secret = ""
			}
			out.join(link)
		}
		if len(parts) > 1 && (e.IsDir() || e.Type()&os.ModeSymlink != 0) {
			l.expand(at, parts[1:], contents, false, out)
		}
	}
}

// mentions finds the name of a secret file in code.
func mentions(code string) string {
	for _, t := range strings.FieldsFunc(code, func(c rune) bool {
		return strings.ContainsRune(" \t\r\n'\"`()=:,;@<>|&{}[]$\x00", c)
	}) {
		if Secret(t) {
			return t
		}
	}
	return ""
}
