package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// View selects entries of a log by who reads them.
type View uint8

// The views of a log.
const (
	ViewAll     View = iota // every entry
	ViewFacts               // facts only: enough for history and state of ended turns
	ViewDurable             // entries told with a cursor
	ViewTasks               // entries told with a task_cursor
)

// Entry is one item of a session's log, as stored.
type Entry struct {
	Seq   Seq
	Turn  TurnID // "" for session-level and task-level entries
	Kind  Kind
	Time  time.Time       // UTC, microseconds, never going back within a turn
	Event json.RawMessage // the rind v2 event object exactly as told; nil where Kind is not told
	More  json.RawMessage // versioned JSON of what Event does not show; nil for none

	// Portable numbers (docs/protocol/portable-2026-09-02.md section 5): the entry is the events PortableFirst …
	// PortableFirst+PortableCount-1 of its turn. With PortableCount 0, PortableFirst is the number the next event will get.
	PortableFirst int64
	PortableCount int
}

// Told reports how rind v2 shows e. An entry whose Event is nil is not told, whatever its kind says.
func (e *Entry) Told() Durability {
	if e.Event == nil {
		return NotTold
	}
	return e.Kind.Info().Told
}

// Class returns the class of e's kind.
func (e *Entry) Class() Class { return e.Kind.Info().Class }

// In reports whether e belongs to v.
func (e *Entry) In(v View) bool {
	switch v {
	case ViewFacts:
		return e.Class() == Fact
	case ViewDurable:
		return e.Told() == Durable
	case ViewTasks:
		return e.Told() == DurableTask
	default:
		return true
	}
}

// Size returns about how many bytes e holds in memory.
func (e *Entry) Size() int { return len(e.Event) + len(e.More) + 128 }

// Body is the content of an entry: the fields of its event (struct tags) and what Event does not show.
type Body interface {
	Kind() Kind
	told() bool // false: this body has no event, though its kind may have
	more() any  // pointer to the struct stored as More, nil for none
}

// Head is what every event object starts with.
type Head struct {
	Time    time.Time
	EventID string
	Session SessionID
	Turn    TurnID
}

// moreOpen opens every More with the version of its members, for the day one changes meaning: Decode then upcasts older
// ones. Event objects are never rewritten.
const moreOpen = `{"v":1`

// Encode fills Kind, Time, Event and More of an entry of turn h.Turn holding b.
// It fails only when b holds raw JSON that is not valid.
func Encode(h Head, b Body) (Entry, error) {
	e := Entry{Turn: h.Turn, Kind: b.Kind(), Time: h.Time}
	info := e.Kind.Info()
	x := encoders.Get().(*encoder)
	defer x.release()
	if info.Told != NotTold && b.told() {
		x.head(info.Name, h)
		if err := x.fields(b); err != nil {
			return Entry{}, fmt.Errorf("encode event %s: %w", info.Name, err)
		}
		e.Event = x.take()
	}
	if m := b.more(); m != nil {
		x.text = append(x.text, moreOpen...)
		if err := x.fields(m); err != nil {
			return Entry{}, fmt.Errorf("encode %s: %w", info.Name, err)
		}
		if len(x.text) > len(moreOpen)+1 { // something beside the version
			e.More = x.take()
		}
	}
	return e, nil
}

// head begins an event object.
func (e *encoder) head(name string, h Head) {
	dst := append(e.text, `{"type":"`...)
	dst = append(dst, name...)
	dst = append(dst, `","ts":"`...)
	dst = h.Time.UTC().AppendFormat(dst, TimeForm)
	dst = append(dst, `","event_id":"`...)
	dst = append(dst, h.EventID...)
	dst = append(dst, `","session_id":"`...)
	dst = append(dst, h.Session...)
	dst = append(dst, `","turn_id":"`...)
	dst = append(dst, h.Turn...)
	e.text = append(dst, '"')
}

// fields adds the members of v, which marshals to an object, to the object that was begun and closes it.
func (e *encoder) fields(v any) error {
	if t, ok := v.(interface{ appendFast([]byte) []byte }); ok {
		e.text = append(t.appendFast(e.text), '}')
		return nil
	}
	open := len(e.text)
	if err := e.encode(v); err != nil {
		return err
	}
	if object := e.text[open:]; len(object) > 2 {
		object[0] = ',' // its members go on behind those that are there
	} else {
		e.text = append(e.text[:open], '}')
	}
	return nil
}

// Decode reads the body of e back. It fails with an error naming the entry when the row is damaged; an unknown kind gives
// a nil Body and no error.
func Decode(e *Entry) (Body, error) {
	if !e.Kind.Known() {
		return nil, nil
	}
	b := Catalogue[e.Kind].New()
	if e.Event != nil {
		if err := json.Unmarshal(e.Event, b); err != nil {
			return nil, fmt.Errorf("entry %d (%s): event: %w", e.Seq, e.Kind, err)
		}
	}
	if m := b.more(); m != nil && e.More != nil {
		if err := json.Unmarshal(e.More, m); err != nil {
			return nil, fmt.Errorf("entry %d (%s): more: %w", e.Seq, e.Kind, err)
		}
	}
	return b, nil
}

// EventID reads the event_id of an encoded event object without decoding the rest; "" when there is none.
func EventID(event json.RawMessage) string {
	return strings.Trim(string(Member(event, "event_id")), `"`)
}

// LooseEvent makes the object of an event that has no entry (docs/protocol/catalogue.md, "Events without an entry"); fields marshals to an
// object, or is nil.
func LooseEvent(name string, h Head, fields any) json.RawMessage {
	x := encoders.Get().(*encoder)
	defer x.release()
	x.head(name, h)
	if fields == nil {
		fields = struct{}{}
	}
	if err := x.fields(fields); err != nil {
		panic("protocol: loose event: " + err.Error()) // fields are structs of ours
	}
	return x.take()
}
