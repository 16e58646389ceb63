package acpagent

import (
	"bytes"
	"errors"
	"io"

	"github.com/rind-dev/rind/protocol/frame"
)

// Bounds of what a child writes that is no message (docs/protocol/acp.md section 5.5).
const (
	noiseLogged = 20
	noiseShown  = 200     // bytes of a line
	noiseLines  = 1000    // before the first message
	noiseBytes  = 1 << 20 // likewise
)

var (
	errTooLong = errors.New("it wrote a line of more than 16 MiB")
	errNoAgent = errors.New("it is not an ACP agent: what it writes on its standard output are no messages")
)

// noise watches what a child writes, while it is read: a line that does not end, and much that is no message before the first that is one, say
// that it cannot be used. It belongs to the reading goroutine.
type noise struct {
	from  io.Reader
	fails func(error)

	spoken bool // a message came
	lines  int  // that are none
	line   int  // bytes of the one that is being read
	total  int  // bytes
}

// Read implements io.Reader.
func (n *noise) Read(b []byte) (int, error) {
	got, err := n.from.Read(b)
	if at := bytes.LastIndexByte(b[:got], '\n'); at >= 0 {
		n.line = got - at - 1
	} else {
		n.line += got
	}
	if n.line > frame.MaxBytes {
		n.fails(errTooLong)
	}
	if n.total += got; n.total > noiseBytes && !n.spoken && n.line != n.total { // a first message may be long itself
		n.fails(errNoAgent)
	}
	return got, err
}

// odd counts a line that is no message, and reports whether it is one of the first, which are worth a line in the log.
func (n *noise) odd() bool {
	n.lines++
	if n.lines >= noiseLines && !n.spoken {
		n.fails(errNoAgent)
	}
	return n.lines <= noiseLogged
}
