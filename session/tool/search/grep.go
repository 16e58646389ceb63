package search

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

type grep struct {
	secret func(path string) bool
}

// Grep is the tool grep. Files that secret says hold credentials (by an absolute path, links resolved, or by a glob) are left out of a search
// of a folder, unless the call's own path or glob names such: consent was then asked for just that. nil leaves none out.
func Grep(secret func(path string) bool) session.Tool {
	if secret == nil {
		secret = func(string) bool { return false }
	}
	return grep{secret}
}

// Spec implements session.Tool.
func (grep) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name: "grep", Kind: "search", ReadOnly: true,
		Description: "Search the lines of files with a regular expression (RE2 syntax). Binary files, those that .gitignore names and those that hold credentials are left out.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"pattern":{"type":"string","description":"regular expression, matched line by line"},` +
			`"path":{"type":"string","default":".","description":"file or folder to search"},` +
			`"glob":{"type":"string","default":"**/*","description":"only files whose path matches, as *.go or src/**/*.ts"},` +
			`"max_results":{"type":"integer","minimum":1,"default":1000}},` +
			`"required":["pattern"],"additionalProperties":false}`),
	}
}

type grepArgs struct {
	Pattern string  `json:"pattern"`
	Path    string  `json:"path"`
	Glob    string  `json:"glob"`
	Max     float64 `json:"max_results"`
}

// Run implements session.Tool. Data is a list of match, meta {truncated}.
func (g grep) Run(ctx context.Context, call session.ToolCall, _ session.Progress) (session.ToolResult, error) {
	args := grepArgs{Path: ".", Glob: "**/*"}
	if refused := call.Decode(&args); refused != nil {
		return *refused, nil
	}
	if args.Path == "" {
		args.Path = "."
	}
	if args.Glob == "" {
		args.Glob = "**/*"
	}
	only, err := globPattern(args.Glob)
	if err != nil {
		return session.InvalidArguments("grep", "%v.", err), nil
	}
	if !strings.Contains(only, "/") {
		only = "**/" + only // *.go means in any folder, as elsewhere
	}
	s, err := newScan(args.Pattern, results(args.Max))
	if err != nil {
		return session.InvalidArguments("grep", "%v.", err), nil
	}
	if ctx.Err() != nil {
		return session.ToolResult{}, context.Cause(ctx)
	}
	r, err := roots.OpenAllowing(call.Roots, call.Outside)
	if err != nil {
		return session.Refused(err)
	}
	defer r.Close()
	if top, err := r.Resolve(args.Path); err != nil {
		return session.Refused(err)
	} else if !g.secret(args.Path) && !g.secret(top.Abs) && !g.secret(args.Glob) {
		s.leave = func(rel string) bool { return g.secret(filepath.Join(top.Abs, filepath.FromSlash(rel))) }
	}
	if err := s.path(ctx, r, args.Path, only); err != nil && !errors.Is(err, errEnough) {
		return session.Refused(err)
	}
	return session.ToolResult{Data: s.found, Meta: map[string]any{"truncated": s.truncated}}, nil
}

// path searches a file, whatever only says as it was named, or the files below a folder.
func (s *scan) path(ctx context.Context, r *roots.Roots, path, only string) error {
	w := &walker{ctx: ctx, visit: func(f file) error {
		if !doublestar.MatchUnvalidated(only, f.rel) || s.leave != nil && s.leave(f.rel) {
			return nil
		}
		in, _, err := f.in.File(f.name)
		if err != nil {
			return nil // gone, or not to be read: nothing to find
		}
		defer in.Close()
		return s.file(ctx, in, f.shown)
	}}
	err := w.walk(r, path)
	if e, ok := errors.AsType[*roots.PathError](err); !ok || e.Reason != roots.WrongKind {
		return err
	}
	p, err := r.Resolve(path)
	if err != nil {
		return err
	}
	in, _, err := r.OpenFile(path)
	if err != nil {
		return err
	}
	defer in.Close()
	return s.file(ctx, in, r.Show(p))
}
