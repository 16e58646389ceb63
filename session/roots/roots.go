// Package roots is the only room that opens workspace files. Everything is opened relative to a handle of a root folder (os.Root), so
// that neither "..", an absolute name, a link, nor a folder swapped for a link at the wrong moment leads outside. Links that stay
// inside the roots are followed, also from one root into another.
//
// It promises: what is no regular file is refused before it is opened; a file is written whole or not at all; every refusal of a path is
// a *PathError whose text is one line for model and user.
//
// It owns no goroutine. A Roots may be used by several at once; Close gives its handles back.
package roots

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Roots are the folders a tool may touch. The first is the base of relative paths.
type Roots struct {
	list    []root
	allowed []string
}

type root struct {
	path string // absolute, links resolved
	dir  *os.Root
}

// Open opens the folders. The first must exist; of the others those that are gone, or cannot be opened, are left out: what is done in the
// workspace must not depend on them. A *PathError says why the first cannot be opened.
func Open(paths ...string) (*Roots, error) {
	if len(paths) == 0 {
		return nil, errors.New("roots: no folder given")
	}
	r := &Roots{}
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err == nil {
			abs, err = filepath.EvalSymlinks(abs)
		}
		var dir *os.Root
		if err == nil {
			dir, err = os.OpenRoot(abs)
		}
		if err != nil && len(r.list) > 0 {
			continue
		}
		if err != nil {
			r.Close()
			why := Denied
			if errors.Is(err, fs.ErrNotExist) {
				why = Missing
			}
			return nil, refuse(why, p, p, err, "The workspace folder %s cannot be opened: %s.", quote(p), reason(err))
		}
		r.list = append(r.list, root{abs, dir})
	}
	return r, nil
}

// Allow lets absolute paths outside the roots be used, as consent was given for them: each exactly as listed, links resolved. A listed
// file may be read and written, a listed folder be walked; what lies below it is not opened by its own name. Call it before others
// use r.
func (r *Roots) Allow(outside ...string) {
	for _, p := range outside {
		if filepath.IsAbs(p) {
			r.allowed = append(r.allowed, filepath.Clean(p))
		}
	}
}

// OpenAllowing is Open, with the paths outside that consent was given for; see Allow.
func OpenAllowing(paths, outside []string) (*Roots, error) {
	r, err := Open(paths...)
	if err != nil {
		return nil, err
	}
	r.Allow(outside...)
	return r, nil
}

// Close gives the handles back.
func (r *Roots) Close() {
	for _, x := range r.list {
		_ = x.dir.Close()
	}
}

// Base is the folder relative paths start from: absolute, links resolved.
func (r *Roots) Base() string { return r.list[0].path }

// Place is where a path leads.
type Place struct {
	Abs     string // absolute, links followed
	Rel     string // slash separated, relative to its root; "." for the root itself and for a place outside
	Outside bool   // allowed by name
	top     root   // of a place inside
}

// Show is how a place is named to the model: relative to the base where it lies below it, else absolute. Slashes separate.
func (r *Roots) Show(p Place) string {
	if rel, err := filepath.Rel(r.Base(), p.Abs); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(p.Abs)
}

func (r *Roots) listed(abs string) bool { return slices.Contains(r.allowed, abs) }

// folder opens the folder that holds p, which must exist, and names p in it. The handle is the caller's to close.
func (p Place) folder(path string) (*os.Root, string, error) {
	if p.Outside {
		h, err := exactly(path, p, filepath.Dir(p.Abs))
		return h, filepath.Base(p.Abs), err
	}
	if p.Rel == "." {
		h, err := p.top.dir.OpenRoot(".")
		return h, ".", p.fault(path, err)
	}
	rel := filepath.FromSlash(p.Rel)
	h, err := p.top.dir.OpenRoot(filepath.Dir(rel))
	return h, filepath.Base(rel), p.fault(path, err)
}

// exactly opens the folder abs outside the roots, where no name on the way is a link. That is checked once it is open: what was opened
// must be what the name leads to without any link.
func exactly(path string, p Place, abs string) (*os.Root, error) {
	h, err := os.OpenRoot(abs)
	if err != nil {
		return nil, p.fault(path, err)
	}
	opened, err := h.Stat(".")
	if err == nil {
		var named fs.FileInfo
		var at string
		if at, err = follow(abs); err == nil && at != abs {
			err = errSwapped
		}
		if err == nil {
			if named, err = os.Lstat(abs); err == nil && !os.SameFile(opened, named) {
				err = errSwapped
			}
		}
	}
	if err != nil {
		_ = h.Close()
		return nil, p.fault(path, err)
	}
	return h, nil
}
