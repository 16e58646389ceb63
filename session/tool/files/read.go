// Package files holds the tools that read and write single files. They touch a file through session/roots only and own no goroutine.
package files

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

// Bounds of read_file (docs/protocol/rind-v2.md section 9).
const (
	defaultLines  = 1000
	maxLines      = 2000
	maxLineChars  = 2000
	maxPageBytes  = 256 << 10 // of the numbered lines of one call
	maxImageBytes = 5 << 20
	// maxWholeBytes bounds what is read to count lines and digest; a larger file shows its page and leaves both out.
	maxWholeBytes = 64 << 20
)

type readFile struct{}

// ReadFile is the tool read_file.
func ReadFile() session.Tool { return readFile{} }

// Spec implements session.Tool.
func (readFile) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name:        "read_file",
		Description: "Read a text file of the workspace as numbered lines, or look at an image. Use offset and limit for long files.",
		Kind:        "read",
		ReadOnly:    true,
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"file to read, relative to the workspace"},` +
			`"offset":{"type":"integer","minimum":1,"description":"first line, from 1"},` +
			`"limit":{"type":"integer","minimum":1,"maximum":2000,"description":"how many lines, 1000 by default"}},` +
			`"required":["path"],"additionalProperties":false}`),
	}
}

type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

// Run implements session.Tool.
func (readFile) Run(ctx context.Context, call session.ToolCall, _ session.Progress) (session.ToolResult, error) {
	args := readArgs{}
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return invalid("read_file: " + err.Error()), nil
	}
	if args.Offset < 1 {
		args.Offset = 1
	}
	if args.Limit < 1 {
		args.Limit = defaultLines
	}
	args.Limit = min(args.Limit, maxLines)
	r, err := roots.Open(call.Roots...)
	if err != nil {
		return session.ToolResult{}, err
	}
	defer r.Close()
	f, info, err := r.OpenFile(args.Path)
	if err != nil {
		return Refusal(err)
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return session.ToolResult{}, err
	}
	head = head[:n]
	if mime := imageType(head); mime != "" {
		return readImage(f, head, info.Size(), args.Path, mime)
	}
	p := &page{args: args, sum: sha256.New()}
	src := io.MultiReader(bytes.NewReader(head), f)
	return p.read(ctx, src, head, info)
}

func invalid(text string) session.ToolResult {
	return session.ToolResult{Status: protocol.ToolRejected, ErrorType: protocol.ErrInvalidArguments, Error: text}
}

// Refusal is the result for a path that cannot be used; an error that is none of the path's comes back as it is.
func Refusal(err error) (session.ToolResult, error) {
	e, ok := errors.AsType[*roots.PathError](err)
	if !ok {
		return session.ToolResult{}, err
	}
	res := session.ToolResult{Error: e.Text}
	switch e.Reason {
	case roots.Missing:
		res.Status, res.ErrorType = protocol.ToolUnavailable, protocol.ErrNotFound
	case roots.Outside, roots.Denied:
		res.Status, res.ErrorType = protocol.ToolRejected, protocol.ErrPermissionDenied
	case roots.Invalid, roots.NotRegular:
		res.Status, res.ErrorType = protocol.ToolRejected, protocol.ErrInvalidArguments
	}
	return res, nil
}

func imageType(head []byte) string {
	switch mime := http.DetectContentType(head); mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return mime
	}
	return ""
}

func readImage(f *os.File, head []byte, size int64, path, mime string) (session.ToolResult, error) {
	if size > maxImageBytes {
		return session.ToolResult{ErrorType: protocol.ErrTooLarge, Error: fmt.Sprintf("%q is an image of %d bytes; at most %d can be shown.", path, size, maxImageBytes)}, nil
	}
	rest, err := io.ReadAll(io.LimitReader(f, maxImageBytes))
	if err != nil {
		return session.ToolResult{}, err
	}
	data := append(bytes.Clone(head), rest...)
	sum := sha256.Sum256(data)
	return session.ToolResult{
		Data:        fmt.Sprintf("%s, %d bytes, attached.", mime, len(data)),
		Meta:        map[string]any{"sha256": hex.EncodeToString(sum[:]), "truncated": false},
		Attachments: []protocol.Part{{Kind: "image", Name: path, MIME: mime, Data: data}},
	}, nil
}

// page reads one page of a text file in one pass, whatever its size.
type page struct {
	args  readArgs
	whole bool // the file is read to its end, for line count and digest
	sum   interface {
		io.Writer
		Sum([]byte) []byte
	}
}

func (p *page) read(ctx context.Context, src io.Reader, head []byte, info os.FileInfo) (session.ToolResult, error) {
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return session.ToolResult{Status: protocol.ToolRejected, ErrorType: protocol.ErrInvalidArguments, Error: fmt.Sprintf("%q is UTF-16 text, which this tool does not read.", p.args.Path)}, nil
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return session.ToolResult{Status: protocol.ToolRejected, ErrorType: protocol.ErrInvalidArguments, Error: fmt.Sprintf("%q is a binary file of %d bytes.", p.args.Path, info.Size())}, nil
	}
	p.whole = info.Size() <= maxWholeBytes
	whole := p.whole
	in := bufio.NewReaderSize(src, 64<<10)
	var out strings.Builder
	line, shown, full, tooLong := 0, 0, false, 0
	for {
		if line%512 == 0 && ctx.Err() != nil {
			return session.ToolResult{}, context.Cause(ctx)
		}
		text, more, cut, err := p.line(in)
		if err != nil {
			return session.ToolResult{}, err
		}
		if !more {
			break
		}
		line++
		if line < p.args.Offset || full {
			if full && !whole {
				break
			}
			continue
		}
		if cut {
			tooLong = line
			break
		}
		row := fmt.Sprintf("%6d\t%s\n", line, strings.ToValidUTF8(strings.TrimPrefix(text, "\uFEFF"), "\uFFFD"))
		if shown > 0 && out.Len()+len(row) > maxPageBytes {
			full = true
			continue
		}
		out.WriteString(row)
		if shown++; shown == p.args.Limit {
			full = true
		}
	}
	if tooLong > 0 {
		return session.ToolResult{
			ErrorType: protocol.ErrLineTooLong,
			Error:     fmt.Sprintf("Line %d of %q is longer than %d characters; use grep to look into it.", tooLong, p.args.Path, maxLineChars),
		}, nil
	}
	return p.result(out.String(), line, shown, whole, full, info.Size()), nil
}

func (p *page) result(text string, total, shown int, whole, full bool, size int64) session.ToolResult {
	last := p.args.Offset + shown - 1
	truncated := full && (!whole || last < total)
	meta := map[string]any{"truncated": truncated, "next_offset": nil, "total_lines": nil, "sha256": nil}
	if truncated {
		meta["next_offset"] = last + 1
	}
	if whole {
		meta["total_lines"] = total
		meta["sha256"] = hex.EncodeToString(p.sum.Sum(nil))
	}
	switch {
	case size == 0:
		text = "(the file is empty)"
	case shown == 0:
		text = fmt.Sprintf("(the file has %d lines; there is none from %d on)", total, p.args.Offset)
	}
	return session.ToolResult{Data: text, Meta: meta}
}

// line reads one line without its end. cut says that it is longer than maxLineChars, whose rest was skipped.
func (p *page) line(in *bufio.Reader) (text string, more, cut bool, err error) {
	var b []byte
	for {
		part, err := in.ReadSlice('\n')
		_, _ = p.sum.Write(part)
		if !cut {
			b = append(b, part...)
			if len(b) > maxLineChars && utf8.RuneCount(b) > maxLineChars+2 {
				cut, b = true, nil
			}
		}
		if cut && !p.whole {
			return "", true, true, nil // the rest of such a line may be gigabytes
		}
		more = more || len(part) > 0
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return "", false, false, err
		}
		b = bytes.TrimRight(b, "\r\n")
		if utf8.RuneCount(b) > maxLineChars {
			cut = true
		}
		return string(b), more, cut, nil
	}
}
