// Package roots is the only room that opens workspace files. Everything is opened relative to a handle of a root folder (os.Root), so
// that neither "..", an absolute name, a link, nor a folder swapped for a link at the wrong moment leads outside.
//
// It owns no goroutine. A Roots may be used by several at once; Close gives its handles back.
package roots

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Reason says why a path is refused.
type Reason uint8

// Reasons.
const (
	Invalid    Reason = iota // no usable file name
	Outside                  // leads outside the roots
	Missing                  // no such file
	NotRegular               // a folder, pipe, device or socket
	Denied                   // the operating system refuses
)

// PathError is a refused path. Its text is one line for model and user.
type PathError struct {
	Reason   Reason
	Path     string // as given
	Resolved string // absolute, links followed; "" for Invalid
	Text     string
	Cause    error
}

func (e *PathError) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *PathError) Unwrap() error { return e.Cause }

// Roots are the folders a tool may touch. The first is the base of relative paths.
type Roots struct{ list []root }

type root struct {
	path string // absolute, links resolved
	dir  *os.Root
}

// Open opens the folders, which must exist.
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
		if err != nil {
			r.Close()
			return nil, fmt.Errorf("open workspace folder: %w", err)
		}
		r.list = append(r.list, root{abs, dir})
	}
	return r, nil
}

// Close gives the handles back.
func (r *Roots) Close() {
	for _, x := range r.list {
		_ = x.dir.Close()
	}
}

// Base is the folder relative paths start from.
func (r *Roots) Base() string { return r.list[0].path }

// Place is where a path leads.
type Place struct {
	Abs string // absolute, links followed
	Rel string // relative to its root, slash separated; "." for the root itself
	dir *os.Root
}

var drive = regexp.MustCompile(`^[A-Za-z]:[\\/]`)

// Resolve follows a path, which need not exist, to where it leads. Invalid or Outside.
func (r *Roots) Resolve(path string) (Place, error) {
	refuse := func(text string) (Place, error) {
		return Place{}, &PathError{Reason: Invalid, Path: path, Text: text}
	}
	switch {
	case path == "":
		return refuse("The path is empty.")
	case strings.IndexByte(path, 0) >= 0:
		return refuse("The path holds a NUL byte.")
	case strings.HasPrefix(path, "~"):
		return refuse(fmt.Sprintf("%q: ~ is not expanded; give a path relative to the workspace.", path))
	case filepath.Separator == '/' && drive.MatchString(path):
		return refuse(fmt.Sprintf("%q is a Windows path; give a path relative to the workspace.", path))
	}
	abs := path
	if !filepath.IsAbs(abs) {
		abs = r.Base() + string(filepath.Separator) + path // not Join: ".." behind a link must be followed, not struck out
	}
	abs, err := follow(abs)
	if err != nil {
		return Place{}, &PathError{Reason: Denied, Path: path, Text: fmt.Sprintf("%q cannot be followed: %s.", path, reason(err)), Cause: err}
	}
	for _, x := range r.list {
		rel, err := filepath.Rel(x.path, abs)
		if err == nil && filepath.IsLocal(rel) {
			return Place{Abs: abs, Rel: filepath.ToSlash(rel), dir: x.dir}, nil
		}
	}
	return Place{}, &PathError{
		Reason: Outside, Path: path, Resolved: abs, Text: fmt.Sprintf("%q leads to %s, outside the workspace.", path, abs),
	}
}

const maxLinks = 255

// follow resolves every link of an absolute path, also those whose target does not exist.
func follow(path string) (string, error) {
	vol := filepath.VolumeName(path)
	todo := strings.Split(filepath.ToSlash(path[len(vol):]), "/")
	at := vol + string(filepath.Separator)
	links := 0
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			at = next // nothing below exists: names are taken as they are
			continue
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", errors.New("too many links")
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			vol = filepath.VolumeName(target)
			at = vol + string(filepath.Separator)
			target = target[len(vol):]
		}
		todo = append(strings.Split(filepath.ToSlash(target), "/"), todo...)
	}
	return at, nil
}

func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}

// fault turns an error of the operating system about a resolved path into a PathError.
func fault(path string, p Place, err error) error {
	e := &PathError{Path: path, Resolved: p.Abs, Cause: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Reason, e.Text = Missing, fmt.Sprintf("There is no file %q.", path)
	case strings.Contains(err.Error(), "path escapes"): // it was inside a moment ago: somebody swapped a link in
		e.Reason, e.Text = Outside, fmt.Sprintf("%q leads outside the workspace.", path)
	default:
		e.Reason, e.Text = Denied, fmt.Sprintf("%q cannot be opened: %s.", path, reason(err))
	}
	return e
}

// OpenFile opens a regular file for reading. What is no regular file is refused before it is opened: opening a pipe may never return.
func (r *Roots) OpenFile(path string) (*os.File, fs.FileInfo, error) {
	p, err := r.Resolve(path)
	if err != nil {
		return nil, nil, err
	}
	return p.open(path)
}

func (p Place) open(path string) (*os.File, fs.FileInfo, error) {
	info, err := p.dir.Stat(filepath.FromSlash(p.Rel))
	if err != nil {
		return nil, nil, fault(path, p, err)
	}
	if err := regular(path, p, info); err != nil {
		return nil, nil, err
	}
	f, err := p.dir.OpenFile(filepath.FromSlash(p.Rel), os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, nil, fault(path, p, err)
	}
	if info, err = f.Stat(); err == nil {
		err = regular(path, p, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func regular(path string, p Place, info fs.FileInfo) error {
	what := ""
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
	default:
		what = "no regular file"
	}
	return &PathError{Reason: NotRegular, Path: path, Resolved: p.Abs, Text: fmt.Sprintf("%q is %s, not a file.", path, what)}
}

// Dir opens the folder path for walking: an fs.FS that cannot lead outside, and where it lies.
func (r *Roots) Dir(path string) (fs.FS, Place, error) {
	p, err := r.Resolve(path)
	if err != nil {
		return nil, p, err
	}
	info, err := p.dir.Stat(filepath.FromSlash(p.Rel))
	if err != nil {
		return nil, p, fault(path, p, err)
	}
	if !info.IsDir() {
		return nil, p, &PathError{Reason: NotRegular, Path: path, Resolved: p.Abs, Text: fmt.Sprintf("%q is a file, not a folder.", path)}
	}
	sub, err := fs.Sub(p.dir.FS(), p.Rel)
	if err != nil {
		return nil, p, fault(path, p, err)
	}
	return sub, p, nil
}

// Show is how a place is named to the model: relative to the base where it lies below it, else absolute.
func (r *Roots) Show(p Place) string {
	if rel, err := filepath.Rel(r.Base(), p.Abs); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(p.Abs)
}

// Top is the root a place lies in, as a file system and as a place.
func (r *Roots) Top(p Place) (fs.FS, Place, error) {
	for _, x := range r.list {
		if x.dir == p.dir {
			return x.dir.FS(), Place{Abs: x.path, Rel: ".", dir: x.dir}, nil
		}
	}
	return nil, Place{}, errors.New("roots: place of other roots")
}
