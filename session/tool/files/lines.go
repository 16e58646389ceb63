package files

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// lines is the text of a page. A line ends with LF; a CR before that belongs to the end and is not shown.
type lines struct {
	*page
	in    *bufio.Reader
	out   strings.Builder
	total int  // lines seen
	shown int  // lines of the page
	full  bool // the page holds what it may
	more  bool // there are lines behind the page
}

// read collects the page. A result refuses the file.
func (l *lines) read(ctx context.Context) (*session.ToolResult, error) {
	var line []byte // of the page, until its end is found
	inside := false // a line was begun
	for n := 0; ; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		part, err := l.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if len(part) > 0 && !inside {
			inside = true
			l.total++
			if l.full {
				l.more = true
				if !l.whole {
					return nil, nil
				}
			}
		}
		ended := inside && (err == nil || errors.Is(err, io.EOF))
		if !l.full && l.total >= l.offset && len(part) > 0 {
			line = append(line, part...)
			if refused := l.fits(line); refused != nil {
				return refused, nil
			}
		}
		if ended {
			inside = false
			if !l.full && l.total >= l.offset {
				l.add(line)
			}
			line = line[:0]
		}
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
	}
}

// fits refuses a line, or its beginning, that cannot be shown.
func (l *lines) fits(line []byte) *session.ToolResult {
	if bytes.IndexByte(line, 0) >= 0 {
		res := l.binary()
		return &res
	}
	if len(line) > maxLineChars && utf8.RuneCount(trimEnd(line)) > maxLineChars {
		res := failed(
			protocol.ErrLineTooLong, "Line %d of %q is longer than %d characters; read around it with offset and limit, or search it with grep.",
			l.total, l.path, maxLineChars)
		return &res
	}
	return nil
}

func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// add puts a line into the page, unless it would make it too large.
func (l *lines) add(line []byte) {
	row := fmt.Sprintf("%6d\t%s\n", l.total, strings.ToValidUTF8(string(trimEnd(line)), "\uFFFD"))
	if l.shown > 0 && l.out.Len()+len(row) > maxPageBytes {
		l.full, l.more = true, true
		return
	}
	l.out.WriteString(row)
	if l.shown++; l.shown == l.limit {
		l.full = true
	}
}

func (l *lines) result() session.ToolResult {
	var next, total, sum any
	if l.more {
		next = l.offset + l.shown
	}
	if l.whole {
		total, sum = l.total, hex.EncodeToString(l.sum.Sum(nil))
	}
	text := l.out.String()
	switch {
	case l.total == 0:
		text = "(the file is empty)"
	case l.shown == 0:
		text = fmt.Sprintf("(the file has %d lines; there is none from line %d on)", l.total, l.offset)
	}
	return session.ToolResult{Data: text, Meta: meta(l.more, next, total, sum)}
}

// utf16Reader turns UTF-16 into UTF-8; what is no character becomes U+FFFD.
type utf16Reader struct {
	in      *bufio.Reader
	order   binary.ByteOrder
	pending []byte
	kept    uint16 // a unit read ahead, if held
	held    bool
	err     error
}

func (u *utf16Reader) Read(b []byte) (int, error) {
	for len(u.pending) < len(b) && u.err == nil {
		var r rune
		if r, u.err = u.next(); u.err == nil {
			u.pending = utf8.AppendRune(u.pending, r)
		}
	}
	n := copy(b, u.pending)
	u.pending = append(u.pending[:0], u.pending[n:]...)
	if n == 0 && len(b) > 0 {
		return 0, u.err
	}
	return n, nil
}

func (u *utf16Reader) unit() (uint16, error) {
	if u.held {
		u.held = false
		return u.kept, nil
	}
	var two [2]byte
	if _, err := io.ReadFull(u.in, two[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return utf8.RuneError, nil // half a unit at the end
		}
		return 0, err
	}
	return u.order.Uint16(two[:]), nil
}

func (u *utf16Reader) next() (rune, error) {
	a, err := u.unit()
	if err != nil || !utf16.IsSurrogate(rune(a)) {
		return rune(a), err
	}
	b, err := u.unit()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return utf8.RuneError, err
	}
	r := utf16.DecodeRune(rune(a), rune(b))
	if r == utf8.RuneError {
		u.kept, u.held = b, true
	}
	return r, nil
}
