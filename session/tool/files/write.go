package files

import (
	"context"
	"encoding/json"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

type writeFile struct{ images session.Images }

// WriteFile is the tool write_file. It keeps what it replaces in images; nil keeps nothing.
func WriteFile(images session.Images) session.Tool { return writeFile{images} }

// Spec implements session.Tool. The path may come under the name file_path; that one of them is given is checked by Run, as providers
// refuse a schema that would say so.
func (writeFile) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name: "write_file", Kind: "edit",
		Description: "Make a file, or replace all of its content. Missing folders are made. " +
			"A file that is there keeps its line ends, byte order mark and mode; to change a part of it use edit_file.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"file to write, relative to the workspace; required"},` +
			`"content":{"type":"string","description":"the whole text of the file"},` +
			`"file_path":{"type":"string","description":"another name of path"}},` +
			`"required":["content"],"additionalProperties":false}`),
	}
}

type writeArgs struct {
	Path     *string `json:"path"`
	FilePath *string `json:"file_path"`
	Content  *string `json:"content"`
}

// Run implements session.Tool. Data and meta are those of a modification (change.go).
func (t writeFile) Run(ctx context.Context, call session.ToolCall, _ session.Progress) (session.ToolResult, error) {
	var args writeArgs
	if refused := call.Decode(&args); refused != nil {
		return *refused, nil
	}
	path := args.Path
	switch {
	case path == nil:
		path = args.FilePath
	case args.FilePath != nil && *args.FilePath != *path:
		return session.InvalidArguments("write_file", "path and file_path name different files."), nil
	}
	switch {
	case path == nil:
		return session.InvalidArguments("write_file", "path is missing."), nil
	case args.Content == nil:
		return session.InvalidArguments("write_file", "content is missing."), nil
	case len(*args.Content) > maxTextBytes:
		return tooLarge("The content has %d bytes; at most %d can be written at once.", len(*args.Content), maxTextBytes), nil
	}
	r, err := roots.OpenAllowing(call.Roots, call.Outside)
	if err != nil {
		return session.Refused(err)
	}
	defer r.Close()
	m := &modification{r: r, images: t.images, path: *path, editor: call.Editor.Files}
	if refused, err := m.look(ctx); err != nil || refused != nil {
		return session.Ended(refused, err)
	}
	return m.write(ctx, call.Session, inStyleOf(m.old, *args.Content))
}
