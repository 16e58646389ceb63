package session

import (
	"sync"

	"github.com/rind-dev/rind/protocol"
)

// sayAhead bounds the text of an execution that is on its way to the disk, in bytes, before the next piece waits.
const sayAhead = 64 << 10

// saying is the text a provider of the parallel lane has said that is not on the disk yet. What was said while the session was at something else
// is one batch, each piece an entry of its own; nothing waits for more. Safe for concurrent use.
type saying struct {
	mu      sync.Mutex // guards what follows; never held over I/O or while posting
	pieces  []string   // not handed to the store
	bytes   int        // said and not stored, with what is stored around it
	posted  bool       // the session's goroutine will come for the pieces
	refused error      // nothing is said any more
	room    chan struct{}
}

// add waits for room and adds a piece. ask says that nobody will come for it yet.
func (q *saying) add(text string) (ask bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.bytes > sayAhead && q.refused == nil {
		if q.room == nil {
			q.room = make(chan struct{})
		}
		room := q.room
		q.mu.Unlock()
		<-room
		q.mu.Lock()
	}
	if q.refused != nil {
		return false, q.refused
	}
	q.pieces = append(q.pieces, text)
	q.bytes += weight(text)
	ask = !q.posted
	q.posted = true
	return ask, nil
}

// take returns the pieces that were said, in order.
func (q *saying) take() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	pieces := q.pieces
	q.pieces, q.posted = nil, false
	return pieces
}

// stored makes room.
func (q *saying) stored(bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes -= bytes; q.bytes <= sayAhead {
		q.wake()
	}
}

// refuse answers whatever is said from here on, and who waits for room; the first reason stands.
func (q *saying) refuse(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refused == nil {
		q.refused = err
	}
	q.wake()
}

func (q *saying) wake() {
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
}

// weight is what a piece takes of sayAhead: itself, and what is stored around it.
func weight(text string) int { return len(text) + 256 }

// Say tells a piece of text: one event. It returns while the piece is on its way to the disk, as long as not much is; it is told when it has
// arrived. What could not be stored fails a later one, or the execution. After the end it does nothing and returns an error.
func (x *Execution) Say(text string) error {
	ask, err := x.run.say.add(text)
	if ask && !x.run.s.post(x.run.tellText) {
		return errTurnGone
	}
	return err
}

// tellText appends the text that was said.
func (run *besideRun) tellText() {
	pieces := run.say.take()
	if err := run.refusal(); err != nil { // what comes behind a gap is not told either
		run.say.refuse(err)
		return
	}
	bytes := 0
	ls := make([]line, len(pieces))
	for i, text := range pieces {
		bytes += weight(text)
		b := &protocol.AssistantDelta{Text: text}
		b.More.MessageID, b.More.Offset = run.message, run.chars
		run.text = append(run.text, text...)
		run.chars += protocol.CharLen(text)
		ls[i] = line{run.turn, b}
	}
	run.s.append(ls, func(_ Seq, err error) {
		run.say.stored(bytes)
		if err != nil {
			run.unsaid = err
			run.say.refuse(err)
		}
	})
}

// refusal says why the execution cannot be told anything any more; nil while it can.
func (run *besideRun) refusal() error {
	switch {
	case run.s.next.turn(run.turn) == nil || run.stage >= stageEnding:
		return errTurnGone
	case run.fault != nil:
		return run.fault
	}
	return run.unsaid
}
