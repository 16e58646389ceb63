package files

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

type editFile struct{ images session.Images }

// EditFile is the tool edit_file. It keeps what it replaces in images; nil keeps nothing.
func EditFile(images session.Images) session.Tool { return editFile{images} }

// Spec implements session.Tool.
func (editFile) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name: "edit_file", Kind: "edit",
		Description: "Replace one passage of a text file. old_str must be found exactly once: give whole lines, with enough around them, " +
			"exactly as in the file and without the line numbers read_file shows.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"file to change, relative to the workspace"},` +
			`"old_str":{"type":"string","description":"the passage, found exactly once"},` +
			`"new_str":{"type":"string","description":"what takes its place"}},` +
			`"required":["path","old_str","new_str"],"additionalProperties":false}`),
	}
}

type editArgs struct {
	Path string  `json:"path"`
	Old  *string `json:"old_str"`
	New  *string `json:"new_str"`
}

// Run implements session.Tool. Data and meta are those of a modification (change.go).
func (t editFile) Run(ctx context.Context, call session.ToolCall, _ session.Progress) (session.ToolResult, error) {
	var args editArgs
	if refused := call.Decode(&args); refused != nil {
		return *refused, nil
	}
	switch {
	case args.Old == nil, args.New == nil:
		return session.InvalidArguments("edit_file", "old_str and new_str must be given."), nil
	case *args.Old == "":
		return session.InvalidArguments("edit_file", "old_str is empty; use write_file to make a file or replace all of it."), nil
	case *args.Old == *args.New:
		return session.InvalidArguments("edit_file", "old_str and new_str are the same."), nil
	}
	r, err := roots.OpenAllowing(call.Roots, call.Outside)
	if err != nil {
		return session.Refused(err)
	}
	defer r.Close()
	m := &modification{r: r, images: t.images, path: args.Path, editor: call.Editor.Files}
	if refused, err := m.look(ctx); err != nil || refused != nil {
		return session.Ended(refused, err)
	}
	if m.info == nil {
		return session.Refused(&roots.PathError{Reason: roots.Missing, Path: args.Path, Text: fmt.Sprintf("There is no file %q.", args.Path)})
	}
	s := seek(m.old, *args.Old)
	places := s.find(*args.Old, 11)
	switch len(places) {
	case 0:
		return notFound(args.Path, s, *args.Old), nil
	case 1:
	default:
		return notUnique(args.Path, s, places), nil
	}
	text := s.replace(places[0], *args.Old, *args.New)
	if len(text) > maxTextBytes {
		return tooLarge("%q would have %d bytes; at most %d can be written.", args.Path, len(text), maxTextBytes), nil
	}
	return m.write(ctx, call.Session, text)
}

var numbered = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^ *\d+\t`) })

func notFound(path string, s *sought, passage string) session.ToolResult {
	hint := "read the file and copy the passage exactly"
	if bare := numbered().ReplaceAllString(passage, ""); bare != passage && strings.Contains(s.view, bare) {
		hint = "leave out the line numbers that read_file shows"
	} else if squeezed := strings.Join(strings.Fields(passage), " "); squeezed != "" && strings.Contains(strings.Join(strings.Fields(s.view), " "), squeezed) {
		hint = "it differs in white space only; copy the passage exactly"
	}
	return failed(protocol.ErrNotFound, "old_str is not in %q: %s.", path, hint)
}

func notUnique(path string, s *sought, places []int) session.ToolResult {
	count, lines := fmt.Sprint(len(places)), ""
	if len(places) > 10 {
		count, places = "more than 10", places[:10]
	}
	for i, p := range places {
		if i > 0 {
			lines += ", "
		}
		lines += fmt.Sprint(s.lineOf(p))
	}
	return failed(protocol.ErrNotUnique, "old_str is in %q %s times (lines %s): give more of what stands around it.", path, count, lines)
}
