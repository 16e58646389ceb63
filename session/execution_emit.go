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

// Emit tells an event and returns once it is in the log, or, with text, what Say does. An event that must not be emitted fails the execution,
// whatever the provider does with the error. After the end it does nothing and returns an error.
func (x *Execution) Emit(kind string, data json.RawMessage) error {
	if kind == EmitDelta {
		text, bad := deltaText(data)
		if bad == "" {
			return x.Say(text)
		}
		return x.do(func(_ *OpenTurn, done func(error)) { x.violate(bad, done) })
	}
	return x.do(func(_ *OpenTurn, done func(error)) {
		b, bad := x.body(kind, data)
		if bad != "" {
			x.violate(bad, done)
			return
		}
		x.run.s.append(lines(x.Turn, b), func(_ Seq, err error) {
			if err != nil {
				x.run.unsaid = err
			}
			done(err)
		})
	})
}

// do runs f on the session's goroutine while the execution is open, behind what was said before.
func (x *Execution) do(f func(open *OpenTurn, done func(error))) error {
	ch := make(chan error, 1)
	run := x.run
	if !run.s.post(func() {
		if err := run.refusal(); err != nil {
			ch <- err
			return
		}
		f(run.s.next.turn(x.Turn), func(err error) { ch <- err })
	}) {
		return errTurnGone
	}
	return <-ch
}

// violate ends the execution because of what its provider did.
func (x *Execution) violate(text string, done func(error)) {
	x.run.fault = executionFault(text)
	x.run.cancel(x.run.fault)
	x.run.say.refuse(x.run.fault)
	done(x.run.fault)
}

// badData says what is wrong with the data of any event; "" for nothing.
func badData(data json.RawMessage) string {
	if len(data) > maxEventBytes || protocol.Deeper([]byte(data), 256) || !json.Valid(data) || data[0] != '{' {
		return "Provider emitted invalid JSON event data"
	}
	return ""
}

// deltaText is the text of a delta, or what is wrong with it.
func deltaText(data json.RawMessage) (text, bad string) {
	if bad := badData(data); bad != "" {
		return "", bad
	}
	text, ok := protocol.Text(protocol.Member(data, "text"))
	if !ok {
		return "", "Provider emitted an invalid text delta"
	}
	return text, ""
}

// artifact is a descriptor as it is kept.
type artifact struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	MediaType string          `json:"mediaType"`
	URI       string          `json:"uri,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// readArtifact reads a descriptor; false when it is none: a member that is null is not absent, and one in another case is another one.
func readArtifact(data json.RawMessage) (a artifact, ok bool) {
	full := func(to *string, v json.RawMessage) bool {
		*to, ok = protocol.Text(v)
		return ok && *to != ""
	}
	for name, v := range protocol.Members(data) {
		fits := true
		switch string(name) {
		case "id":
			fits = full(&a.ID, v)
		case "name":
			fits = full(&a.Name, v)
		case "mediaType":
			fits = full(&a.MediaType, v)
		case "uri":
			fits = full(&a.URI, v)
		case "metadata":
			a.Metadata, fits = v, protocol.IsObject(v)
		}
		if !fits {
			return a, false
		}
	}
	return a, a.ID != "" && a.Name != "" && a.MediaType != ""
}

// body makes the entry of an event that is no text, or says what is wrong with it.
func (x *Execution) body(kind string, data json.RawMessage) (protocol.Body, string) {
	if kind != EmitArtifact && kind != EmitEvent {
		return nil, "Provider emitted a reserved or unknown event type"
	}
	if bad := badData(data); bad != "" {
		return nil, bad
	}
	if kind == EmitArtifact {
		d, ok := readArtifact(data)
		if !ok {
			return nil, "Provider emitted an invalid artifact descriptor"
		}
		if x.run.ids[d.ID] {
			return nil, "Provider emitted duplicate artifact id: " + protocol.Prefix(d.ID, 200)
		}
		x.run.ids[d.ID] = true
		b := &protocol.ArtifactCreated{}
		b.More.Artifact = protocol.MustMarshal(d)
		return b, ""
	}
	b := &protocol.ProviderEvent{}
	b.More.Data = data
	return b, ""
}
