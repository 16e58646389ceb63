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
	text      []byte // of output.text.delta: the JSON string, as it stands in the log
	data      []byte // of any other event
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
	if l.text != nil {
		return append(append(append(dst, `{"text":`...), l.text...), '}')
	}
	return append(dst, l.data...)
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
	line Line
}

var separator = []byte(`"\n\n"`)

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
	if text, ok := deltaText(e); ok { // most entries by far: the text is taken as it is written
		l.Type = "output.text.delta"
		if e.PortableCount == 2 {
			l.text = separator
			tell()
		}
		l.text = text
		tell()
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

// deltaText finds the text of a piece of an answer, as the JSON string that it is in the entry; false for any other entry.
func deltaText(e *protocol.Entry) (json.RawMessage, bool) {
	const member = `,"text":"`
	if e.Kind != protocol.KindAssistantDelta || e.PortableCount > 2 || len(e.Event) == 0 || e.Event[len(e.Event)-1] != '}' {
		return nil, false
	}
	i := bytes.Index(e.Event, []byte(member)) // not within a string: there the quotes would be escaped
	if i < 0 || !bytes.HasSuffix(e.Event, []byte(`"}`)) {
		return nil, false
	}
	text := e.Event[i+len(member)-1 : len(e.Event)-1]
	return text, endOf(text) == len(text)
}

// endOf returns where the JSON string that b begins with ends; 0 when it does not.
func endOf(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}
