// Package frame reads and writes bounded frames: JSON lines, and the header framing of editors' language clients. It does no more than
// find where a frame ends and whether its bytes may be decoded at all; it owns no goroutine.
package frame

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// MaxBytes is the longest frame accepted, without its line end (docs/protocol/rind-v2.md section 2).
const MaxBytes = 16 << 20

// MaxDepth is the deepest nesting accepted.
const MaxDepth = 1000

// MaxHeader bounds the header block of a frame in header framing.
const MaxHeader = 4 << 10

// Faults of a frame. Reading goes on after all of them but ErrHeader.
var (
	ErrTooLong = fmt.Errorf("frame exceeds %d bytes", MaxBytes)
	ErrUTF8    = errors.New("frame is not valid UTF-8")
	ErrDepth   = fmt.Errorf("nesting exceeds %d levels", MaxDepth)
	// ErrHeader: a header block without a usable Content-Length. Where the next frame begins cannot be known.
	ErrHeader = errors.New("header block has no valid Content-Length")
)

// Framing is how frames are separated.
type Framing uint8

// Framings.
const (
	Lines   Framing = iota // one JSON text a line
	Headers                // Content-Length: N, blank line, N bytes
)

// Reader reads frames. Not safe for concurrent use.
type Reader struct {
	in    *bufio.Reader
	buf   []byte
	first bool
	how   Framing
}

// NewReader reads lines from r until SetFraming says otherwise.
func NewReader(r io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(r, 64<<10), first: true} }

// SetFraming changes how frames are found; call it before the first Next.
func (r *Reader) SetFraming(f Framing) { r.how = f }

// Sniff looks at what comes first, without taking it: the framing, and up to n bytes from the first that is neither white space nor
// a byte order mark. It blocks until there is something.
func (r *Reader) Sniff(n int) (Framing, []byte, error) {
	for {
		b, err := r.in.Peek(1)
		if err != nil {
			return Lines, nil, err
		}
		switch b[0] {
		case ' ', '\t', '\r', '\n':
			_, _ = r.in.Discard(1)
			continue
		case 0xEF:
			if bom, _ := r.in.Peek(3); r.first && bytes.Equal(bom, bomBytes) {
				_, _ = r.in.Discard(3)
				r.first = false
				continue
			}
		case 'C', 'c':
			if head, _ := r.in.Peek(len("content-length")); bytes.EqualFold(head, []byte("content-length")) {
				return Headers, head, nil
			}
		}
		_, _ = r.in.Peek(1)
		b, _ = r.in.Peek(min(n, r.in.Buffered()))
		return Lines, b, nil
	}
}

var bomBytes = []byte{0xEF, 0xBB, 0xBF}

// Next returns the next frame, valid until the next call. io.EOF is a clean end; io.ErrUnexpectedEOF an end within a frame, which is
// not to be executed. ErrTooLong, ErrUTF8 and ErrDepth concern one frame, which is skipped.
func (r *Reader) Next() ([]byte, error) {
	if cap(r.buf) > 1<<20 { // one big frame must not keep its memory
		r.buf = nil
	}
	if r.how == Headers {
		return r.body()
	}
	for {
		line, err := r.line()
		if err != nil {
			return nil, err
		}
		if r.first {
			r.first = false
			line = bytes.TrimPrefix(line, bomBytes)
		}
		line = bytes.TrimRight(line, "\r")
		if len(bytes.TrimLeft(line, " \t")) == 0 {
			continue
		}
		return line, check(line)
	}
}

// line reads up to LF, the only separator.
func (r *Reader) line() ([]byte, error) {
	r.buf = r.buf[:0]
	long := false
	for {
		part, err := r.in.ReadSlice('\n')
		if n := len(part); err == nil {
			part = part[:n-1]
		}
		if long = long || len(r.buf)+len(part) > MaxBytes+1; !long { // one more, for the CR of CRLF
			r.buf = append(r.buf, part...)
		} else {
			r.buf = nil
		}
		switch {
		case err == nil && (long || len(bytes.TrimRight(r.buf, "\r")) > MaxBytes):
			return nil, ErrTooLong
		case err == nil:
			return r.buf, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && (len(r.buf) > 0 || long):
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

// body reads one frame in header framing.
func (r *Reader) body() ([]byte, error) {
	length, err := r.header()
	if err != nil {
		return nil, err
	}
	if length > MaxBytes {
		if _, err := io.CopyN(io.Discard, r.in, length); err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, ErrTooLong
	}
	if int64(cap(r.buf)) < length {
		r.buf = make([]byte, 0, length)
	}
	r.buf = r.buf[:length]
	if _, err := io.ReadFull(r.in, r.buf); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return r.buf, check(r.buf)
}

func (r *Reader) header() (int64, error) {
	length, size, any := int64(-1), 0, false
	for {
		line, err := r.in.ReadSlice('\n')
		size += len(line)
		switch {
		case size > MaxHeader || errors.Is(err, bufio.ErrBufferFull):
			return 0, ErrHeader
		case errors.Is(err, io.EOF) && size == 0:
			return 0, io.EOF
		case errors.Is(err, io.EOF):
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			if !any {
				continue // blank lines before a block
			}
			if length < 0 {
				return 0, ErrHeader
			}
			return length, nil
		}
		any = true
		name, value, ok := bytes.Cut(line, []byte{':'})
		if ok && bytes.EqualFold(bytes.TrimSpace(name), []byte("content-length")) {
			n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 40)
			if err != nil {
				return 0, ErrHeader
			}
			length = int64(n)
		}
	}
}

// check looks for what no decoder should be given.
func check(b []byte) error {
	if !utf8.Valid(b) {
		return ErrUTF8
	}
	if Depth(b) > MaxDepth {
		return ErrDepth
	}
	return nil
}

// Depth counts how deep b nests, without recursion; b need not be valid JSON.
func Depth(b []byte) int {
	deep, most, quoted := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if deep++; deep > most {
				most = deep
			}
		case c == '}' || c == ']':
			deep--
		}
	}
	return most
}

// Append adds a frame holding body to dst.
func Append(dst []byte, how Framing, body []byte) []byte {
	if how == Headers {
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(body)), 10)
		dst = append(dst, "\r\n\r\n"...)
		return append(dst, body...)
	}
	dst = append(dst, body...)
	return append(dst, '\n')
}
