package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rind-dev/rind/session"
)

// wordPause lets one see the answer stream: some 300 words a second.
const wordPause = 3 * time.Millisecond

// writer yields the pieces of one completion. After the first that could not be yielded it is silent.
type writer struct {
	ctx   context.Context
	yield func(session.Chunk, error) bool
	over  bool
	began bool
	calls int // of the whole conversation so far
}

func (w *writer) send(c session.Chunk) {
	if w.over {
		return
	}
	if err := context.Cause(w.ctx); err != nil {
		w.over = true
		w.yield(session.Chunk{}, err)
		return
	}
	w.began = true
	w.over = !w.yield(c, nil)
}

// text says s word by word.
func (w *writer) text(s string) {
	for _, word := range strings.SplitAfter(s, " ") {
		if word == "" || w.over {
			continue
		}
		if w.began {
			w.pause()
		}
		w.send(session.Chunk{Kind: session.ChunkText, Text: word})
	}
}

func (w *writer) pause() { _ = session.Pause(w.ctx, wordPause) } // the next send tells that ctx has ended

func (w *writer) call(c wish) {
	w.calls++
	id := fmt.Sprintf("demo_%d", w.calls)
	raw := string(c.json())
	w.send(session.Chunk{Kind: session.ChunkCallStart, CallID: id, Name: c.tool})
	w.send(session.Chunk{Kind: session.ChunkCallDelta, CallID: id, Text: raw})
	w.send(session.Chunk{Kind: session.ChunkCallEnd, CallID: id, Name: c.tool, Text: raw})
}

// finish tells that no tokens were used, so that nobody has to estimate, and ends.
func (w *writer) finish(f session.Finish) {
	w.send(session.Chunk{Kind: session.ChunkUsage})
	w.send(session.Chunk{Kind: session.ChunkFinish, Finish: f})
}

func countCalls(messages []session.Message) int {
	n := 0
	for i := range messages {
		n += len(messages[i].Calls)
	}
	return n
}
