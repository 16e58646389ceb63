package providertest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// Reply is what a Server answers one request with. A body that comes to its end is a proper HTTP answer, and the connection serves the
// next request; Cut and Reset end it otherwise.
type Reply struct {
	Status int // 0 for 200
	Header http.Header
	Steps  []Step
	Plain  bool // the body ends with the connection, in place of chunks with an end
	Silent bool // no status line and no headers
}

// Step is one step of a reply's body.
type Step func(w *writer) error

type writer struct {
	server  *Server
	conn    net.Conn
	chunked bool
}

func (w *writer) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if w.chunked {
		b = fmt.Appendf(nil, "%x\r\n%s\r\n", len(b), b)
	}
	_, err := w.conn.Write(b)
	return err
}

// wait waits for d; errGone when the peer has closed by then, or the server is closed.
func (w *writer) wait(d time.Duration) error {
	if err := w.conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	var b [1]byte
	_, err := w.conn.Read(b[:]) // nothing may come before the answer is complete
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return w.conn.SetReadDeadline(time.Time{})
	}
	return errGone
}

// Send writes text in one piece.
func Send(text string) Step { return func(w *writer) error { return w.write([]byte(text)) } }

// Drip writes text one byte per segment.
func Drip(text string) Step {
	return func(w *writer) error {
		for i := range len(text) {
			if err := w.write([]byte{text[i]}); err != nil {
				return err
			}
		}
		return nil
	}
}

// Wait does nothing for d.
func Wait(d time.Duration) Step { return func(w *writer) error { return w.wait(d) } }

// Gate waits until open is closed.
func Gate(open <-chan struct{}) Step {
	return func(w *writer) error {
		select {
		case <-open:
			return nil
		case <-w.server.closing:
			return errGone
		}
	}
}

// Hang does nothing until the peer closes the connection.
func Hang() Step {
	return func(w *writer) error {
		_, _ = io.Copy(io.Discard, w.conn)
		return errGone
	}
}

// Repeat writes text every d until the peer closes the connection.
func Repeat(text string, d time.Duration) Step {
	return func(w *writer) error {
		for {
			if err := w.write([]byte(text)); err != nil {
				return err
			}
			if err := w.wait(d); err != nil {
				return err
			}
		}
	}
}

// Cut closes the connection in the midst of the body.
func Cut() Step { return func(*writer) error { return errGone } }

// Reset ends the connection with a TCP reset, which overtakes what the peer has not read yet.
func Reset() Step {
	return func(w *writer) error {
		if tcp, ok := w.conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return errGone
	}
}

// Stream is a 200 with an event stream.
func Stream(steps ...Step) Reply {
	return Reply{Header: http.Header{"Content-Type": {"text/event-stream"}}, Steps: steps}
}

// SSE is a Stream of one data line per event, in one piece.
func SSE(data ...string) Reply { return Stream(Send(Events(data...))) }

// Events writes data lines as a stream has them.
func Events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// JSON is a whole answer of type application/json.
func JSON(status int, body string) Reply { return Body(status, "application/json", body) }

// Body is a whole answer.
func Body(status int, contentType, body string) Reply {
	return Reply{Status: status, Header: http.Header{"Content-Type": {contentType}}, Steps: []Step{Send(body)}}
}

// With returns r with one more header.
func (r Reply) With(name, value string) Reply {
	r.Header = r.Header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set(name, value)
	return r
}

// HeadersOnly is a 200 with an event stream that never says anything.
func HeadersOnly() Reply { return Stream(Hang()) }

// Silence accepts the request and never answers.
func Silence() Reply { return Reply{Silent: true, Steps: []Step{Hang()}} }

// Redirect leads to another address.
func Redirect(status int, to string) Reply { return Reply{Status: status}.With("Location", to) }
