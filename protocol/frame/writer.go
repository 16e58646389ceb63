package frame

import (
	"io"
	"strconv"
)

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

// Writer gathers frames and writes them together. Not safe for concurrent use.
type Writer struct {
	out io.Writer
	how Framing
	buf []byte
}

// NewWriter writes frames to w.
func NewWriter(w io.Writer, how Framing) *Writer { return &Writer{out: w, how: how} }

// Add gathers a frame; body is copied.
func (w *Writer) Add(body []byte) { w.buf = Append(w.buf, w.how, body) }

// Len is how many bytes Flush would write.
func (w *Writer) Len() int { return len(w.buf) }

// Flush writes what was gathered in one Write, if anything was. After an error the peer may have got part of a frame: write no more.
func (w *Writer) Flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	_, err := w.out.Write(w.buf)
	if w.buf = w.buf[:0]; cap(w.buf) > keep {
		w.buf = nil
	}
	return err
}
