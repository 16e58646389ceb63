package acpagent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/store/memory"
)

// BenchmarkAnUpdateThroughAHost is what one update of a hosted agent costs until it is in the log; compare it with the bare pipe below.
func BenchmarkAnUpdateThroughAHost(b *testing.B) {
	h := open(b, memory.New(), "plain")
	s := h.draft("ask")
	h.prompt(s, "hello") // the child runs
	b.ResetTimer()
	h.prompt(s, fmt.Sprintf("bench=%d", b.N))
}

// lineCount counts lines and tells when there were enough.
type lineCount struct {
	left int
	done chan struct{}
}

func (c *lineCount) Write(p []byte) (int, error) {
	if n := bytes.Count(p, []byte("\n")); c.left > 0 && n > 0 {
		if c.left -= n; c.left <= 0 {
			close(c.done)
		}
	}
	return len(p), nil
}

// BenchmarkAnUpdateOverTheBarePipe is what the same update costs when its line is only read.
func BenchmarkAnUpdateOverTheBarePipe(b *testing.B) {
	in, out := io.Pipe()
	count := &lineCount{left: b.N + 1, done: make(chan struct{})}
	p, err := proc.Start(proc.Spec{Path: os.Args[0], Env: []string{"ACP_DOUBLE=plain"}, Stdin: in, Stdout: count})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = out.Close()
		_, _ = p.Wait(context.Background())
	}()
	b.ResetTimer()
	if _, err := out.Write(append(protocol.MustMarshal(object{
		"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": object{"prompt": []any{object{"type": "text", "text": fmt.Sprintf("bench=%d", b.N)}}},
	}), '\n')); err != nil {
		b.Fatal(err)
	}
	<-count.done
}
