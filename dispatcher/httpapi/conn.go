package httpapi

import (
	"errors"
	"io"
	"net"
	"time"
)

// listener gives connections on which a write may take stall (section 1).
type listener struct {
	net.Listener
	stall time.Duration
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, stall: l.stall}, nil
}

// conn bounds the time of each write: a reader that takes nothing for stall, or a thirtieth longer, is cut. net/http writes from one goroutine
// at a time.
type conn struct {
	net.Conn
	stall time.Duration
	until time.Time // the deadline that is set
}

// extend sees that there is time for a write. A deadline serves all writes of a while: setting one costs as much as framing an event.
func (c *conn) extend() error {
	now := time.Now()
	if c.until.Sub(now) >= c.stall {
		return nil
	}
	c.until = now.Add(c.stall + c.stall/30)
	return c.SetWriteDeadline(c.until)
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	if err := c.extend(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// ReadFrom lets net/http send a file without reading it into memory. It is one write.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if err := c.extend(); err != nil {
		return 0, err
	}
	return io.Copy(c.Conn, r)
}

// CloseWrite lets net/http end what it says before it has read everything.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}
