package rindv2

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

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
	Notices   bool // the client shows notices

	open map[protocol.TurnID]*textTold // of turns with an open message
	last *textTold                     // of the turn told of last
	turn protocol.TurnID               // whose that is
}

// textTold is how far the text of one message was told.
type textTold struct {
	message string
	chars   int
}

// Resume sets how much of the open message of a turn the connection knows already, in characters: from the snapshot it was given when it
// subscribed.
func (t *Teller) Resume(turn protocol.TurnID, message string, chars int) {
	*t.of(turn) = textTold{message, chars}
}

// of is what was told of a turn's open message, to be changed.
func (t *Teller) of(turn protocol.TurnID) *textTold {
	if t.last != nil && t.turn == turn {
		return t.last
	}
	have := t.open[turn]
	if have == nil {
		if t.open == nil {
			t.open = map[protocol.TurnID]*textTold{}
		}
		have = &textTold{}
		t.open[turn] = have
	}
	t.last, t.turn = have, turn
	return have
}

// forget drops what was told of a turn's open message: it is open no more.
func (t *Teller) forget(turn protocol.TurnID) {
	delete(t.open, turn)
	if t.turn == turn {
		t.last = nil
	}
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
			dst, n = t.run(dst, entries[i:], merge)
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

// CatchUp adds to dst the durable events among entries, for a follower that is on its way to where it goes live: the text of the messages
// before that comes with their durable events alone.
func (t *Teller) CatchUp(dst []protocol.Envelope, entries []protocol.Entry) []protocol.Envelope {
	for i := range entries {
		if told[entries[i].Kind].as == protocol.Durable {
			dst = t.plain(dst, &entries[i])
		}
	}
	return dst
}

// run tells the pieces of one text that entries begins with, more than one only where they may be merged, and returns how many they are.
// Nothing is told where the connection knows it already or misses what comes before.
func (t *Teller) run(dst []protocol.Envelope, entries []protocol.Entry, merge bool) (_ []protocol.Envelope, n int) {
	var first, next piece
	if !readPiece(&first, &entries[0]) {
		return dst, 1
	}
	say, stored := t.news(&entries[0], &first)
	n = 1
	var whole []byte
	for merge && n < len(entries) && entries[n].Kind == entries[0].Kind && entries[n].Turn == entries[0].Turn {
		if !readPiece(&next, &entries[n]) || !bytes.Equal(next.of, first.of) || !bytes.Equal(next.tool, first.tool) {
			break
		}
		n++
		more, as := t.news(&entries[n-1], &next)
		switch {
		case more == nil:
			stored = stored && say == nil
		case say == nil:
			say, stored = more, as
		default:
			if whole == nil {
				whole = append(make([]byte, 0, 4*len(say)+len(more)), say[:len(say)-1]...)
			}
			whole = append(whole, more[1:len(more)-1]...)
			stored = false
		}
	}
	if whole != nil {
		say = append(whole, '"')
	}
	if say == nil {
		return dst, n
	}
	return append(dst, t.retold(&entries[n-1], say, stored)), n
}

// news is what a piece holds that follows on what was told, and counts it as told; stored says that it is the piece as it stands. Only text
// of the answer is counted: its pieces say where they belong.
func (t *Teller) news(e *protocol.Entry, p *piece) (fresh json.RawMessage, stored bool) {
	if e.Kind != protocol.KindAssistantDelta || len(p.of) == 0 {
		return p.text, true
	}
	have := t.of(e.Turn)
	if have.message != string(p.of) {
		*have = textTold{message: string(p.of)}
	}
	end := p.offset + charsOf(p.text)
	switch {
	case p.offset > have.chars, end <= have.chars: // something before it is gone, the tail tells both; or it is known
		return nil, false
	case p.offset == have.chars:
		have.chars = end
		return p.text, true
	}
	all, _ := protocol.Text(p.text)
	rest := protocol.AppendString(nil, all[len(protocol.Prefix(all, have.chars-p.offset)):])
	have.chars = end
	return rest, false
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
		id, _ = protocol.Text(protocol.Member(e.Event, "tool_call_id"))
	case protocol.KindTaskOutput:
		id, _ = protocol.Text(protocol.Member(protocol.Member(e.Event, "task"), "task_id"))
	}
	return id
}

// entry tells one entry.
func (t *Teller) entry(dst []protocol.Envelope, e *protocol.Entry) []protocol.Envelope {
	switch e.Kind {
	case protocol.KindAssistantMessageCompleted:
		dst = t.tail(dst, e)
	case protocol.KindTurnStepRetry, protocol.KindTurnCompleted, protocol.KindTurnFailed, protocol.KindTurnCancelled:
		t.forget(e.Turn)
	}
	return t.plain(dst, e)
}

// plain tells one entry by itself, and what stands in its place for a client that does not know it.
func (t *Teller) plain(dst []protocol.Envelope, e *protocol.Entry) []protocol.Envelope {
	env, ok := EnvelopeOf(t.Session, e)
	if !ok || e.Kind == protocol.KindNotice && !t.Notices {
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

// retold is the envelope of a piece with another text, its id and time and all its other members; or as it is stored.
func (t *Teller) retold(e *protocol.Entry, text json.RawMessage, stored bool) protocol.Envelope {
	env := protocol.Envelope{Session: t.Session, Turn: e.Turn, Event: e.Event}
	if stored {
		return env
	}
	event := append(make(json.RawMessage, 0, len(e.Event)+len(text)), '{')
	for name, v := range protocol.Members(e.Event) {
		if len(event) > 1 {
			event = append(event, ',')
		}
		event = append(protocol.AppendString(event, string(name)), ':')
		if string(name) == "text" || string(name) == "delta" {
			v = text
		}
		event = append(event, v...)
	}
	env.Event = append(event, '}')
	return env
}

// tail tells what a message holds beyond what was told of it, in one piece, before the message: its whole text where it never had pieces.
func (t *Teller) tail(dst []protocol.Envelope, e *protocol.Entry) []protocol.Envelope {
	var content, message string
	for name, v := range protocol.Members(e.Event) {
		switch string(name) {
		case "content":
			content, _ = protocol.Text(v)
		case "message_id":
			message, _ = protocol.Text(v)
		}
	}
	from := 0
	if have := t.of(e.Turn); have.message == message {
		from = have.chars
	}
	t.forget(e.Turn)
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
