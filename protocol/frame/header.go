package frame

import (
	"bytes"
	"errors"
	"io"
	"strconv"
)

// body reads one frame in header framing.
func (r *Reader) body() ([]byte, error) {
	if r.first {
		r.takeMark()
		r.first = false
	}
	length, err := r.header()
	if err != nil {
		return nil, err
	}
	if length > MaxBytes {
		switch n, err := io.CopyN(io.Discard, r.in, length); {
		case n == length:
			return nil, ErrTooLong
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
	// The buffer grows with what arrives: a length alone costs nothing.
	r.buf = r.buf[:0]
	for len(r.buf) < int(length) {
		n := min(int(length)-len(r.buf), max(len(r.buf), 64<<10))
		at := len(r.buf)
		r.buf = append(r.buf, make([]byte, n)...)
		if _, err := io.ReadFull(r.in, r.buf[at:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return r.buf, nil
}

// header reads a header block up to its blank line and returns the length it names, in bytes. Blank lines before it are skipped.
func (r *Reader) header() (int64, error) {
	var block [MaxHeader]byte
	size, begin, length, inside := 0, 0, int64(-1), false
	for {
		c, err := r.in.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && size > 0:
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, err
		case size == len(block):
			return 0, ErrHeader
		}
		block[size] = c
		size++
		if c != '\n' {
			continue
		}
		line := bytes.TrimRight(block[begin:size], "\r\n")
		begin = size
		switch {
		case len(line) > 0:
			inside = true
			if length, err = field(line, length); err != nil {
				return 0, err
			}
		case !inside:
			size, begin = 0, 0
		case length < 0:
			return 0, ErrHeader
		default:
			return length, nil
		}
	}
}

// field reads one header line; only Content-Length counts. Two that differ are none: it cannot be known which one the body follows.
func field(line []byte, length int64) (int64, error) {
	name, value, ok := bytes.Cut(line, []byte{':'})
	if !ok || !bytes.EqualFold(bytes.TrimSpace(name), contentLength) {
		return length, nil
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 63)
	if err != nil || length >= 0 && length != int64(n) {
		return 0, ErrHeader
	}
	return int64(n), nil
}
