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
// It belongs to the goroutine that writes the connection.
type Teller struct {
	Session   protocol.SessionID
	Approvals bool // the client knows approvals, and needs no question in their place

	open map[protocol.TurnID]textTold // of turns with an open message
}

// textTold is how far the text of one message was told.
type textTold struct {
	message string
	chars   int
}

// Resume sets how much of the open message of a turn the connection knows already, in characters: from the snapshot it was given when it
// subscribed.
func (t *Teller) Resume(turn protocol.TurnID, message string, chars int) {
	if t.open == nil {
		t.open = map[protocol.TurnID]textTold{}
	}
	t.open[turn] = textTold{message, chars}
}

// Tell adds to dst what the connection is told of entries, which follow those of the call before; entries of a log that were pruned may be
// missing. With merge the follower lags: nothing is merged across a durable event, nor across the end of entries, so that an answer
// which belongs behind them can follow.
func (t *Teller) Tell(dst []protocol.Envelope, entries []protocol.Entry, merge bool) []protocol.Envelope {
	for i := 0; i < len(entries); {
		e := &entries[i]
		n := 1
		switch told[e.Kind].merge {
		case joined:
			var text json.RawMessage
			n, text = t.run(entries[i:], merge)
			if text != nil {
				dst = append(dst, t.retold(&entries[i+n-1], text))
			}
		case newest:
			if !merge || !superseded(entries[i:]) {
				dst = t.entry(dst, e)
			}
		case never:
			dst = t.entry(dst, e)
		}
		i += n
	}
	return dst
}

// run takes the pieces of one text that entries begins with, more than one only where they may be merged, and returns how many they are and
// what is to be told of them; nil for nothing, because the connection knows it already or misses what comes before.
func (t *Teller) run(entries []protocol.Entry, merge bool) (n int, say json.RawMessage) {
	first, ok := readPiece(&entries[0])
	if !ok {
		return 1, nil
	}
	n = 1
	say = t.news(&entries[0], first)
	if !merge {
		return n, say
	}
	var whole []byte
	for n < len(entries) && entries[n].Kind == entries[0].Kind && entries[n].Turn == entries[0].Turn {
		next, ok := readPiece(&entries[n])
		if !ok || next.of != first.of || next.tool != first.tool {
			break
		}
		if more := t.news(&entries[n], next); more != nil {
			if whole == nil && say != nil {
				whole = append(whole, say[:len(say)-1]...)
			}
			if whole == nil {
				say = more
			} else {
				whole = append(whole, more[1:len(more)-1]...)
			}
		}
		n++
	}
	if whole != nil {
		say = append(whole, '"')
	}
	return n, say
}

// news is what a piece holds that follows on what was told, and counts it as told. Only text of the answer is counted: its pieces say where
// they belong.
func (t *Teller) news(e *protocol.Entry, p piece) json.RawMessage {
	if e.Kind != protocol.KindAssistantDelta || p.of == "" {
		return p.text
	}
	have := t.open[e.Turn]
	if have.message != p.of {
		have.chars = 0
	}
	chars := charsOf(p.text)
	switch end := p.offset + chars; {
	case p.offset > have.chars: // something before it is gone; the tail tells both
		return nil
	case end <= have.chars:
		return nil
	case p.offset < have.chars:
		text, _ := text(p.text)
		p.text = protocol.AppendString(nil, text[len(protocol.Prefix(text, have.chars-p.offset)):])
		chars = end - have.chars
	}
	t.Resume(e.Turn, p.of, have.chars+chars)
	return p.text
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

// entry tells one entry.
func (t *Teller) entry(dst []protocol.Envelope, e *protocol.Entry) []protocol.Envelope {
	switch e.Kind {
	case protocol.KindAssistantMessageCompleted:
		dst = t.tail(dst, e)
	case protocol.KindTurnStepRetry, protocol.KindTurnCompleted, protocol.KindTurnFailed, protocol.KindTurnCancelled:
		delete(t.open, e.Turn)
	}
	env, ok := EnvelopeOf(t.Session, e)
	if !ok {
		return dst
	}
	dst = append(dst, env)
	if f := told[e.Kind].inPlace; f != nil && !t.Approvals {
		if q, ok := f(t.Session, e); ok {
			dst = append(dst, q)
		}
	}
	return dst
}

// retold is the envelope of a piece with another text: its id and time, and all its other members.
func (t *Teller) retold(e *protocol.Entry, text json.RawMessage) protocol.Envelope {
	env, _ := EnvelopeOf(t.Session, e)
	if p, ok := readPiece(e); ok && &p.text[0] == &text[0] {
		return env // the stored bytes are told
	}
	event := append(make(json.RawMessage, 0, len(e.Event)+len(text)), '{')
	each(e.Event, func(name []byte, v json.RawMessage) {
		if len(event) > 1 {
			event = append(event, ',')
		}
		event = append(protocol.AppendString(event, string(name)), ':')
		if string(name) == "text" || string(name) == "delta" {
			v = text
		}
		event = append(event, v...)
	})
	env.Event = append(event, '}')
	return env
}

// tail tells what a message holds beyond what was told of it, in one piece, before the message: its whole text where it never had pieces.
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
	if have := t.open[e.Turn]; have.message == message {
		from = have.chars
	}
	delete(t.open, e.Turn)
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
	of     string          // message or call
	tool   string          // of a call
	offset int             // characters of the message before it
	text   json.RawMessage // JSON string
}

// readPiece reads a delta without decoding its text.
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
			switch string(name) {
			case "m":
				p.of, _ = text(v)
			case "o":
				n, _ := integer(v)
				p.offset = int(n)
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
