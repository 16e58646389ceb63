package search

import (
	"bufio"
	"io/fs"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/rind-dev/rind/session/roots"
)

const maxIgnoreBytes = 1 << 20

// rule is one line of an ignore file. Rules of a folder stand behind those of the folders above it; the last that matches decides.
type rule struct {
	pattern gitignore.Pattern
	depth   int  // of the folder it stands in, from the top
	named   bool // it has no slash but at its end: it matches a name in any folder below
}

// ignored reports whether git would leave out parts, the way from the top to a file or folder. The folders on the way are not: a walk does
// not come below an ignored one. So a rule counts only if it matches the last step itself; the matcher alone would let a rule for a folder
// decide of all that lies below, and bring back files that another rule leaves out.
func ignored(rules []rule, parts []string, folder bool) bool {
	last := len(parts) - 1
	for i := len(rules) - 1; i >= 0; i-- {
		r := &rules[i]
		from := r.depth
		if r.named {
			from = last
		}
		m := r.pattern.Match(parts[from:], folder)
		if m == gitignore.NoMatch || from < last && r.pattern.Match(parts[from:last], true) == m {
			continue
		}
		return m == gitignore.Exclude
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
	for in := bufio.NewScanner(f); in.Scan(); {
		line := strings.TrimPrefix(in.Text(), "\uFEFF")
		if strings.TrimRight(line, " ") == "" || line[0] == '#' {
			continue
		}
		if strings.HasSuffix(line, "/**") { // the same to git, but the matcher would take it for the folder itself
			line = strings.TrimSuffix(line, "*")
		}
		named := !strings.Contains(strings.TrimSuffix(strings.TrimRight(line, " "), "/"), "/")
		out = append(out, rule{pattern: gitignore.ParsePattern(line, nil), depth: depth, named: named})
	}
	return out
}
