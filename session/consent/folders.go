package consent

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// elsewhere among the folders one may be in says that it may be another one too.
const elsewhere = ""

// lost tells whether folders are not all that there may be.
func lost(dirs []string) bool { return len(dirs) == 0 || slices.Contains(dirs, elsewhere) }

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, d := range b {
		if !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	if len(out) > mostDirs {
		out = append(out[:mostDirs:mostDirs], elsewhere)
	}
	return out
}

// moves tells where one is after a call.
func moves(argv []word, st state, home string) (ok, after []string) {
	anywhere := []string{elsewhere}
	switch argv[0].text {
	case "cd", "chdir":
		if len(argv) == 1 && home != "" {
			there := []string{home, elsewhere}
			return there, union(st.dirs, there)
		}
	case "command":
		if len(argv) > 1 && (argv[1].text == "-v" || argv[1].text == "-V") {
			return st.dirs, st.dirs
		}
		return union(st.dirs, anywhere), union(st.dirs, anywhere)
	case "pushd":
		if len(argv) == 2 && !argv[1].unclear() && path.IsAbs(argv[1].text) {
			there := []string{argv[1].text, elsewhere}
			return there, union(st.dirs, there)
		}
		return union(st.dirs, anywhere), union(st.dirs, anywhere)
	case "popd", "eval", "source", ".", "builtin":
		return union(st.dirs, anywhere), union(st.dirs, anywhere)
	default:
		if argv[0].unclear() {
			return union(st.dirs, anywhere), union(st.dirs, anywhere)
		}
		return st.dirs, st.dirs
	}
	to, given := word{}, 0
	for _, w := range argv[1:] {
		if given == 0 && (w.text == "--" || w.text == "-P" || w.text == "-L") {
			continue
		}
		to = w
		given++
	}
	if given != 1 || to.unclear() || to.text == "" || to.text[0] == '-' {
		return anywhere, union(st.dirs, anywhere)
	}
	dirs := []string{}
	for _, d := range st.dirs {
		switch {
		case path.IsAbs(to.text):
			d = to.text
		case d == elsewhere:
		default:
			d += "/" + to.text // not joined: ".." behind a link is for the resolver
		}
		dirs = union(dirs, []string{d})
		if strings.Contains(to.text, "..") && d != elsewhere { // a shell strikes out the link, other programs follow it
			dirs = union(dirs, []string{path.Clean(d)})
		}
	}
	if !to.known || to.digit || to.glob != "" {
		dirs = union(dirs, anywhere)
	}
	return dirs, union(st.dirs, dirs)
}

func changesFolder(n syntax.Node) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
			lit := c.Args[0].Lit()
			switch lit {
			case "", "cd", "pushd", "popd", "eval", "source", ".", "builtin", "command", "chdir": // "": quoted, or not known
				found = true
			default:
				found = found || strings.Contains(lit, `\`)
			}
		}
		return !found
	})
	return found
}
