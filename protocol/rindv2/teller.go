package rindv2

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
)

// Teller turns the entries of one session's log into what one connection is told of them (docs/protocol/rind-v2.md section 3.8): all of
// them, or for a follower that lags the pieces of a text as one and only the newest of small news. Whatever it is given, the text it
// told of a message adds up to that message: what is missing comes as one piece before the message is complete.
//
// The zero Teller follows from the beginning. It belongs to the goroutine that writes the connection.
type Teller struct {
	Session   protocol.SessionID
	Approvals bool // the client knows approvals, and needs no question in their place

	open textTold // the message being told
}

// textTold is how far the text of one message was told.
type textTold struct {
	message string
	chars   int
	turn    protocol.TurnID
}

// Resume sets how much of the open message the connection knows already, in characters: from the snapshot it was given when it
// subscribed.
func (t *Teller) Resume(turn protocol.TurnID, message string, chars int) {
	t.open = textTold{message, chars, turn}
}

// Tell adds to dst what the connection is told of entries, which follow those of the call before; entries of a log that were pruned may be
// missing. With merge the follower lags: nothing is merged across a durable event, nor across the end of entries, so that an answer
// which belongs behind them can follow.
func (t *Teller) Tell(dst []protocol.Envelope, entries []protocol.Entry, merge bool) []protocol.Envelope {
	for i := 0; i < len(entries); {
		e := &entries[i]
		n := 1
		if merge && told[e.Kind].merge == joined {
			n = t.run(entries[i:])
		}
		if !merge || !superseded(entries[i:]) {
			dst = t.entry(dst, entries[i:i+n])
		}
		i += n
	}
	return dst
}

// run counts the pieces of one text that entries begins with.
func (t *Teller) run(entries []protocol.Entry) int {
	first, ok := readPiece(&entries[0])
	if !ok {
		return 1
	}
	n := 1
	for n < len(entries) && entries[n].Kind == entries[0].Kind && entries[n].Turn == entries[0].Turn {
		next, ok := readPiece(&entries[n])
		if !ok || next.of != first.of || next.tool != first.tool {
			break
		}
		n++
	}
	return n
}

// superseded reports whether a newer one of the same news follows the first of entries before anything durable does.
func superseded(entries []protocol.Entry) bool {
	first := &entries[0]
	if told[first.Kind].merge != newest {
		return false
	}
	for i := range entries[1:] {
		e := &entries[1+i]
		if e.Event == nil {
			continue
		}
		switch told[e.Kind].as {
		case protocol.Durable, protocol.DurableTask:
			return false
		}
		if e.Kind == first.Kind && e.Turn == first.Turn && subject(e) == subject(first) {
			return true
		}
	}
	return false
}

// subject is what a piece of news is about, so that progress of one tool does not hide that of another.
func subject(e *protocol.Entry) (id string) {
	switch e.Kind {
	case protocol.KindToolProgress:
		each(e.Event, func(name []byte, v json.RawMessage) {
			if string(name) == "tool_call_id" {
				id, _ = text(v)
			}
		})
	case protocol.KindTaskOutput:
		each(e.Event, func(name []byte, v json.RawMessage) {
			if string(name) != "task" || v[0] != '{' {
				return
			}
			each(v, func(name []byte, v json.RawMessage) {
				if string(name) == "task_id" {
					id, _ = text(v)
				}
			})
		})
	}
	return id
}

// entry tells one entry, or a run of pieces as one.
func (t *Teller) entry(dst []protocol.Envelope, run []protocol.Entry) []protocol.Envelope {
	last := &run[len(run)-1]
	switch last.Kind {
	case protocol.KindAssistantDelta:
		t.say(run)
	case protocol.KindAssistantMessageCompleted:
		dst = t.tail(dst, last)
	}
	env, ok := EnvelopeOf(t.Session, last)
	if !ok {
		return dst
	}
	if len(run) > 1 {
		if env.Event, ok = join(run); !ok {
			for i := range run {
				one, _ := EnvelopeOf(t.Session, &run[i])
				dst = append(dst, one)
			}
			return dst
		}
	}
	dst = append(dst, env)
	if f := told[last.Kind].inPlace; f != nil && !t.Approvals {
		if q, ok := f(t.Session, last); ok {
			dst = append(dst, q)
		}
	}
	return dst
}

