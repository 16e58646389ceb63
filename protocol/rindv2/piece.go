package rindv2

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
)

// piece is a piece of a text, as stored. Its members are parts of the entry.
type piece struct {
	of     []byte // message or call
	tool   []byte // of a call
	offset int    // characters of the message before it
	text   json.RawMessage
}

// readPiece reads a delta without decoding its text. Pieces of answers are most of what is told, so their two members are looked up by what
// protocol.Encode writes, and walked for only where that is not found.
func readPiece(p *piece, e *protocol.Entry) (ok bool) {
	*p = piece{}
	if e.Event == nil {
		return false
	}
	if e.Kind != protocol.KindToolInputDelta && p.quick(e) {
		return true
	}
	p.walk(e)
	return len(p.text) >= 2 && p.text[0] == '"'
}

// quick reads text, m and o where they are plain. No string of JSON holds a bare quote, so that a comma before one means a member.
func (p *piece) quick(e *protocol.Entry) bool {
	at := bytes.Index(e.Event, []byte(`xt":"`)) // no other member of the head has an x: one look finds it
	if at < 4 || string(e.Event[at-4:at]) != `,"te` || !bytes.HasPrefix(e.More, []byte(`{"v":1,"m":"`)) {
		return false
	}
	at += len(`xt":`)
	p.text = json.RawMessage(e.Event[at:protocol.StringEnd(e.Event, at)])
	of := e.More[len(`{"v":1,"m":"`):]
	end := bytes.IndexByte(of, '"')
	if end < 0 || bytes.IndexByte(of[:end], '\\') >= 0 {
		return false
	}
	rest := of[end+1:]
	p.of = of[:end:end]
	if !bytes.HasPrefix(rest, []byte(`,"o":`)) {
		return true
	}
	for _, c := range rest[len(`,"o":`):] {
		if c < '0' || c > '9' {
			return c == ',' || c == '}'
		}
		p.offset = p.offset*10 + int(c-'0')
	}
	return false
}

func (p *piece) walk(e *protocol.Entry) {
	*p = piece{}
	for name, v := range protocol.Members(e.Event) {
		switch string(name) {
		case "text", "delta":
			p.text = v
		case "tool_call_id":
			p.of = plain(v)
		case "tool_name":
			p.tool = plain(v)
		}
	}
	if e.More == nil || e.Kind == protocol.KindToolInputDelta {
		return
	}
	for name, v := range protocol.Members(e.More) {
		switch string(name) {
		case "m":
			p.of = plain(v)
		case "o":
			n, _ := protocol.Integer(v)
			p.offset = int(n)
		}
	}
}

// plain is the content of a JSON string, nil for any other value.
func plain(v json.RawMessage) []byte {
	s, ok := protocol.Text(v)
	if !ok {
		return nil
	}
	return []byte(s)
}

// charsOf counts the characters of a JSON string that was stored by us: every escape of such a string is one character.
func charsOf(j json.RawMessage) int {
	j = j[1 : len(j)-1]
	n := utf8.RuneCount(j)
	for {
		i := bytes.IndexByte(j, '\\')
		if i < 0 {
			return n
		}
		i++
		if n--; j[i] == 'u' {
			n -= 4
			i += 4
		}
		j = j[i+1:]
	}
}
