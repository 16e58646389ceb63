package roots

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/rind-dev/rind/protocol"
)

// Reason says why a path is refused.
type Reason uint8

// Reasons.
const (
	Invalid   Reason = iota // no usable name, or links that go round in circles
	Outside                 // leads outside the roots
	Missing                 // no such file
	WrongKind               // a folder, pipe, device or socket where a file is wanted, or the other way round
	Denied                  // the operating system refuses, or fails
	Changed                 // not what it was when it was last looked at
)

// PathError is a refused path.
type PathError struct {
	Reason   Reason
	Path     string // as given
	Resolved string // absolute, links followed; "" for Invalid
	Text     string // one line for model and user
	Cause    error
}

func (e *PathError) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *PathError) Unwrap() error { return e.Cause }

// Outcome is the status and error_type of a tool call that ends with this refusal (docs/protocol/rind-v2.md section 9).
func (e *PathError) Outcome() (status, errorType string) {
	switch e.Reason {
	case Missing:
		return protocol.ToolUnavailable, protocol.ErrNotFound
	case Outside:
		return protocol.ToolRejected, protocol.ErrPermissionDenied
	case Denied:
		if errors.Is(e.Cause, fs.ErrPermission) || errors.Is(e.Cause, syscall.EROFS) {
			return protocol.ToolFailed, protocol.ErrPermissionDenied
		}
		return protocol.ToolFailed, protocol.ErrInternal // a full disk, a broken one: Text says which
	case Changed:
		return protocol.ToolFailed, protocol.ErrInvalidArguments
	case Invalid, WrongKind:
	}
	return protocol.ToolRejected, protocol.ErrInvalidArguments
}

var errSwapped = errors.New("a folder on the way was replaced")

func refuse(why Reason, path, resolved string, cause error, format string, args ...any) *PathError {
	return &PathError{Reason: why, Path: path, Resolved: resolved, Text: fmt.Sprintf(format, args...), Cause: cause}
}

// quote shows a path on one line, cut where nobody reads it anyway.
func quote(path string) string { return strconv.Quote(protocol.Prefix(path, 300)) }

const (
	maxPath  = 4096 // bytes
	maxLinks = 40   // on one way
)

var drive = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]:[\\/]|^\\\\`) })

// usable refuses what is no usable name on this system.
func usable(path string) *PathError {
	invalid := func(format string, args ...any) *PathError { return refuse(Invalid, path, "", nil, format, args...) }
	windows := runtime.GOOS == "windows"
	rest := path[len(filepath.VolumeName(path)):]
	switch {
	case path == "":
		return invalid("The path is empty.")
	case strings.IndexByte(path, 0) >= 0:
		return invalid("%s holds a NUL character.", quote(path))
	case len(path) > maxPath:
		return invalid("The path is longer than %d bytes.", maxPath)
	case path == "~", strings.HasPrefix(path, "~/"), strings.HasPrefix(path, `~\`):
		return invalid("%s: ~ is not expanded; give a path relative to the workspace.", quote(path))
	case !windows && drive().MatchString(path):
		return invalid("%s is a Windows path; give a path relative to the workspace.", quote(path))
	case windows && !filepath.IsAbs(path) && (rest != path || path[0] == '/' || path[0] == '\\'):
		return invalid("%s depends on the current drive; give a path relative to the workspace.", quote(path))
	case windows && strings.Contains(rest, ":"):
		return invalid("%s: a name cannot hold a colon.", quote(path))
	}
	for name := range strings.SplitSeq(filepath.ToSlash(rest), "/") {
		if name != "" && name != ".." && !filepath.IsLocal(name) { // names of devices on Windows
			return invalid("%s: %s is a reserved name.", quote(path), quote(name))
		}
	}
	return nil
}

// Resolve follows a path, which need not exist, to where it leads: every link on the way, ".." only after the links before it. It opens
// nothing. A *PathError with Invalid, Denied, or with Outside, whose Resolved is the place outside.
func (r *Roots) Resolve(path string) (Place, error) {
	if e := usable(path); e != nil {
		return Place{}, e
	}
	abs := path
	if !filepath.IsAbs(abs) {
		abs = r.Base() + string(filepath.Separator) + path // not Join: ".." behind a link must be followed, not struck out
	}
	abs, err := follow(abs)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return Place{}, refuse(Invalid, path, "", err, "%s cannot be followed: its links go round in circles.", quote(path))
	case errors.Is(err, syscall.ENAMETOOLONG):
		return Place{}, refuse(Invalid, path, "", err, "%s holds a name that is too long.", quote(path))
	case err != nil:
		return Place{}, refuse(Denied, path, "", err, "%s cannot be followed: %s.", quote(path), reason(err))
	}
	for _, x := range r.list {
		if rel, err := filepath.Rel(x.path, abs); err == nil && filepath.IsLocal(rel) {
			return Place{Abs: abs, Rel: filepath.ToSlash(rel), top: x}, nil
		}
	}
	if r.listed(abs) {
		return Place{Abs: abs, Rel: ".", Outside: true}, nil
	}
	return Place{}, refuse(Outside, path, abs, nil, "%s leads to %s, outside the workspace.", quote(path), quote(abs))
}

// follow resolves every link of an absolute path, also those whose target does not exist.
func follow(path string) (string, error) {
	vol := filepath.VolumeName(path)
	todo := strings.Split(filepath.ToSlash(path[len(vol):]), "/")
	at := vol + string(filepath.Separator)
	links := 0
	gone := "" // the first name of at that does not exist, with all before it; nothing below it needs to be looked at
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			if at == gone {
				gone = ""
			}
			at = filepath.Dir(at)
			continue
		}
		at = filepath.Join(at, name)
		if gone != "" {
			continue
		}
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			gone = at
			continue
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink == 0:
			continue
		}
		if links++; links > maxLinks {
			return "", syscall.ELOOP
		}
		target, err := os.Readlink(at)
		if err != nil {
			return "", err
		}
		switch v := filepath.VolumeName(target); {
		case filepath.IsAbs(target):
			vol = v
			at, target = vol+string(filepath.Separator), target[len(v):]
		case target != "" && os.IsPathSeparator(target[0]): // on Windows: absolute on the same volume
			at = vol + string(filepath.Separator)
		default:
			at = filepath.Dir(at)
		}
		todo = append(strings.Split(filepath.ToSlash(target), "/"), todo...)
	}
	return at, nil
}

func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return err.Error()
}

// fault turns an error of the operating system about a resolved path into a *PathError; nil stays nil.
func (p Place) fault(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*PathError)):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return refuse(Missing, path, p.Abs, err, "There is no file %s.", quote(path))
	case errors.Is(err, errSwapped), strings.Contains(err.Error(), "path escapes"): // it was inside a moment ago
		return refuse(Outside, path, p.Abs, err, "%s leads outside the workspace.", quote(path))
	}
	return refuse(Denied, path, p.Abs, err, "%s cannot be opened: %s.", quote(path), reason(err))
}
