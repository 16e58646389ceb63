package search

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Bounds of grep.
const (
	maxShown = 500     // characters of a line that are shown around the match
	maxLine  = 1 << 20 // bytes of a line that are searched; the rest of a longer one is not
	sniffed  = 8000    // bytes at the start of a file in which a NUL makes it binary
	buffered = 64 << 10
	// maxProgram bounds a compiled expression. Matching takes at most its instructions times the line; quick is what may be done of that
	// without looking whether the call was cancelled: some 10 ms.
	maxProgram = 50_000
	quick      = 1 << 20
)

// match is one element of the data of grep.
type match struct {
	Path string `json:"path"`
	Line int    `json:"line"` // from 1
	Text string `json:"text"`
}

// scan is one grep under way.
type scan struct {
	leave     func(rel string) bool // files that are left out, by their path from where the walk started; nil for none
	re        *regexp.Regexp
	program   int // instructions
	in        *bufio.Reader
	line      []byte
	most      int
	found     []match
	size      int
	truncated bool
}

func newScan(pattern string, most int) (*scan, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("the regular expression is longer than %d bytes", maxPattern)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, badPattern(pattern, err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, badPattern(pattern, err)
	}
	if len(prog.Inst) > maxProgram {
		return nil, badPattern(pattern, errors.New("it repeats too much"))
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, badPattern(pattern, err)
	}
	return &scan{re: re, program: len(prog.Inst), most: most, found: []match{}, in: bufio.NewReaderSize(nil, buffered)}, nil
}

func badPattern(pattern string, err error) error {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		err = fmt.Errorf("%s: %q", e.Code, e.Expr)
	}
	return fmt.Errorf("%.300q is no valid regular expression: %w. Escape special characters to search for them", pattern, err)
}

// file searches one file line by line. A binary one is left; errEnough when no more is wanted.
func (s *scan) file(ctx context.Context, f io.Reader, name string) error {
	s.in.Reset(f)
	if head, _ := s.in.Peek(sniffed); bytes.IndexByte(head, 0) >= 0 || len(head) == 0 {
		return nil
	} else if bytes.HasPrefix(head, []byte("\uFEFF")) {
		_, _ = s.in.Discard(3)
	}
	for n := 1; ; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, err := s.next(ctx)
		if len(line) > 0 || err == nil {
			if e := s.look(ctx, line, n, name); e != nil {
				return e
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return nil // the end, or what can no longer be read
		}
	}
}

// next reads a line without its end, which may be cut. It is valid until the next call.
func (s *scan) next(ctx context.Context) ([]byte, error) {
	part, err := s.in.ReadSlice('\n')
	line := part
	if errors.Is(err, bufio.ErrBufferFull) {
		s.line = append(s.line[:0], part...)
		for errors.Is(err, bufio.ErrBufferFull) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			part, err = s.in.ReadSlice('\n')
			if len(s.line) < maxLine {
				s.line = append(s.line, part...)
			}
		}
		line = s.line
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), err
}

// look searches one line.
func (s *scan) look(ctx context.Context, line []byte, n int, name string) error {
	var at []int
	if s.program*len(line) <= quick {
		at = s.re.FindIndex(line)
	} else if at = s.re.FindReaderIndex(&pausing{ctx: ctx, rest: line, step: max(1, quick/s.program)}); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if at == nil {
		return nil
	}
	if len(s.found) == s.most || s.size > maxData {
		s.truncated = true
		return errEnough
	}
	m := match{Path: name, Line: n, Text: around(line, at[0], at[1])}
	s.size += len(m.Text) + len(m.Path) + 40
	s.found = append(s.found, m)
	return nil
}

// pausing reads a line for the matcher and ends it when ctx does.
type pausing struct {
	ctx  context.Context
	rest []byte
	step int // runes between two looks at ctx
	n    int
}

// ReadRune implements io.RuneReader.
func (p *pausing) ReadRune() (rune, int, error) {
	if p.n++; p.n%p.step == 0 && p.ctx.Err() != nil || len(p.rest) == 0 {
		return 0, 0, io.EOF
	}
	r, size := utf8.DecodeRune(p.rest)
	p.rest = p.rest[size:]
	return r, size, nil
}

// around is at most maxShown characters of a line with the match, or its beginning, in the middle of them.
func around(line []byte, from, to int) string {
	valid := func(b []byte) string { // a NUL is no text either
		return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD")
	}
	if len(line) <= maxShown || len(line) <= maxShown*utf8.UTFMax && utf8.RuneCount(line) <= maxShown {
		return valid(line)
	}
	const room = maxShown - 2 // for the marks of what is left out
	before := max(0, room-utf8.RuneCount(line[from:min(to, from+room*utf8.UTFMax)])) / 2
	start := from
	for ; before > 0 && start > 0; before-- {
		_, size := utf8.DecodeLastRune(line[:start])
		start -= size
	}
	end := start
	for n := 0; n < room && end < len(line); n++ {
		_, size := utf8.DecodeRune(line[end:])
		end += size
	}
	text := valid(line[start:end])
	if start > 0 {
		text = "…" + text
	}
	if end < len(line) {
		text += "…"
	}
	return text
}
