package roots

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// OpenFile opens a regular file for reading. What is no regular file is refused before it is opened: opening a pipe may never return.
func (r *Roots) OpenFile(path string) (*os.File, fs.FileInfo, error) {
	p, err := r.Resolve(path)
	if err != nil {
		return nil, nil, err
	}
	if p.Outside {
		h, name, err := p.folder(path)
		if err != nil {
			return nil, nil, err
		}
		defer h.Close()
		return openIn(h, name, path, p, false)
	}
	return openIn(p.top.dir, filepath.FromSlash(p.Rel), path, p, true)
}

// openIn opens the regular file name relative to h. Unless links says so, a link at the last step is refused.
func openIn(h *os.Root, name, path string, p Place, links bool) (*os.File, fs.FileInfo, error) {
	look := h.Stat
	if !links {
		look = h.Lstat
	}
	info, err := look(name)
	if err != nil {
		return nil, nil, p.fault(path, err)
	}
	if err := p.regular(path, info); err != nil {
		return nil, nil, err
	}
	f, err := h.OpenFile(name, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, nil, p.fault(path, err)
	}
	now, err := f.Stat()
	if err == nil {
		err = p.regular(path, now) // somebody may have put a pipe there meanwhile
	}
	if err == nil && !links && !os.SameFile(info, now) {
		err = errSwapped
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, p.fault(path, err)
	}
	return f, now, nil
}

func (p Place) regular(path string, info fs.FileInfo) error {
	what := "no regular file"
	switch m := info.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		what = "a folder"
	case m&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case m&fs.ModeDevice != 0:
		what = "a device"
	case m&fs.ModeSocket != 0:
		what = "a socket"
	case m&fs.ModeSymlink != 0:
		what = "a link"
	}
	return refuse(WrongKind, path, p.Abs, nil, "%s is %s, not a file.", quote(path), what)
}

// Stat describes what path leads to, links followed.
func (r *Roots) Stat(path string) (fs.FileInfo, error) {
	p, err := r.Resolve(path)
	if err != nil {
		return nil, err
	}
	h, name, err := p.folder(path)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	look := h.Stat
	if p.Outside {
		look = h.Lstat
	}
	info, err := look(name)
	return info, p.fault(path, err)
}

// ReadDir lists the folder path, sorted by name.
func (r *Roots) ReadDir(ctx context.Context, path string) ([]fs.DirEntry, error) {
	d, _, err := r.OpenDir(path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Entries(ctx)
}

// Dir is an open folder. Names are taken in it, one step at a time, and links are not followed: what is walked with it stays in it.
type Dir struct{ h *os.Root }

// OpenDir opens the folder path and says where it lies. The Dir is the caller's to close.
func (r *Roots) OpenDir(path string) (*Dir, Place, error) {
	p, err := r.Resolve(path)
	if err != nil {
		return nil, p, err
	}
	var h *os.Root
	if p.Outside {
		h, err = exactly(path, p, p.Abs)
	} else {
		// Looked at first: opening a pipe may never return.
		rel := filepath.FromSlash(p.Rel)
		var info fs.FileInfo
		if info, err = p.top.dir.Stat(rel); err == nil {
			if !info.IsDir() {
				return nil, p, refuse(WrongKind, path, p.Abs, nil, "%s is a file, not a folder.", quote(path))
			}
			h, err = p.top.dir.OpenRoot(rel)
		}
	}
	if err != nil {
		return nil, p, p.fault(path, err)
	}
	return &Dir{h}, p, nil
}

// OpenTop opens the root that p lies in, or p itself where it lies outside, and says where that is.
func (r *Roots) OpenTop(p Place) (*Dir, Place, error) {
	if p.Outside {
		return r.OpenDir(p.Abs)
	}
	h, err := p.top.dir.OpenRoot(".")
	if err != nil {
		return nil, p, p.fault(p.Abs, err)
	}
	return &Dir{h}, Place{Abs: p.top.path, Rel: ".", top: p.top}, nil
}

// Close gives the handle back.
func (d *Dir) Close() { _ = d.h.Close() }

// Entries lists the folder, sorted by name. It comes back soon after ctx ends, however large the folder is.
func (d *Dir) Entries(ctx context.Context) ([]fs.DirEntry, error) {
	f, err := d.h.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []fs.DirEntry
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		some, err := f.ReadDir(1024)
		all = append(all, some...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return all, nil
}

// Dir opens the folder name in d. A link is no folder.
func (d *Dir) Dir(name string) (*Dir, error) {
	info, err := d.h.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a folder")}
	}
	h, err := d.h.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	now, err := h.Stat(".")
	if err == nil && !os.SameFile(info, now) {
		err = errSwapped
	}
	if err != nil {
		_ = h.Close()
		return nil, err
	}
	return &Dir{h}, nil
}

// Lstat describes name in d.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) { return d.h.Lstat(name) }

// File opens the regular file name in d for reading. A link is no file.
func (d *Dir) File(name string) (*os.File, fs.FileInfo, error) {
	return openIn(d.h, name, name, Place{Abs: name}, false)
}
