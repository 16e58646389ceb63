package shell

import (
	"os"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
)

// OnStart has f told of each command that was started, and what is closed when it has ended.
func (c *Config) OnStart(f func(ended <-chan struct{})) {
	c.began = func(p *proc.Process) { f(p.Done()) }
}

// Clean is the text of what a command writes in pieces, and whether something was changed.
func Clean(pieces ...[]byte) (string, bool) {
	var c cleaner
	var out []byte
	for _, p := range pieces {
		out = c.clean(out, p)
	}
	out = c.flush(out)
	return string(out), c.lossy
}

// Record is the output of a command without one.
type Record struct{ o *output }

// NewRecord makes one whose file create makes.
func NewRecord(create func() (*os.File, error)) Record { return Record{newOutput(create)} }

// Write is what the command writes to standard error, or output.
func (r Record) Write(toErr bool, p []byte) {
	n := stdout
	if toErr {
		n = stderr
	}
	_, _ = r.o.writer(n).Write(p)
}

// Store makes the file.
func (r Record) Store() { r.o.store() }

// Close ends it.
func (r Record) Close() { r.o.close() }

// Job is it as a job tells it.
func (r Record) Job() session.Job { return &running{output: r.o} }
