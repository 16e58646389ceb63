package files

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"os"
	"strings"

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
	// maxWholeBytes bounds what is read to count lines and to digest; of a larger file meta leaves both null.
	maxWholeBytes = 64 << 20
	sniffed       = 8000 // bytes at the start of a file that are looked at for what it is
)

type readFile struct{}

// ReadFile is the tool read_file.
func ReadFile() session.Tool { return readFile{} }

// Spec implements session.Tool.
func (readFile) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name: "read_file", Kind: "read", ReadOnly: true,
		Description: "Read a text file as numbered lines, or look at an image (png, jpeg, gif, webp). " +
			"Read long files page by page with offset and limit; meta.next_offset is the first line of the next page.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"file to read, relative to the workspace"},` +
			`"offset":{"type":"integer","minimum":1,"default":1,"description":"first line, counted from 1"},` +
			`"limit":{"type":"integer","minimum":1,"maximum":2000,"default":1000,"description":"how many lines"}},` +
			`"required":["path"],"additionalProperties":false}`),
	}
}

type readArgs struct {
	Path   string  `json:"path"`
	Offset float64 `json:"offset"`
	Limit  float64 `json:"limit"`
}

// Run implements session.Tool. Data is the numbered lines; meta {next_offset, truncated, total_lines, sha256}, null where unknown.
func (readFile) Run(ctx context.Context, call session.ToolCall, _ session.Progress) (session.ToolResult, error) {
	var args readArgs
	if refused := call.Decode(&args); refused != nil {
		return *refused, nil
	}
	if ctx.Err() != nil {
		return session.ToolResult{}, context.Cause(ctx)
	}
	r, err := roots.OpenAllowing(call.Roots, call.Outside)
	if err != nil {
		return session.Refused(err)
	}
	defer r.Close()
	f, info, err := r.OpenFile(args.Path)
	if err != nil {
		return session.Refused(err)
	}
	defer f.Close()
	p := &page{
		path: args.Path, offset: int(min(max(args.Offset, 1), 1<<53)), limit: defaultLines,
		size: info.Size(), whole: info.Size() <= maxWholeBytes, sum: sha256.New(),
	}
	if args.Limit >= 1 {
		p.limit = int(min(args.Limit, maxLines))
	}
	var in io.Reader = f
	if place, err := r.Resolve(args.Path); err == nil {
		if text, ok := editorText(ctx, call.Editor.Files, place, f, info); ok {
			in, p.size = strings.NewReader(text), int64(len(text))
		}
	}
	if ctx.Err() != nil {
		return session.ToolResult{}, context.Cause(ctx)
	}
	res, err := p.read(ctx, in)
	switch {
	case err == nil || ctx.Err() != nil:
		return res, err
	case errors.Is(err, os.ErrPermission):
		return failed(protocol.ErrPermissionDenied, "%q cannot be read: permission denied.", args.Path), nil
	}
	return failed(protocol.ErrInternal, "%q cannot be read: %v.", args.Path, cause(err)), nil
}

// cause is an error of the operating system without the path of this machine.
func cause(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// page is one page of a file, read in one pass whatever the file's size.
type page struct {
	path          string
	offset, limit int
	size          int64
	whole         bool // the file is read to its end, for line count and digest
	sum           hash.Hash
}

func (p *page) read(ctx context.Context, f io.Reader) (session.ToolResult, error) {
	raw := &io.LimitedReader{R: f, N: 1<<63 - 1}
	if p.whole {
		raw.N = maxWholeBytes + 1 // it may grow while it is read
		f = io.TeeReader(raw, p.sum)
	} else {
		f = raw
	}
	in := bufio.NewReaderSize(f, 64<<10)
	head, err := in.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return session.ToolResult{}, err
	}
	if mime := imageType(head); mime != "" {
		return p.image(in, mime)
	}
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		in = bufio.NewReaderSize(&utf16Reader{in: in, order: binary.LittleEndian}, 64<<10)
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		in = bufio.NewReaderSize(&utf16Reader{in: in, order: binary.BigEndian}, 64<<10)
	case bytes.IndexByte(head, 0) >= 0:
		return p.binary(), nil
	}
	if start, err := in.Peek(3); err == nil && string(start) == "\uFEFF" {
		_, _ = in.Discard(3)
	}
	l := &lines{page: p, in: in}
	refused, err := l.read(ctx)
	if err != nil || refused != nil {
		if refused == nil {
			refused = &session.ToolResult{}
		}
		return *refused, err
	}
	if raw.N <= 0 {
		p.whole = false
	}
	return l.result(), nil
}

func (p *page) binary() session.ToolResult {
	return notText("%q is a binary file of %d bytes, not text.", p.path, p.size)
}

func imageType(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image/gif"
	case len(head) >= 14 && string(head[:4]) == "RIFF" && string(head[8:14]) == "WEBPVP":
		return "image/webp"
	}
	return ""
}

func (p *page) image(in io.Reader, mime string) (session.ToolResult, error) {
	var data []byte
	if p.size <= maxImageBytes {
		var err error
		if data, err = io.ReadAll(io.LimitReader(in, maxImageBytes+1)); err != nil {
			return session.ToolResult{}, err
		}
	}
	if p.size > maxImageBytes || len(data) > maxImageBytes {
		return failed(protocol.ErrTooLarge, "%q is an image of %d bytes; at most %d can be shown.", p.path, p.size, maxImageBytes), nil
	}
	res := session.ToolResult{Meta: meta(false, nil, nil, protocol.Digest(data))}
	res.Data = mime + " image, attached."
	res.Attachments = []protocol.Part{{Kind: "image", Name: p.path, MIME: mime, Data: data}}
	return res, nil
}

// meta is what every page of read_file tells; nil is JSON null.
func meta(truncated bool, next, total, sum any) map[string]any {
	return map[string]any{"truncated": truncated, "next_offset": next, "total_lines": total, "sha256": sum}
}
