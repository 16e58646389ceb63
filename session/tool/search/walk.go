package search

import (
	"bufio"
	"context"
	"io/fs"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/rind-dev/rind/session/roots"
)

const (
	maxIgnoreBytes = 1 << 20
	maxDepth       = 200 // folders are held open on the way down
)

// walker visits the regular files below a folder that git would not ignore, hidden ones included. Links are not followed: what they lead
// to inside is met under its own name. What cannot be read is skipped.
type walker struct {
	ctx   context.Context
	visit func(f file) error
	count int
}

// file is one visited file. Its folder is open during the visit only.
type file struct {
	in    *roots.Dir
	name  string
	shown string // as results name it
	rel   string // from the folder the walk started in
}

// level is one folder on the way down.
type level struct {
	dir   *roots.Dir
	parts []string // from the top
	shown string
	rel   string
	rules []gitignore.Pattern
	depth int
}

// walk visits what lies below the folder path.
func (w *walker) walk(r *roots.Roots, start string) error {
	d, place, err := r.OpenDir(start)
	if err != nil {
		return err
	}
	defer d.Close()
	at := level{dir: d, shown: r.Show(place)}
	if place.Rel != "." {
		at.parts = strings.Split(place.Rel, "/")
	}
	if at.rules, err = above(r, place, at.parts); err != nil {
		return err
	}
	return w.folder(at)
}

// above reads the ignore rules of the folders above the start. A folder that they ignore is searched nevertheless, as it was named.
func above(r *roots.Roots, place roots.Place, parts []string) ([]gitignore.Pattern, error) {
	top, _, err := r.OpenTop(place)
	if err != nil {
		return nil, err
	}
	defer func() { top.Close() }()
	rules := exclude(top)
	for i, part := range parts {
		rules = append(rules, ignores(top, parts[:i])...)
		next, err := top.Dir(part)
		if err != nil {
			break // replaced since it was resolved; the walk itself has its own handle
		}
		top.Close()
		top = next
	}
	if len(parts) > 0 && gitignore.NewMatcher(rules).Match(parts, true) {
		return nil, nil
	}
	return rules, nil
}

func (w *walker) folder(at level) error {
	if at.depth > maxDepth {
		return nil
	}
	entries, err := at.dir.Entries(w.ctx)
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if err != nil {
		return nil // a folder that may not be read has nothing to find
	}
	rules := append(at.rules[:len(at.rules):len(at.rules)], ignores(at.dir, at.parts)...)
	match := gitignore.NewMatcher(rules)
	parts := append(at.parts[:len(at.parts):len(at.parts)], "")
	for _, d := range entries {
		if w.count++; w.count%64 == 0 && w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		name := d.Name()
		parts[len(parts)-1] = name
		if name == ".git" || !d.IsDir() && !d.Type().IsRegular() || len(rules) > 0 && match.Match(parts, d.IsDir()) {
			continue
		}
		if !d.IsDir() {
			err = w.visit(file{in: at.dir, name: name, shown: path.Join(at.shown, name), rel: path.Join(at.rel, name)})
		} else {
			err = w.below(at, name, rules)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) below(at level, name string, rules []gitignore.Pattern) error {
	d, err := at.dir.Dir(name)
	if err != nil {
		return nil // gone, replaced, or not to be read
	}
	defer d.Close()
	return w.folder(level{
		dir: d, parts: append(at.parts[:len(at.parts):len(at.parts)], name), shown: path.Join(at.shown, name), rel: path.Join(at.rel, name),
		rules: rules, depth: at.depth + 1,
	})
}

// ignores reads the .gitignore of a folder; parts is the way to it.
func ignores(d *roots.Dir, parts []string) []gitignore.Pattern {
	return patterns(d, ".gitignore", parts)
}

// exclude reads .git/info/exclude of a work tree's top.
func exclude(top *roots.Dir) []gitignore.Pattern {
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
	return patterns(info, "exclude", nil)
}

func patterns(d *roots.Dir, name string, domain []string) []gitignore.Pattern {
	if info, err := d.Lstat(name); err != nil || info.Mode()&fs.ModeType != 0 || info.Size() > maxIgnoreBytes {
		return nil
	}
	f, _, err := d.File(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []gitignore.Pattern
	for in := bufio.NewScanner(f); in.Scan(); {
		line := strings.TrimPrefix(in.Text(), "\uFEFF")
		if strings.TrimRight(line, " ") == "" || line[0] == '#' {
			continue
		}
		if strings.HasSuffix(line, "/**") { // the same to git, but the matcher would take it for the folder itself
			line = strings.TrimSuffix(line, "*")
		}
		out = append(out, gitignore.ParsePattern(line, domain))
	}
	return out
}
