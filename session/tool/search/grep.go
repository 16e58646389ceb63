package search

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

// Bounds of grep.
const (
	maxLineShown = 500     // characters around a match
	maxLineBytes = 1 << 20 // of a line that is looked at whole; the rest of a longer one is not searched
	maxDataBytes = 1 << 20 // of all matches
)

type grep struct{}

// Grep is the tool grep.
func Grep() session.Tool { return grep{} }

// Spec implements session.Tool.
func (grep) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name: "grep", Kind: "search", ReadOnly: true,
		Description: "Search file contents with a regular expression (RE2 syntax). Ignored and binary files are left out.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"pattern":{"type":"string","description":"regular expression"},` +
			`"path":{"type":"string","description":"file or folder to search, the workspace by default"},` +
			`"glob":{"type":"string","description":"only files whose path matches, as **/*.go"},` +
			`"max_results":{"type":"integer","minimum":1,"description":"1000 by default"}},` +
			`"required":["pattern"],"additionalProperties":false}`),
	}
}

type grepArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Glob    string `json:"glob"`
	Max     int    `json:"max_results"`
}

type match struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// searching is one grep under way.
type searching struct {
	re        *regexp.Regexp
	max       int
	found     []match
	bytes     int
	truncated bool
}

// Run implements session.Tool.
func (grep) Run(ctx context.Context, call session.ToolCall, _ session.Progress) (session.ToolResult, error) {
	var args grepArgs
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return invalid("grep: %v", err), nil
	}
	re, err := regexp.Compile(args.Pattern)
	if err != nil {
		return invalid("%q is no valid regular expression: %v. Escape special characters to search for them.", args.Pattern, err), nil
	}
	if args.Glob == "" {
		args.Glob = "**/*"
	}
	if !doublestar.ValidatePattern(args.Glob) {
		return invalid("%q is no valid glob pattern.", args.Glob), nil
	}
	s := &searching{re: re, max: results(args.Max), found: []match{}}
	if done, res, err := s.single(ctx, call, args.Path); done {
		return res, err
	}
	r, dir, start, prefix, err := below(call, args.Path)
	if err != nil {
		return refusal(err)
	}
	defer r.Close()
	w := &walker{ctx: ctx, dir: dir, visit: func(name string, _ fs.DirEntry) error {
		rel := relative(start, name)
		if ok, _ := doublestar.Match(args.Glob, rel); !ok {
			if strings.Contains(args.Glob, "/") {
				return nil
			}
			if ok, _ := doublestar.Match("**/"+args.Glob, rel); !ok { // "*.go" means in any folder, as elsewhere
				return nil
			}
		}
		f, err := dir.Open(name)
		if err != nil {
			return nil // gone, or not to be read: nothing to find
		}
		defer f.Close()
		return s.file(ctx, f, shown(prefix, name))
	}}
	if err := w.start(start); err != nil {
		return session.ToolResult{}, err
	}
	return s.result(), nil
}

func (s *searching) result() session.ToolResult {
	return session.ToolResult{Data: s.found, Meta: map[string]any{"truncated": s.truncated}}
}

// single searches path when it is a file; done is false when it is a folder.
func (s *searching) single(ctx context.Context, call session.ToolCall, path string) (done bool, res session.ToolResult, err error) {
	if path == "" || path == "." {
		return false, res, nil
	}
	f, _, name, err := openFile(call, path)
	if err != nil {
		if errors.Is(err, errFolder) {
			return false, res, nil
		}
		res, err = refusal(err)
		return true, res, err
	}
	defer f.Close()
	if err := s.file(ctx, f, name); err != nil && !errors.Is(err, errEnough) {
		return true, res, err
	}
	return true, s.result(), nil
}

// file searches one file line by line; a binary one is left at its first NUL byte.
func (s *searching) file(ctx context.Context, f io.Reader, name string) error {
	in := bufio.NewReaderSize(f, 64<<10)
	if head, err := in.Peek(8000); bytes.IndexByte(head, 0) >= 0 || err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return nil
	}
	var line []byte
	for n := 1; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line = line[:0]
		var err error
		for {
			var part []byte
			part, err = in.ReadSlice('\n')
			if len(line) < maxLineBytes {
				line = append(line, part...)
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		if len(line) > 0 {
			if e := s.line(bytes.TrimRight(line, "\r\n"), n, name); e != nil {
				return e
			}
		}
		if err != nil {
			return nil // the end, or what can no longer be read
		}
	}
}

func (s *searching) line(line []byte, n int, name string) error {
	at := s.re.FindIndex(line)
	if at == nil {
		return nil
	}
	if len(s.found) == s.max || s.bytes > maxDataBytes {
		s.truncated = true
		return errEnough
	}
	m := match{Path: name, Line: n, Text: around(line, at[0], at[1])}
	s.bytes += len(m.Text) + len(m.Path) + 40
	s.found = append(s.found, m)
	return nil
}

// around is the part of a line that shows the match.
func around(line []byte, from, to int) string {
	if utf8.RuneCount(line) <= maxLineShown {
		return strings.ToValidUTF8(string(line), "\uFFFD")
	}
	start := max(0, from-maxLineShown/2)
	end := min(len(line), max(to, start+maxLineShown))
	end = min(end, start+2*maxLineShown)
	text := strings.ToValidUTF8(string(line[start:end]), "")
	if start > 0 {
		text = "…" + text
	}
	if end < len(line) {
		text += "…"
	}
	return text
}

var errFolder = errors.New("is a folder")

// openFile opens path when it is a regular file.
func openFile(call session.ToolCall, path string) (*os.File, fs.FileInfo, string, error) {
	r, err := roots.Open(call.Roots...)
	if err != nil {
		return nil, nil, "", err
	}
	defer r.Close()
	p, err := r.Resolve(path)
	if err != nil {
		return nil, nil, "", err
	}
	if _, _, err := r.Dir(path); err == nil {
		return nil, nil, "", errFolder
	}
	f, info, err := r.OpenFile(path)
	return f, info, r.Show(p), err
}
