package roots

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// WriteOptions say what WriteFile does with what is there. The zero value replaces it, or makes a new file.
type WriteOptions struct {
	Perm   fs.FileMode // of a new file, before the umask; 0 is 0666. A file that is there keeps its permissions.
	Since  fs.FileInfo // Changed unless the file is still this one, untouched
	Absent bool        // Changed if there is something
}

// WriteFile puts data in the place of the file path leads to, whole or not at all, and says where that is: a temporary file beside it is
// written, flushed and renamed. Missing folders on the way are made. A link that stays inside stays, its target is written. What is no
// regular file, or may not be written, is refused. Other hard links of the file keep the old content.
func (r *Roots) WriteFile(path string, data []byte, o WriteOptions) (Place, error) {
	p, err := r.Resolve(path)
	if err != nil {
		return p, err
	}
	if p.Rel == "." && !p.Outside {
		return p, refuse(WrongKind, path, p.Abs, nil, "%s is a folder, not a file.", quote(path))
	}
	if endsAsFolder(path) {
		return p, refuse(WrongKind, path, p.Abs, nil, "%s names a folder, not a file.", quote(path))
	}
	if err := p.makeFolder(path); err != nil {
		return p, err
	}
	h, name, err := p.folder(path)
	if err != nil {
		return p, err
	}
	defer h.Close()
	old, err := p.replaceable(h, name, path, o)
	if err != nil {
		return p, err
	}
	temp, err := writeTemp(h, data, old, o.Perm)
	if err == nil {
		if err = putInPlace(h, temp, name, path, p, o); err != nil {
			_ = h.Remove(temp)
		}
	}
	if err != nil {
		if errors.As(err, new(*PathError)) {
			return p, err
		}
		return p, refuse(Denied, path, p.Abs, err, "%s cannot be written: %s.", quote(path), reason(err))
	}
	syncFolder(h)
	return p, nil
}

func endsAsFolder(path string) bool {
	last := filepath.ToSlash(path)
	return last[len(last)-1] == '/' || filepath.Base(last) == "." || filepath.Base(last) == ".."
}

// makeFolder makes the folders above p inside its root.
func (p Place) makeFolder(path string) error {
	if p.Outside || p.Rel == "." {
		return nil
	}
	dir := filepath.Dir(filepath.FromSlash(p.Rel))
	if dir == "." {
		return nil
	}
	switch info, err := p.top.dir.Stat(dir); {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return refuse(WrongKind, path, p.Abs, nil, "%s lies below a file, not a folder.", quote(path))
	}
	switch err := p.top.dir.MkdirAll(dir, 0o777); {
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return refuse(WrongKind, path, p.Abs, err, "%s lies below a file, not a folder.", quote(path))
	default:
		return p.fault(path, err)
	}
}

// replaceable looks at what is there: nil for nothing.
func (p Place) replaceable(h *os.Root, name, path string, o WriteOptions) (fs.FileInfo, error) {
	info, err := h.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if o.Since != nil {
			return nil, p.changed(path)
		}
		return nil, nil
	}
	if err != nil {
		return nil, p.fault(path, err)
	}
	if info.Mode()&fs.ModeSymlink != 0 { // it was none a moment ago
		return nil, p.fault(path, errSwapped)
	}
	if err := p.regular(path, info); err != nil {
		return nil, err
	}
	if o.Absent || o.Since != nil && !same(o.Since, info) {
		return nil, p.changed(path)
	}
	// A rename asks only for the folder's consent; a file that may not be written is to stay as it is.
	f, err := h.OpenFile(name, os.O_WRONLY|noWait, 0)
	if err == nil {
		_ = f.Close()
	} else if errors.Is(err, fs.ErrPermission) {
		return nil, refuse(Denied, path, p.Abs, err, "%s is write-protected.", quote(path))
	}
	return info, nil
}

