package session

import (
	"encoding/json"

	"github.com/rind-dev/rind/protocol"
)

// Execution is a running execution, as its provider sees it.
type Execution struct {
	Turn    TurnID
	Session SessionID
	Input   string
	Config  json.RawMessage

	run *besideRun
}

// Types of events a provider may emit.
const (
	EmitDelta    = "output.text.delta"
	EmitArtifact = "artifact.created"
	EmitEvent    = "provider.event"
)

const maxEventBytes = 8 << 20

// Emit tells an event and returns once it is in the log; text may be on its way there, as long as not much of it is, and is told when it has arrived.
// What could not be stored fails a later Emit, or the execution. An event that must not be emitted fails the execution, whatever the provider does
// with the error. After the end it does nothing and returns an error.
func (x *Execution) Emit(kind string, data json.RawMessage) error {
	return x.do(func(_ *OpenTurn, done func(error)) {
		b, bad := x.body(kind, data)
		if bad != "" {
			x.violate(bad, done)
			return
		}
		run := x.run
		size := len(data) + 256 // and what is stored around it
		run.ahead += size
		wait := kind != EmitDelta || run.ahead > emitAhead
		run.s.append(lines(x.Turn, b), func(_ Seq, err error) {
			run.ahead -= size
			if err != nil {
				run.unsaid = err
			}
			if wait {
				done(err)
			}
		})
		if !wait { // text goes to the disk in the order it was said, several pieces at a time
			done(nil)
		}
	})
}

// emitAhead bounds the events of an execution that are on their way to the disk, in bytes, before the next piece of text waits.
const emitAhead = 64 << 10

// do runs f on the session's goroutine while the execution is open.
func (x *Execution) do(f func(open *OpenTurn, done func(error))) error {
	ch := make(chan error, 1)
	run := x.run
	if !run.s.post(func() {
		open := run.s.next.turn(x.Turn)
		switch {
		case open == nil || run.stage >= stageEnding:
			ch <- errTurnGone
		case run.fault != nil:
			ch <- run.fault
		case run.unsaid != nil: // what comes behind a gap is not told
			ch <- run.unsaid
		default:
			f(open, func(err error) { ch <- err })
		}
	}) {
		return errTurnGone
	}
	return <-ch
}

// violate ends the execution because of what its provider did.
func (x *Execution) violate(text string, done func(error)) {
	x.run.fault = executionFault(text)
	x.run.cancel(x.run.fault)
	done(x.run.fault)
}

func (x *Execution) body(kind string, data json.RawMessage) (protocol.Body, string) {
	switch {
	case kind != EmitDelta && kind != EmitArtifact && kind != EmitEvent:
		return nil, "Provider emitted a reserved or unknown event type"
	case len(data) > maxEventBytes || protocol.Deeper([]byte(data), 256) || !json.Valid(data) || data[0] != '{':
		return nil, "Provider emitted invalid JSON event data"
	}
	switch kind {
	case EmitDelta:
		var d struct {
			Text *string `json:"text"`
		}
		if json.Unmarshal(data, &d) != nil || d.Text == nil {
			return nil, "Provider emitted an invalid text delta"
		}
		b := &protocol.AssistantDelta{Text: *d.Text}
		b.More.MessageID, b.More.Offset = x.run.message, x.run.chars
		x.run.text = append(x.run.text, *d.Text...)
		x.run.chars += protocol.CharLen(*d.Text)
		return b, ""
	case EmitArtifact:
		var d struct {
			ID        *string          `json:"id"`
			Name      *string          `json:"name"`
			MediaType *string          `json:"mediaType"`
			URI       *string          `json:"uri,omitempty"`
			Metadata  *json.RawMessage `json:"metadata,omitempty"`
		}
		full := func(s *string) bool { return s != nil && *s != "" }
		if json.Unmarshal(data, &d) != nil || !full(d.ID) || !full(d.Name) || !full(d.MediaType) || d.URI != nil && *d.URI == "" ||
			d.Metadata != nil && (*d.Metadata)[0] != '{' {
			return nil, "Provider emitted an invalid artifact descriptor"
		}
		if x.run.ids[*d.ID] {
			return nil, "Provider emitted duplicate artifact id: " + protocol.Prefix(*d.ID, 200)
		}
		x.run.ids[*d.ID] = true
		b := &protocol.ArtifactCreated{}
		b.More.Artifact = protocol.MustMarshal(d)
		return b, ""
	}
	b := &protocol.ProviderEvent{}
	b.More.Data = data
	return b, ""
}