// say counts the text of pieces as told.
func (t *Teller) say(run []protocol.Entry) {
	for i := range run {
		p, ok := readPiece(&run[i])
		if !ok {
			continue
		}
		if t.open.message != p.of || t.open.turn != run[i].Turn {
			t.open = textTold{p.of, 0, run[i].Turn}
		}
		t.open.chars += charsOf(p.text)
	}
}

// tail tells what a message holds beyond what was told of it, in one piece, before the message. Nothing is told of a message that this
// connection was told nothing of because it has no pieces to begin with: then its whole text is the piece.
func (t *Teller) tail(dst []protocol.Envelope, e *protocol.Entry) []protocol.Envelope {
	var content, message string
	each(e.Event, func(name []byte, v json.RawMessage) {
		switch string(name) {
		case "content":
			content, _ = text(v)
		case "message_id":
			message, _ = text(v)
		}
	})
	from := 0
	if t.open.message == message && t.open.turn == e.Turn {
		from = t.open.chars
	}
	t.open = textTold{}
	rest := content[len(protocol.Prefix(content, from)):]
	if rest == "" {
		return dst
	}
	// The pieces this stands for are gone, and with them their ids: this one is the same for every connection that misses them.
	sum := sha256.Sum256([]byte("rest " + protocol.EventID(e.Event)))
	made, err := protocol.Encode(protocol.Head{Time: e.Time, EventID: hex.EncodeToString(sum[:16]), Session: t.Session, Turn: e.Turn}, &protocol.AssistantDelta{Text: rest})
	if err != nil {
		return dst // text always encodes
	}
	return append(dst, protocol.Envelope{Session: t.Session, Turn: e.Turn, Event: made.Event})
}

// piece is a piece of a text, as stored.
type piece struct {
	of   string          // message or call
	tool string          // of a call
	text json.RawMessage // JSON string
}

// readPiece reads a delta without decoding its text. Messages of older logs may have no id; then all pieces of a turn belong together.
func readPiece(e *protocol.Entry) (p piece, ok bool) {
	if e.Event == nil {
		return piece{}, false
	}
	each(e.Event, func(name []byte, v json.RawMessage) {
		switch string(name) {
		case "text", "delta":
			p.text = v
		case "tool_call_id":
			p.of, _ = text(v)
		case "tool_name":
			p.tool, _ = text(v)
		}
	})
	if e.More != nil && e.Kind != protocol.KindToolInputDelta {
		each(e.More, func(name []byte, v json.RawMessage) {
			if string(name) == "m" {
				p.of, _ = text(v)
			}
		})
	}
	return p, len(p.text) >= 2 && p.text[0] == '"'
}

// charsOf counts the characters of a JSON string that was stored by us: every escape of such a string is one character.
func charsOf(j json.RawMessage) int {
	j = j[1 : len(j)-1]
	n := utf8.RuneCount(j)
	for i := 0; i < len(j); i++ {
		if j[i] != '\\' {
			continue
		}
		i++
		if n--; j[i] == 'u' {
			n -= 4
			i += 4
		}
	}
	return n
}

// join makes one event of several pieces of a text: the id and time of the last, the text of all.
func join(run []protocol.Entry) (json.RawMessage, bool) {
	size := 0
	pieces := make([]piece, len(run))
	for i := range run {
		p, ok := readPiece(&run[i])
		if !ok {
			return nil, false
		}
		pieces[i] = p
		size += len(p.text)
	}
	last := &run[len(run)-1]
	whole := append(make([]byte, 0, size+2), '"')
	for _, p := range pieces {
		whole = append(whole, p.text[1:len(p.text)-1]...)
	}
	whole = append(whole, '"')
	event := append(make(json.RawMessage, 0, len(last.Event)+len(whole)), '{')
	each(last.Event, func(name []byte, v json.RawMessage) {
		if len(event) > 1 {
			event = append(event, ',')
		}
		event = append(protocol.AppendString(event, string(name)), ':')
		if string(name) == "text" || string(name) == "delta" {
			v = whole
		}
		event = append(event, v...)
	})
	return append(event, '}'), true
}
