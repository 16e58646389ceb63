package acpagent

import (
	"os"
	"sync"

	"github.com/rind-dev/rind/protocol/frame"
)

// maxUnsent bounds the bytes that wait for a child to read them.
const maxUnsent = 2 * frame.MaxBytes

// outbox owns the child's input: the lines that wait for the child to read them, and run, the goroutine that writes them. It ends with finish or
// stop, or when nobody reads any more.
type outbox struct {
	to *os.File

	mu    sync.Mutex // guards what follows; never held over I/O
	wake  *sync.Cond
	lines [][]byte
	bytes int
	shut  bool // no more is taken
}

func newOutbox(to *os.File) *outbox {
	o := &outbox{to: to}
	o.wake = sync.NewCond(&o.mu)
	return o
}

// put queues a line, without its newline. It is let go of once the outbox is shut; false when too much waits already.
func (o *outbox) put(line []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shut {
		return true
	}
	if len(o.lines) > 0 && o.bytes+len(line) > maxUnsent {
		return false
	}
	line = append(line, '\n')
	o.lines = append(o.lines, line)
	o.bytes += len(line)
	o.wake.Signal()
	return true
}

// run writes what is queued, and closes the input.
func (o *outbox) run() {
	for {
		line, ok := o.next()
		if !ok {
			_ = o.to.Close()
			return
		}
		if _, err := o.to.Write(line); err != nil {
			o.stop()
			return
		}
	}
}

// next waits for a line; false when there will be none.
func (o *outbox) next() ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.lines) == 0 && !o.shut {
		o.wake.Wait()
	}
	if len(o.lines) == 0 {
		return nil, false
	}
	line := o.lines[0]
	o.lines[0] = nil
	o.lines = o.lines[1:]
	o.bytes -= len(line)
	return line, true
}

// finish takes no more; the input is closed once all that is queued was written.
func (o *outbox) finish() {
	o.mu.Lock()
	o.shut = true
	o.mu.Unlock()
	o.wake.Broadcast()
}

// stop lets go of what is queued and closes the input, also under a write that nobody reads.
func (o *outbox) stop() {
	o.mu.Lock()
	o.shut = true
	o.lines, o.bytes = nil, 0
	o.mu.Unlock()
	o.wake.Broadcast()
	_ = o.to.Close()
}
