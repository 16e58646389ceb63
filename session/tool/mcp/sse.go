package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// event is one event of a stream.
type event struct {
	id   string
	data []byte
}

// events reads a stream of server-sent events. Lines end with LF or CRLF. It owns no goroutine.
type events struct {
	r     *bufio.Reader
	limit int           // bytes of an event's data
	last  string        // id to go on from; "" for none
	retry time.Duration // that the server asked for before a reconnect; 0 for none
}

func newEvents(r io.Reader, limit int) *events {
	return &events{r: bufio.NewReaderSize(r, 16<<10), limit: limit}
}

// next returns the next event that has data. io.EOF is a clean end; an event that was not finished is dropped.
func (e *events) next() (event, error) {
	var ev event
	open := false
	for {
		line, err := e.line(e.limit - len(ev.data))
		if err != nil {
			return event{}, err
		}
		if len(line) == 0 {
			if open {
				ev.id = e.last
				return ev, nil
			}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "data":
			if open {
				ev.data = append(ev.data, '\n')
			}
			ev.data, open = append(ev.data, value...), true
		case "id":
			if len(value) <= 1024 && bytes.IndexByte(value, 0) < 0 {
				e.last = string(value)
			}
		case "retry":
			if ms, err := strconv.Atoi(string(value)); err == nil && ms >= 0 {
				e.retry = min(time.Duration(ms)*time.Millisecond, 30*time.Second)
			}
		}
	}
}

// line reads one line of at most room bytes, without its end.
func (e *events) line(room int) ([]byte, error) {
	var line []byte
	for {
		part, err := e.r.ReadSlice('\n')
		if len(line)+len(part) > room+64 { // the name of the field is not counted
			return nil, fmt.Errorf("read an event: %w", errTooLong)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
