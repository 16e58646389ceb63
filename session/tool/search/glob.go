package search

import (
	"context"
	"encoding/json"
	"io/fs"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rind-dev/rind/session"
)

type glob struct{}

// Glob is the tool glob.
func Glob() session.Tool { return glob{} }

// Spec implements session.Tool.
func (glob) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name: "glob", Kind: "search", ReadOnly: true,
		Description: "Find files by name, as **/*.go or src/**/test_*.py. Ignored files (.gitignore) are left out.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"pattern":{"type":"string","description":"glob; ** crosses folders"},` +
			`"path":{"type":"string","description":"folder to search, the workspace by default"},` +
			`"max_results":{"type":"integer","minimum":1,"description":"1000 by default"}},` +
			`"required":["pattern"],"additionalProperties":false}`),
	}
}

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Max     int    `json:"max_results"`
}

type found struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// Run implements session.Tool.
func (glob) Run(ctx context.Context, call session.ToolCall, _ session.Progress) (session.ToolResult, error) {
	var args globArgs
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return invalid("glob: %v", err), nil
	}
	if !doublestar.ValidatePattern(args.Pattern) || args.Pattern == "" {
		return invalid("%q is no valid glob pattern.", args.Pattern), nil
	}
	r, dir, start, prefix, err := below(call, args.Path)
	if err != nil {
		return refusal(err)
	}
	defer r.Close()
	out := []found{}
	truncated := false
	w := &walker{ctx: ctx, dir: dir, visit: func(name string, d fs.DirEntry) error {
		if ok, err := doublestar.Match(args.Pattern, relative(start, name)); err != nil || !ok {
			return nil // the pattern was validated
		}
		if len(out) == results(args.Max) {
			truncated = true
			return errEnough
		}
		f := found{Path: shown(prefix, name)}
		if info, err := d.Info(); err == nil {
			f.Size = info.Size()
		}
		out = append(out, f)
		return nil
	}}
	if err := w.start(start); err != nil {
		return session.ToolResult{}, err
	}
	return session.ToolResult{Data: out, Meta: map[string]any{"truncated": truncated}}, nil
}
