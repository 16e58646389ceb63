package portable

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Line is an event about to be written. Its words are put together where they are written, so that one of many costs no memory.
type Line struct {
	Sequence int64
	Type     string

	execution string
	time      time.Time
	member    string // of data that is one member: its name
	value     []byte // and its value, as it stands in the log
	data      []byte // any other
}

// Append appends the event as JSON: the members of Event, in their order.
func (l *Line) Append(dst []byte) []byte {
	dst = append(append(dst, `{"id":"`...), l.execution...)
	dst = strconv.AppendInt(append(dst, ':'), l.Sequence, 10)
	dst = append(append(dst, `","executionId":"`...), l.execution...)
	dst = strconv.AppendInt(append(dst, `","sequence":`...), l.Sequence, 10)
	dst = append(append(dst, `,"type":"`...), l.Type...)
	dst = appendTime(append(dst, `","time":"`...), l.time)
	return append(l.appendData(append(dst, `","data":`...)), '}')
}

func (l *Line) appendData(dst []byte) []byte {
	if l.value == nil {
		return append(dst, l.data...)
	}
	dst = append(append(append(dst, `{"`...), l.member...), `":`...)
	return append(append(dst, l.value...), '}')
}

// Event is the event as an object of its own.
func (l *Line) Event() Event {
	return Event{
		ID: l.execution + ":" + strconv.FormatInt(l.Sequence, 10), ExecutionID: l.execution, Sequence: l.Sequence, Type: l.Type,
		Time: FormatTime(l.time), Data: l.appendData(nil),
	}
}

// Teller tells the entries of one execution. Not safe for concurrent use.
type Teller struct {
	Context
	line     Line
	provider []byte // its id as a JSON string, once it was needed
	parts    [2]part
}

// part is an event whose data is one member, taken as it stands in the log.
type part struct {
	kind, member string
	value        []byte
}

var (
	separator = []byte(`"\n\n"`)
	resumed   = protocol.MustMarshal(protocol.OriginResume)
)

// Each tells the events of one entry whose number is above after, in order; e has numbers. The line that see is handed is good until it returns.
// An error names the entry.
func (t *Teller) Each(e *protocol.Entry, after int64, see func(*Line)) error {
	if e.PortableCount == 0 {
		return nil
	}
	l := &t.line
	*l = Line{Sequence: e.PortableFirst, execution: t.Execution, time: e.Time}
	tell := func() {
		if l.Sequence > after {
			see(l)
		}
		l.Sequence++
	}
	if parts := t.asTheyStand(e); len(parts) == e.PortableCount {
		for i := range parts {
			l.Type, l.member, l.value = parts[i].kind, parts[i].member, parts[i].value
			tell()
		}
		return nil
	}
	b, err := protocol.Decode(e)
	if err != nil {
		return err
	}
	all, err := Events(&t.Context, e, b)
	for i := range all {
		l.Type, l.data = all[i].Type, all[i].Data
		tell()
	}
	return err
}

// asTheyStand tells the entries that nearly every execution has, and of which it may have thousands, without decoding them; none of others.
func (t *Teller) asTheyStand(e *protocol.Entry) []part {
	parts := t.parts[:0]
	switch e.Kind {
	case protocol.KindAssistantDelta:
		text, ok := deltaText(e)
		if !ok {
			return nil
		}
		if e.PortableCount == 2 {
			parts = append(parts, part{"output.text.delta", "text", separator})
		}
		parts = append(parts, part{"output.text.delta", "text", text})
	case protocol.KindTurnAccepted:
		parts = append(parts, part{"run.queued", "providerId", t.providerID()})
	case protocol.KindTurnStarted:
		if origin := protocol.Member(e.Event, "origin"); origin != nil && !bytes.Equal(origin, resumed) {
			parts = append(parts, part{"run.started", "providerId", t.providerID()})
		}
	case protocol.KindTurnCompleted:
		if text := protocol.Member(e.More, "final_output"); text != nil && text[0] == '"' {
			parts = append(parts, part{"output.text.done", "text", text}, part{"run.completed", "finalOutput", text})
		}
	}
	return parts
}

func (t *Teller) providerID() []byte {
	if t.provider == nil {
		t.provider = protocol.MustMarshal(t.Provider)
	}
	return t.provider
}

// deltaText finds the text of a piece of an answer, as the JSON string that it is in the entry; false for any other entry.
func deltaText(e *protocol.Entry) (json.RawMessage, bool) {
	const member = `,"text":"`
	if e.PortableCount > 2 || len(e.Event) == 0 || e.Event[len(e.Event)-1] != '}' {
		return nil, false
	}
	i := bytes.Index(e.Event, []byte(member)) // not within a string: there the quotes would be escaped
	if i < 0 || !bytes.HasSuffix(e.Event, []byte(`"}`)) {
		return nil, false
	}
	text := e.Event[i+len(member)-1 : len(e.Event)-1]
	return text, protocol.StringEnd(text, 0) == len(text)
}
