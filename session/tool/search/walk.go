// Package search holds the tools that find files and text: glob and grep. They are pure Go, honour .gitignore files as git does, touch
// files through session/roots only and own no goroutine.
package search

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

const (
	defaultResults = 1000
	maxResults     = 10_000
	maxIgnoreBytes = 1 << 20
	maxDepth       = 200
)

// errEnough ends a walk that has found what it needs.
var errEnough = errors.New("enough found")

// walker visits the files below a folder in the order of their names.
type walker struct {
	ctx     context.Context
	dir     fs.FS
	rules   []gitignore.Pattern
	visit   func(name string, d fs.DirEntry) error
	visited int
}

// walk visits every regular file that git would not ignore. Links are not followed; what cannot be read is skipped.
func (w *walker) walk(name string, rules []gitignore.Pattern, depth int) error {
	if depth > maxDepth {
		return nil
	}
	entries, err := fs.ReadDir(w.dir, name)
	if err != nil {
		return nil // a folder that may not be read has nothing to find
	}
	rules = append(rules[:len(rules):len(rules)], w.ignores(name)...)
	match := gitignore.NewMatcher(rules)
	for _, d := range entries {
		if w.visited++; w.visited%64 == 0 && w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		full := path.Join(name, d.Name())
		if d.Name() == ".git" || match.Match(strings.Split(full, "/"), d.IsDir()) {
			continue
		}
		switch {
		case d.IsDir():
			err = w.walk(full, rules, depth+1)
		case d.Type().IsRegular():
			err = w.visit(full, d)
		default:
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ignores reads the .gitignore of a folder.
func (w *walker) ignores(name string) []gitignore.Pattern {
	file := path.Join(name, ".gitignore")
	if info, err := fs.Stat(w.dir, file); err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreBytes {
		return nil
	}
	f, err := w.dir.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	var domain []string
	if name != "." {
		domain = strings.Split(name, "/")
	}
	var out []gitignore.Pattern
	for in := bufio.NewScanner(f); in.Scan(); {
		line := strings.TrimPrefix(strings.TrimRight(in.Text(), "\r"), "\uFEFF")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		out = append(out, gitignore.ParsePattern(line, domain))
	}
	return out
}

// below opens the folder a search starts in. A search that starts inside the workspace also honours the rules of the folders above.
func below(call session.ToolCall, dir string) (*roots.Roots, fs.FS, string, string, error) {
	if dir == "" {
		dir = "."
	}
	r, err := roots.Open(call.Roots...)
	if err != nil {
		return nil, nil, "", "", err
	}
	p, err := r.Resolve(dir)
	if err != nil {
		r.Close()
		return nil, nil, "", "", err
	}
	root, at, err := r.Top(p)
	if err == nil {
		_, _, err = r.Dir(dir)
	}
	if err != nil {
		r.Close()
		return nil, nil, "", "", err
	}
	prefix := r.Show(at) // how files of this root are named: "." for the workspace itself
	return r, root, p.Rel, prefix, nil
}

// start walks from start, having read the rules of the folders above it.
func (w *walker) start(start string) error {
	var rules []gitignore.Pattern
	if start != "." {
		at := "."
		rules = append(rules, w.ignores(at)...)
		parts := strings.Split(start, "/")
		for _, part := range parts[:len(parts)-1] {
			at = path.Join(at, part)
			rules = append(rules, w.ignores(at)...)
		}
	}
	err := w.walk(start, rules, 0)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func shown(prefix, name string) string {
	if prefix == "." {
		return name
	}
	return path.Join(prefix, name)
}

// relative is name as seen from start.
func relative(start, name string) string {
	if start == "." {
		return name
	}
	return strings.TrimPrefix(strings.TrimPrefix(name, start), "/")
}

func invalid(format string, args ...any) session.ToolResult {
	return session.ToolResult{Status: protocol.ToolRejected, ErrorType: protocol.ErrInvalidArguments, Error: fmt.Sprintf(format, args...)}
}

// refusal is the result for a path that cannot be searched.
func refusal(err error) (session.ToolResult, error) {
	e, ok := errors.AsType[*roots.PathError](err)
	if !ok {
		return session.ToolResult{}, err
	}
	res := session.ToolResult{Error: e.Text, Status: protocol.ToolRejected, ErrorType: protocol.ErrInvalidArguments}
	switch e.Reason {
	case roots.Missing:
		res.Status, res.ErrorType = protocol.ToolUnavailable, protocol.ErrNotFound
	case roots.Outside, roots.Denied:
		res.ErrorType = protocol.ErrPermissionDenied
	case roots.Invalid, roots.NotRegular:
	}
	return res, nil
}

func results(n int) int {
	if n < 1 {
		return defaultResults
	}
	return min(n, maxResults)
}
