package frame

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Reader reads frames. Not safe for concurrent use.
type Reader struct {
	in    *bufio.Reader
	buf   []byte
	first bool // nothing but white space was taken so far: a byte order mark may come
	how   Framing
	max   int
}

// NewReader reads lines from r until SetFraming says otherwise.
func NewReader(r io.Reader) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 16<<10), first: true, max: MaxBytes}
}

// SetMax bounds a line by n bytes instead of MaxBytes; call it before the first Next. Bodies of the header framing keep theirs.
func (r *Reader) SetMax(n int) { r.max = n }

// SetFraming changes how frames are found; call it before the first Next.
func (r *Reader) SetFraming(f Framing) { r.how = f }

var (
	byteOrderMark = []byte{0xEF, 0xBB, 0xBF}
	contentLength = []byte("content-length")
)

// Sniff tells how the peer frames (docs/protocol/jsonrpc.md): the bytes Content-Length, in any case, mean Headers. It also returns up to n
// bytes from the first that is neither white space nor a byte order mark, which are not taken; what came before them is. It blocks until
// that much is known, and never for more: a short first line is not held up by what may follow it.
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
		case byteOrderMark[0]:
			if r.takeMark() {
				continue
			}
		}
		how := Lines
		if r.opens(contentLength) {
			how = Headers
		}
		b, _ = r.in.Peek(min(n, r.in.Buffered()))
		return how, b, nil
	}
}

// opens reports whether the input goes on with prefix, in any case. It waits only for bytes that can still decide it.
func (r *Reader) opens(prefix []byte) bool {
	for n := 1; n <= len(prefix); n++ {
		if b, err := r.in.Peek(n); err != nil || !bytes.EqualFold(b, prefix[:n]) {
			return false
		}
	}
	return true
}

// takeMark takes a byte order mark that opens the stream.
func (r *Reader) takeMark() bool {
	if !r.first || !r.opens(byteOrderMark) {
		return false
	}
	r.first = false
	_, _ = r.in.Discard(len(byteOrderMark))
	return true
}

// Next returns the next frame, valid until the next call. io.EOF is a clean end; io.ErrUnexpectedEOF an end within a frame, which is
// not to be executed. ErrTooLong, ErrUTF8 and ErrDepth concern one frame, which is skipped: call Next again. After any other error
// nothing more can be read.
func (r *Reader) Next() ([]byte, error) {
	if cap(r.buf) > keep {
		r.buf = nil
	}
	read := r.line
	if r.how == Headers {
		read = r.body
	}
	b, err := read()
	if err != nil {
		return nil, err
	}
	if err := check(b); err != nil {
		return nil, err
	}
	return b, nil
}

// line reads up to the LF that ends the next line that is not blank. LF is the only separator: a CR elsewhere is white space of the
// JSON text, and so is U+2028.
func (r *Reader) line() ([]byte, error) {
	for {
		if r.first {
			r.takeMark()
		}
		line, err := r.raw()
		if err == nil && blank(line) {
			continue
		}
		r.first = false
		return bytes.TrimRight(line, "\r"), err
	}
}

// raw reads what lies before the next LF. Of a line over the bound it keeps nothing.
func (r *Reader) raw() ([]byte, error) {
	r.buf = r.buf[:0]
	long := false
	for {
		part, err := r.in.ReadSlice('\n')
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		if !long && len(r.buf)+len(part) > r.max {
			long, r.buf = true, nil
		}
		if !long {
			r.buf = append(r.buf, part...)
		}
		switch {
		case ended && long:
			return nil, ErrTooLong
		case ended:
			return r.buf, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && (long || !blank(r.buf)):
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

func blank(b []byte) bool { return len(bytes.Trim(b, " \t\r")) == 0 }