func (p Place) changed(path string) error {
	return refuse(Changed, path, p.Abs, nil, "%s was changed by somebody else meanwhile; read it again.", quote(path))
}

func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// writeTemp writes a temporary file in h, flushed and with the permissions it is to have.
func writeTemp(h *os.Root, data []byte, old fs.FileInfo, perm fs.FileMode) (string, error) {
	switch {
	case old != nil:
		perm = 0o600 // nobody else reads it before it has the permissions of the old one
	case perm == 0:
		perm = 0o666
	}
	var random [8]byte
	_, _ = rand.Read(random[:])
	name := ".rind-" + hex.EncodeToString(random[:]) + ".tmp"
	f, err := h.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil && old != nil {
		keepOwner(f, old)
		err = f.Chmod(old.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = h.Remove(name)
		return "", fmt.Errorf("write temporary file: %w", err)
	}
	return name, nil
}

// putInPlace renames temp to name, having looked a last time that it replaces what it is meant to.
func putInPlace(h *os.Root, temp, name, path string, p Place, o WriteOptions) error {
	if o.Absent {
		switch err := h.Link(temp, name); { // unlike a rename it never replaces anything
		case err == nil:
			return h.Remove(temp)
		case errors.Is(err, fs.ErrExist):
			return p.changed(path)
		}
		// this file system knows no hard links
	}
	info, err := h.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if o.Since != nil {
			return p.changed(path)
		}
	case err != nil:
		return err
	case o.Absent || o.Since != nil && !same(o.Since, info):
		return p.changed(path)
	}
	return h.Rename(temp, name)
}

// Mkdir makes the folder path and those missing above it. It is no error if it is there.
func (r *Roots) Mkdir(path string) (Place, error) {
	p, err := r.Resolve(path)
	if err != nil {
		return p, err
	}
	h, name := p.top.dir, filepath.FromSlash(p.Rel)
	if p.Outside {
		if h, name, err = p.folder(path); err != nil {
			return p, err
		}
		defer h.Close()
	}
	switch err := h.MkdirAll(name, 0o777); {
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return p, refuse(WrongKind, path, p.Abs, err, "%s is, or lies below, a file.", quote(path))
	default:
		return p, p.fault(path, err)
	}
}

// Remove removes a file, an empty folder or, where path names a link, the link and not its target. Roots themselves stay.
func (r *Roots) Remove(path string) error {
	if e := usable(path); e != nil {
		return e
	}
	dir, name := filepath.Split(strings.TrimRightFunc(path, func(c rune) bool { return c == '/' || c == filepath.Separator }))
	if name == "" || name == "." || name == ".." {
		return refuse(Invalid, path, "", nil, "%s names no single file.", quote(path))
	}
	if dir == "" {
		dir = "."
	}
	p, err := r.Resolve(dir)
	if e, ok := errors.AsType[*PathError](err); ok && e.Reason == Outside && r.listed(filepath.Join(e.Resolved, name)) {
		p, err = Place{Abs: filepath.Join(e.Resolved, name), Rel: ".", Outside: true}, nil
	} else {
		p.Abs, p.Rel = filepath.Join(p.Abs, name), filepath.ToSlash(filepath.Join(filepath.FromSlash(p.Rel), name))
	}
	if err != nil {
		return err
	}
	if p.Outside && !r.listed(p.Abs) { // its folder is, which lets nobody change what lies in it
		return refuse(Outside, path, p.Abs, nil, "%s leads to %s, outside the workspace.", quote(path), quote(p.Abs))
	}
	if slices.ContainsFunc(r.list, func(x root) bool { return x.path == p.Abs }) {
		return refuse(Denied, path, p.Abs, fs.ErrPermission, "%s is a workspace folder.", quote(path))
	}
	h, name, err := p.folder(path)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.Remove(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return p.fault(path, err)
		}
		return refuse(Denied, path, p.Abs, err, "%s cannot be removed: %s.", quote(path), reason(err))
	}
	return nil
}
