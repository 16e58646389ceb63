package search

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

type glob struct{}

// Glob is the tool glob.
func Glob() session.Tool { return glob{} }

// Spec implements session.Tool.
func (glob) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name: "glob", Kind: "search", ReadOnly: true,
		Description: "Find files by name, as **/*.go or src/**/test_*.py. Files that .gitignore names are left out.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"pattern":{"type":"string","description":"glob; ** crosses folders"},` +
			`"path":{"type":"string","default":".","description":"folder to search"},` +
			`"max_results":{"type":"integer","minimum":1,"default":1000}},` +
			`"required":["pattern"],"additionalProperties":false}`),
	}
}

type globArgs struct {
	Pattern string  `json:"pattern"`
	Path    string  `json:"path"`
	Max     float64 `json:"max_results"`
}

// found is one element of the data of glob.
type found struct {
	Path string `json:"path"`
	Size int64  `json:"size"` // bytes
}

// Run implements session.Tool. Data is a list of found, meta {truncated}.
func (glob) Run(ctx context.Context, call session.ToolCall, _ session.Progress) (session.ToolResult, error) {
	args := globArgs{Path: "."}
	if refused := call.Decode(&args); refused != nil {
		return *refused, nil
	}
	if args.Path == "" {
		args.Path = "."
	}
	pattern, err := globPattern(args.Pattern)
	if err != nil {
		return session.InvalidArguments("glob", "%v.", err), nil
	}
	dir, pattern := based(args.Path, pattern)
	r, err := roots.OpenAllowing(call.Roots, call.Outside)
	if err != nil {
		return session.Refused(err)
	}
	defer r.Close()
	out := []found{}
	truncated, size := false, 0
	w := &walker{ctx: ctx, visit: func(f file) error {
		if !doublestar.MatchUnvalidated(pattern, f.rel) {
			return nil
		}
		if len(out) == results(args.Max) || size > maxData {
			truncated = true
			return errEnough
		}
		info, err := f.in.Lstat(f.name)
		if err != nil {
			return nil // gone
		}
		size += len(f.shown) + 30
		out = append(out, found{Path: f.shown, Size: info.Size()})
		return nil
	}}
	if err := w.walk(r, dir); err != nil && !errors.Is(err, errEnough) {
		return session.Refused(err)
	}
	return session.ToolResult{Data: out, Meta: map[string]any{"truncated": truncated}}, nil
}
