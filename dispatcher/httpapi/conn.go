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
	stall  time.Duration
	buffer int // bytes of a connection that the system may hold for its reader
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	// A system that holds megabytes takes nothing more until about a third of them is read: to be seen here, a reader had to be that fast.
	if b, ok := c.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = b.SetWriteBuffer(l.buffer)
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

// piece is how much of what is written at one time has a time of its own: a reader that is slow takes all of it, however large it is.
const piece = 64 << 10

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
	done := 0
	for {
		if err := c.extend(); err != nil {
			return done, err
		}
		n, err := c.Conn.Write(b[done:min(done+piece, len(b))])
		if done += n; err != nil || done == len(b) {
			return done, err
		}
	}
}

// ReadFrom lets net/http send a file without reading it into memory.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	part := io.LimitedReader{R: r}
	whole, bounded := r.(*io.LimitedReader)
	if bounded { // one bound around the file: the system sends nothing by itself from behind two
		part.R = whole.R
	}
	for done := int64(0); ; {
		if part.N = piece; bounded {
			part.N = min(piece, whole.N)
		}
		if part.N <= 0 {
			return done, nil
		}
		if err := c.extend(); err != nil {
			return done, err
		}
		n, err := io.Copy(c.Conn, &part)
		if bounded {
			whole.N -= n
		}
		if done += n; err != nil || part.N > 0 {
			return done, err
		}
	}
}

// CloseWrite lets net/http end what it says before it has read everything.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}
