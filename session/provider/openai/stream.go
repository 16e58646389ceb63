package openai

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/rind-dev/rind/session"
)

// maxEvent bounds one event of the stream.
const maxEvent = 16 << 20

// errIdle is the cause when the watchdog ends a silent stream.
var errIdle = errors.New("stream was silent for too long")

// stream reads server-sent events. A watchdog closes it after too long a silence, or when it lives on keep-alives alone for too long.
type stream struct {
	m      *Model
	body   io.ReadCloser
	lines  *bufio.Reader
	cancel context.CancelCauseFunc
	keep   bool // body is closed by the reader only

	mu    sync.Mutex // guards the timer against close
	timer *time.Timer
	fed   time.Time // when data came last
}

func newStream(m *Model, cancel context.CancelCauseFunc) *stream {
	s := &stream{m: m, cancel: cancel, fed: time.Now()}
	s.lines = bufio.NewReaderSize(s, 32<<10)
	s.timer = time.AfterFunc(m.cfg.Idle, func() { cancel(errIdle) })
	return s
}

// Read implements io.Reader for the line reader: every byte is a sign of life.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if n > 0 && time.Since(s.fed) < s.m.cfg.Total {
		s.alive()
	}
	return n, err
}

func (s *stream) alive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Reset(s.m.cfg.Idle)
	}
}

func (s *stream) close() {
	s.mu.Lock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	s.mu.Unlock()
	if s.body != nil && !s.keep {
		_ = s.body.Close()
	}
}

// next returns the data of the next event and its name; io.EOF at a clean end. Comments and fields we do not use are skipped.
func (s *stream) next() (name string, data []byte, err error) {
	for {
		line, err := s.line()
		if err != nil {
			if errors.Is(err, io.EOF) && len(data) > 0 {
				return name, data, nil // the last event may lack its blank line
			}
			return "", nil, err
		}
		if len(line) == 0 {
			if len(data) > 0 {
				s.fed = time.Now()
				return name, data, nil
			}
			name = ""
			continue
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "data":
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, value...)
			if len(data) > maxEvent {
				return "", nil, errors.New("event of the stream is too long")
			}
		case "event":
			name = string(value)
		}
	}
}

// line returns one line without its end, LF or CRLF.
func (s *stream) line() ([]byte, error) {
	var line []byte
	for {
		part, err := s.lines.ReadSlice('\n')
		if err == nil && line == nil {
			return bytes.TrimRight(part, "\r\n"), nil
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case errors.Is(err, bufio.ErrBufferFull):
			if len(line) > maxEvent {
				return nil, errors.New("line of the stream is too long")
			}
		case errors.Is(err, io.EOF) && len(line) > 0:
			return bytes.TrimRight(line, "\r\n"), nil
		default:
			return nil, err
		}
	}
}

// broken says how a stream that began came to a bad end.
func (m *Model) broken(ctx context.Context, err error, began bool) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, errIdle) {
			return &session.ModelError{Fault: session.FaultTimeout, Message: "The model sent nothing for too long.", Cause: cause}
		}
		return cause
	}
	e := &session.ModelError{Fault: session.FaultCut, Message: "The connection broke before the answer was complete.", Cause: err}
	if errors.Is(err, io.EOF) {
		e.Message = "The model's answer ended before it was complete."
		if !began {
			e.Fault, e.Message = session.FaultCut, "The model's stream was empty."
		}
	}
	return e
}
