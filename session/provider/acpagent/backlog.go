package acpagent

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
)

const maxBacklog = 1024

// backlog is the updates that no turn can take yet, in the order they were read. It is bounded: what does not fit is counted, and told of with
// the rest.
type backlog struct {
	kept []heard
	lost int
}

// heard is one update that waits.
type heard struct {
	params json.RawMessage
	early  bool // its child's session was not known yet
}

func (b *backlog) keep(params json.RawMessage, early bool) {
	if len(b.kept) == maxBacklog {
		b.lost++
		return
	}
	b.kept = append(b.kept, heard{slices.Clone(params), early}) // its line is read over
}

// take empties it.
func (b *backlog) take() backlog {
	all := *b
	*b = backlog{}
	return all
}

// forgetEarly lets go of what a child said that was never opened.
func (b *backlog) forgetEarly() {
	b.kept = slices.DeleteFunc(b.kept, func(h heard) bool { return h.early })
}

// lose lets go of what is kept; it counts as lost.
func (b *backlog) lose() { *b = backlog{lost: b.lost + len(b.kept)} }

func (b *backlog) empty() bool { return len(b.kept) == 0 && b.lost == 0 }

// retell tells what waited.
func (k *talk) retell(b *backlog) {
	if b.lost > 0 {
		k.t.Note(noticeOf("warning", fmt.Sprintf("The agent said more than could be kept while no turn took it: %d of its updates are lost.", b.lost), nil))
	}
	mine := k.c.session().ID
	for _, h := range b.kept {
		id, u, ok := acp.ReadHostUpdate(h.params)
		if h.early && (!ok || id != mine || sets(u.Kind)) { // of another session, or how it was set before we set it
			k.t.Note(k.c.providerEvent(acp.MethodUpdate, h.params))
			continue
		}
		k.update(&u)
	}
}

// early keeps an update of a child that is not open for the turn that opens it; false for one that is open.
func (c *child) early(params json.RawMessage, kind string) bool {
	ho := c.host
	ho.mu.Lock()
	defer ho.mu.Unlock()
	if c.phase == phaseOpening || c.phase == phaseReplaying && lasting(kind) {
		ho.late.keep(params, true)
	}
	return c.phase != phaseOpen
}

// waiting is what waits for a turn.
func (ho *host) waiting() []heard {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	return slices.Clone(ho.late.kept)
}

// begin makes k the turn that is being answered, and tells it first what waited for it.
func (ho *host) begin(k *talk) {
	for {
		ho.mu.Lock()
		late := ho.late.take()
		if late.empty() {
			ho.talk, ho.dropping = k, false
			ho.mu.Unlock()
			return
		}
		ho.mu.Unlock()
		k.retell(&late)
	}
}

// over ends the turn that is being answered. dropping: what comes late is not told.
func (ho *host) over(dropping bool) {
	ho.mu.Lock()
	ho.talk, ho.dropping = nil, dropping
	ho.mu.Unlock()
}

// current is the turn that is being answered; nil for none.
func (ho *host) current() *talk {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	return ho.talk
}

// note records what belongs to the turn that is being answered, or to none.
func (ho *host) note(b protocol.Body) {
	if k := ho.current(); k != nil {
		k.t.Note(b)
		return
	}
	ho.hosts.all.Outside(ho.id, b)
}
