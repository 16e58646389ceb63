package acpagent

import (
	"encoding/json"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
)

// This file is the way of an update from the line that was read to the turn that takes it.

// update takes one session/update.
func (c *child) update(params json.RawMessage) {
	id, u, ok := acp.ReadHostUpdate(params)
	switch {
	case c.early(params, u.Kind):
	case !ok || id != c.session().ID:
		c.event(acp.MethodUpdate, params)
	default:
		c.tell(&u, params)
	}
}

// tell hands an update to the turn that is being answered, or keeps it for one of its own.
func (c *child) tell(u *acp.HostUpdate, params json.RawMessage) {
	ho := c.host
	for {
		ho.mu.Lock()
		k := ho.talk
		if k == nil && says(u.Kind) {
			if !ho.dropping {
				ho.late.keep(params, false)
				ho.wake(c)
			}
			ho.mu.Unlock()
			return
		}
		ho.mu.Unlock()
		if k == nil {
			c.outside(u)
			return
		}
		if k.update(u) {
			return
		} // else its turn has just ended
	}
}

// lasting reports whether an update says how things stand, rather than what happens: such hold also in a replay.
func lasting(kind string) bool {
	switch kind {
	case acp.CommandsUpdate, acp.ModeUpdate, acp.OptionsUpdate, acp.InfoUpdate:
		return true
	}
	return false
}

// sets reports whether an update says how the agent is set.
func sets(kind string) bool { return kind == acp.ModeUpdate || kind == acp.OptionsUpdate }

// says reports whether an update is part of an answer: such open a turn of their own where none runs.
func says(kind string) bool {
	switch kind {
	case acp.UsageUpdate, acp.NoticeUpdate, acp.UserChunk:
		return false
	}
	return !lasting(kind)
}

// outside takes what is said of the session while no turn runs.
func (c *child) outside(u *acp.HostUpdate) {
	ho := c.host
	switch {
	case u.Kind == acp.CommandsUpdate:
		ho.hosts.all.Outside(ho.id, ho.offers(u.Commands))
	case u.Kind == acp.InfoUpdate:
		ho.retitle(u)
	case sets(u.Kind):
		ho.hosts.all.Adopt(ho.id, c.changed(u).change(c.spec.Provider))
		ho.learn(c)
	case u.Kind == acp.NoticeUpdate:
		if u.Title != nil && *u.Title != "" {
			ho.hosts.all.Outside(ho.id, noticeOf(u.Severity, *u.Title, u.Raw))
		}
	default:
		ho.hosts.all.Outside(ho.id, c.providerEvent(acp.MethodUpdate, u.Raw))
	}
}

// event keeps what we have no other place for.
func (c *child) event(method string, params json.RawMessage) {
	c.host.note(c.providerEvent(method, params))
}

func (c *child) providerEvent(method string, params json.RawMessage) protocol.Body {
	b := &protocol.ProviderEvent{}
	data := object{"provider": c.spec.Provider, "method": method}
	if len(params) > 0 {
		data["params"] = params
	}
	b.More.Data = protocol.MustMarshal(data)
	return b
}

// noticeOf is a line beside the conversation; raw is what it was made of, as it was sent.
func noticeOf(severity, title string, raw json.RawMessage) protocol.Body {
	b := &protocol.Notice{Severity: severity, Title: oneLine(title, 1000)}
	if b.Severity != "warning" && b.Severity != "error" {
		b.Severity = "info"
	}
	b.More.Data = raw
	return b
}

// offers keeps which commands the agent has, and makes the note of them.
func (ho *host) offers(list json.RawMessage) protocol.Body {
	names := acp.CommandNames(list)
	ho.mu.Lock()
	ho.commands = names
	ho.mu.Unlock()
	b := &protocol.CommandsChanged{}
	b.More.Data = list
	if len(list) == 0 {
		b.More.Data = json.RawMessage("[]")
	}
	return b
}

// retitle gives the session the title the agent has for it.
func (ho *host) retitle(u *acp.HostUpdate) {
	if u.Title == nil {
		return
	}
	title := oneLine(*u.Title, 200)
	ho.mu.Lock()
	before := ho.title
	ho.title = title
	ho.mu.Unlock()
	ho.hosts.all.Retitle(ho.id, title, before)
}
