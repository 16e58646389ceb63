package session

import (
	"sync"
	"time"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
)

// Streamed text becomes entries like this (docs/protocol/portable-2026-09-02.md section 5): the first piece of a stream at once, then
// one entry per 25 ms, at most 2,048 characters each, and always before anything else of the turn.
const (
	gatherEvery = 25 * time.Millisecond
	gatherChars = 2048
	// gatherRoom bounds the text of a turn that is not acknowledged yet; beyond it the model waits.
	gatherRoom = 1 << 20
)

type streamKind uint8

const (
	streamText streamKind = iota
	streamThought
	streamArguments
	streamNote // not text: a body of its own, kept in its place
)

// piece is gathered text of one stream.
type piece struct {
	kind  streamKind
	id    string // message id, or tool call id
	name  string // tool name
	text  []byte
	chars int
	body  protocol.Body // of streamNote
}

// gather collects the text an agent says until it is time to append it. The agent writes; the session's goroutine takes.
type gather struct {
	t *Turn

	mu      sync.Mutex // guards the fields below; never held over I/O or while posting
	pieces  []piece
	chars   int
	posted  bool // a flush is on its way
	last    time.Time
	timer   *time.Timer
	unacked int           // bytes gathered or on their way to the store
	room    chan struct{} // closed when there is room again; nil while there is
	stream  piece         // kind and id of the newest piece: a change of stream is told at once
	closed  bool

	// Owned by the session's goroutine.
	message string // id of the open message
	offset  int    // characters of it appended so far
}

// Say adds a piece of the answer's text. It blocks only while more than 1 MiB of the turn waits for the store.
func (t *Turn) Say(messageID, text string) { t.gather.add(streamText, messageID, "", text) }

// Think adds a piece of visible reasoning.
func (t *Turn) Think(messageID, text string) { t.gather.add(streamThought, messageID, "", text) }

// Type adds a piece of a tool call's raw arguments.
func (t *Turn) Type(callID, tool, text string) { t.gather.add(streamArguments, callID, tool, text) }

func (g *gather) add(kind streamKind, id, name, text string) {
	if text == "" {
		return
	}
	g.mu.Lock()
	for g.room != nil && !g.closed {
		room := g.room
		g.mu.Unlock()
		select {
		case <-room:
		case <-g.t.ctx.Done(): // the text is kept all the same: what the model said is told
			g.mu.Lock()
			g.room = nil
			continue
		}
		g.mu.Lock()
	}
	if g.closed {
		g.mu.Unlock()
		return
	}
	n := utf8.RuneCountInString(text)
	if k := len(g.pieces); k > 0 && g.pieces[k-1].kind == kind && g.pieces[k-1].id == id {
		g.pieces[k-1].text = append(g.pieces[k-1].text, text...)
		g.pieces[k-1].chars += n
	} else {
		g.pieces = append(g.pieces, piece{kind: kind, id: id, name: name, text: []byte(text), chars: n})
	}
	g.chars += n
	g.unacked += len(text)
	if g.unacked > gatherRoom {
		g.room = make(chan struct{})
	}
	fresh := g.stream.kind != kind || g.stream.id != id
	g.stream = piece{kind: kind, id: id}
	now := fresh || g.chars >= gatherChars
	if !now && g.timer == nil && !g.posted {
		wait := gatherEvery - time.Since(g.last)
		if wait <= 0 {
			now = true
		} else {
			g.timer = time.AfterFunc(wait, g.post)
		}
	}
	ask := now && g.claim()
	g.mu.Unlock()
	if ask {
		g.t.s.post(g.flush)
	}
}

// claim reports whether a flush is to be asked for now: none is on its way. mu is held.
func (g *gather) claim() bool {
	if g.posted {
		return false
	}
	g.posted = true
	return true
}

// note puts bodies that are no text in line with it.
func (g *gather) note(bodies []protocol.Body) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	for _, b := range bodies {
		g.pieces = append(g.pieces, piece{kind: streamNote, body: b})
	}
	g.stream = piece{kind: streamNote}
	g.mu.Unlock()
	g.post()
}

// post asks for a flush, unless one is on its way.
func (g *gather) post() {
	g.mu.Lock()
	ask := g.claim()
	g.mu.Unlock()
	if ask {
		g.t.s.post(g.flush)
	}
}

// flush appends what was gathered. Runs on the session's goroutine.
func (g *gather) flush() {
	g.mu.Lock()
	pieces := g.pieces
	g.pieces, g.chars, g.posted = nil, 0, false
	g.last = time.Now()
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	g.mu.Unlock()
	if len(pieces) == 0 {
		return
	}
	open := g.t.s.next.turn(g.t.ID)
	if open == nil { // another process has closed it: what is said is dropped, and holds nobody up
		g.acknowledge(size(pieces))
		return
	}
	bytes := size(pieces)
	g.t.s.append(g.lines(open, pieces), func(Seq, error) { g.acknowledge(bytes) })
}

// size counts the bytes of text of pieces.
func size(pieces []piece) int {
	n := 0
	for _, p := range pieces {
		n += len(p.text)
	}
	return n
}

// lines makes the entries of pieces.
func (g *gather) lines(open *OpenTurn, pieces []piece) []line {
	var ls []line
	for _, p := range pieces {
		if p.kind == streamNote {
			ls = append(ls, line{g.t.ID, p.body})
			continue
		}
		text := string(p.text)
		for len(text) > 0 {
			part := protocol.Prefix(text, gatherChars)
			text = text[len(part):]
			ls = append(ls, line{g.t.ID, g.body(open, p, part)})
		}
	}
	return ls
}

// acknowledge makes room again for bytes that are not on their way any more.
func (g *gather) acknowledge(bytes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unacked -= bytes
	if g.room != nil && g.unacked <= gatherRoom/2 {
		close(g.room)
		g.room = nil
	}
}

// body makes the entry of one piece.
func (g *gather) body(open *OpenTurn, p piece, text string) protocol.Body {
	switch p.kind {
	case streamThought:
		b := &protocol.ReasoningDelta{Text: text}
		b.More.MessageID = p.id
		return b
	case streamArguments:
		return &protocol.ToolInputDelta{ToolCallID: p.id, ToolName: p.name, Delta: text}
	}
	b := &protocol.AssistantDelta{Text: text}
	if g.message != p.id {
		g.message, g.offset = p.id, 0
		b.More.Separator = open.HasOutput // the portable protocol is told "\n\n" before a second message
	}
	b.More.MessageID, b.More.Offset = p.id, g.offset
	g.offset += protocol.CharLen(text)
	return b
}

// close appends the rest and drops whatever comes later.
func (g *gather) close() {
	g.flush()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.room != nil {
		close(g.room)
		g.room = nil
	}
}
