package search

import (
	"context"
	"path"
	"strings"

	"github.com/rind-dev/rind/session/roots"
)

const maxDepth = 200 // folders are held open on the way down

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
	rules []rule
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
	rules := append(at.rules[:len(at.rules):len(at.rules)], ignores(at.dir, len(at.parts))...)
	parts := append(at.parts[:len(at.parts):len(at.parts)], "")
	for _, d := range entries {
		if w.count++; w.count%64 == 0 && w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		name := d.Name()
		parts[len(parts)-1] = name
		if name == ".git" || !d.IsDir() && !d.Type().IsRegular() || ignored(rules, parts, d.IsDir()) {
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

func (w *walker) below(at level, name string, rules []rule) error {
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
