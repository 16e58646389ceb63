package modelhttp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxEvent bounds a line, and the data of one event, of a stream.
const maxEvent = 16 << 20

// Event is one thing a stream says: data with the name it goes under, or a comment.
type Event struct {
	Name    string
	Data    []byte // valid until the next call of Next
	Comment bool
}

// events splits a byte stream into server-sent events. Lines end with LF, CRLF or CR and may come in pieces of any size; a byte order
// mark is skipped, so are fields we have no use for. It is stricter than the standard nowhere and milder in one point: an event right
// before a clean end counts though its blank line is missing. It owns no goroutine and is not safe for concurrent use.
type events struct {
	r       io.Reader
	buf     []byte // buf[at:] is read and not yet split
	at      int
	scanned int  // of buf[at:], known to hold no line end
	skipLF  bool // the line before ended with CR: an LF right behind it belongs to that end
	begun   bool // past the byte order mark
	err     error

	name []byte
	data []byte
	open bool // a data line was seen since the last blank line
	done bool // data was handed out and is dropped on the next call
}

// readSize is how much is asked of the reader at once.
const readSize = 16 << 10

// next returns the next event or comment. io.EOF is a clean end.
func (e *events) next() (Event, error) {
	if e.done {
		e.done, e.open, e.data, e.name = false, false, e.data[:0], e.name[:0]
	}
	for {
		line, err := e.line()
		if err != nil {
			if errors.Is(err, io.EOF) && e.open {
				return e.dispatch(), nil
			}
			return Event{}, err
		}
		if len(line) == 0 {
			if e.open {
				return e.dispatch(), nil
			}
			e.name = e.name[:0]
			continue
		}
		field, value, _ := bytes.Cut(line, colon)
		value = bytes.TrimPrefix(value, space)
		switch string(field) {
		case "":
			return Event{Comment: true}, nil
		case "data":
			if e.open {
				e.data = append(e.data, '\n')
			}
			e.data, e.open = append(e.data, value...), true
			if len(e.data) > maxEvent {
				return Event{}, fmt.Errorf("an event of the stream is longer than %d bytes", maxEvent)
			}
		case "event":
			e.name = append(e.name[:0], value...)
		}
	}
}

var (
	colon = []byte{':'}
	space = []byte{' '}
	mark  = []byte("\xEF\xBB\xBF")
)

func (e *events) dispatch() Event {
	e.done = true
	return Event{Name: string(e.name), Data: e.data}
}

// line returns the next line without its end; it is valid until the next call.
func (e *events) line() ([]byte, error) {
	for {
		if e.skipLF && e.at < len(e.buf) {
			if e.buf[e.at] == '\n' {
				e.at++
			}
			e.skipLF = false
		}
		if !e.begun && (len(e.buf) >= len(mark) || e.err != nil || !bytes.HasPrefix(mark, e.buf)) {
			e.begun = true
			if bytes.HasPrefix(e.buf, mark) {
				e.at = len(mark)
			}
		}
		rest := e.buf[e.at:]
		if e.begun {
			if i := lineEnd(rest[e.scanned:]); i >= 0 {
				i += e.scanned
				e.skipLF = rest[i] == '\r'
				e.at, e.scanned = e.at+i+1, 0
				return rest[:i], nil
			}
			e.scanned = len(rest)
		}
		if e.err != nil {
			if errors.Is(e.err, io.EOF) && len(rest) > 0 {
				e.at, e.scanned = len(e.buf), 0
				return rest, nil
			}
			return nil, e.err
		}
		if len(rest) > maxEvent {
			return nil, fmt.Errorf("a line of the stream is longer than %d bytes", maxEvent)
		}
		e.fill()
	}
}

// fill reads once more behind what is there.
func (e *events) fill() {
	if e.at > 0 {
		e.buf = append(e.buf[:0], e.buf[e.at:]...)
		e.at = 0
	}
	if cap(e.buf)-len(e.buf) < readSize/2 {
		grown := make([]byte, len(e.buf), max(2*cap(e.buf), readSize))
		copy(grown, e.buf)
		e.buf = grown
	}
	n, err := e.r.Read(e.buf[len(e.buf):cap(e.buf)])
	e.buf, e.err = e.buf[:len(e.buf)+n], err
}

// lineEnd finds the first LF or CR, -1 for none.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}
