package acpagent

import (
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
)

// message is what a child is saying: a thought, and the words behind it.
type message struct {
	id      string // ours; "" while nothing is being said
	theirs  string // the child's id of its newest chunk
	kind    string // likewise
	thought strings.Builder
	text    strings.Builder
}

// goesOn reports whether a chunk is part of the message. A thought after words begins anew; words after a thought go with it.
func (m *message) goesOn(u *acp.HostUpdate) bool {
	switch {
	case m.id == "":
		return false
	case m.kind != u.Kind:
		return m.kind == acp.ThoughtChunk
	}
	return u.MessageID == m.theirs || u.MessageID == "" || m.theirs == ""
}

// bodies are the facts of a message that was said.
func (m *message) bodies(provider string) []protocol.Body {
	var all []protocol.Body
	if m.thought.Len() > 0 {
		r := &protocol.ReasoningCompleted{Content: m.thought.String()}
		r.ContentChars = protocol.CharLen(r.Content)
		r.More.MessageID, r.More.Provider = m.id, provider
		all = append(all, r)
	}
	if m.text.Len() > 0 {
		b := &protocol.AssistantMessageCompleted{Content: m.text.String(), MessageID: m.id}
		b.ContentChars = protocol.CharLen(b.Content)
		all = append(all, b)
	}
	return all
}

// chunk takes a piece of a message or of a thought. k.mu is held.
func (k *talk) chunk(u *acp.HostUpdate) {
	b := acp.ReadHostBlock(u.Content)
	if !b.Plain {
		k.event(u)
	}
	if b.Text == "" {
		return
	}
	m := &k.message
	if !m.goesOn(u) {
		k.flush()
		m.id = k.t.NewID()
	}
	m.theirs, m.kind = u.MessageID, u.Kind
	if u.Kind == acp.ThoughtChunk {
		k.c.seenTo(acp.ThoughtChunk)
		m.thought.WriteString(b.Text)
		k.t.Think(m.id, b.Text)
		return
	}
	m.text.WriteString(b.Text)
	k.t.Say(m.id, b.Text)
}

// flush closes the message that is being said, and records bodies behind it in the same transaction. k.mu is held.
func (k *talk) flush(bodies ...protocol.Body) {
	said := k.message.bodies(k.c.spec.Provider)
	if k.message.id != "" {
		k.step = k.message.id
	}
	k.message = message{}
	k.record(append(said, bodies...)...)
}

// pause closes the message that is being said.
func (k *talk) pause() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flush()
}
