package demo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rind-dev/rind/session"
)

// walkTool is one of the three tools the demo uses, as docs/protocol/rind-v2.md section 9 has them, over a real folder: just enough to hold a
// conversation without depending on the tools themselves.
type walkTool string

const (
	readFile walkTool = "read_file"
	glob     walkTool = "glob"
	grep     walkTool = "grep"
)

func (w walkTool) Spec() session.ToolSpec { return session.ToolSpec{Name: string(w), ReadOnly: true} }

func (w walkTool) Run(_ context.Context, call session.ToolCall, _ session.Progress) (session.ToolResult, error) {
	var args struct {
		Path, Pattern string
		Limit         int
		Max           int `json:"max_results"`
	}
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return session.ToolResult{}, err
	}
	root := os.DirFS(call.Roots[0])
	if w == readFile {
		return readPage(root, args.Path, args.Limit), nil
	}
	var found []map[string]any
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if w == glob {
			if top, _ := path.Match(args.Pattern, name); top || args.Pattern == "**/*" {
				info, err := d.Info()
				if err != nil {
					return err
				}
				found = append(found, map[string]any{"path": name, "size": info.Size()})
			}
			return nil
		}
		text, err := fs.ReadFile(root, name)
		for i, line := range strings.Split(string(text), "\n") {
			if regexp.MustCompile(args.Pattern).MatchString(line) {
				found = append(found, map[string]any{"path": name, "line": i + 1, "text": line})
			}
		}
		return err
	})
	if found == nil {
		found = []map[string]any{}
	}
	cut := args.Max > 0 && len(found) > args.Max
	if cut {
		found = found[:args.Max]
	}
	return session.ToolResult{Data: found, Meta: map[string]any{"truncated": cut}}, err
}

func readPage(root fs.FS, name string, limit int) session.ToolResult {
	text, err := fs.ReadFile(root, filepath.ToSlash(name))
	if err != nil {
		return session.ToolResult{ErrorType: "NotFound", Error: fmt.Sprintf("%q does not exist.", name)}
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	page := ""
	for i, line := range lines[:min(limit, len(lines))] {
		page += fmt.Sprintf("%6d\t%s\n", i+1, line)
	}
	return session.ToolResult{Data: page, Meta: map[string]any{"total_lines": len(lines), "truncated": len(lines) > limit}}
}
