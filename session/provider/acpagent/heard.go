package acpagent

import (
	"encoding/json"
	"fmt"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
)

// backlog is updates that no turn can take yet. It is bounded: what does not fit is counted, and told of with the rest.
type backlog struct {
	kept []json.RawMessage
	lost int
}

const maxBacklog = 1024

func (b *backlog) keep(params json.RawMessage) {
	if len(b.kept) == maxBacklog {
		b.lost++
		return
	}
	b.kept = append(b.kept, append(json.RawMessage(nil), params...)) // its line is read over
}

// take empties it.
func (b *backlog) take() (kept []json.RawMessage, lost int) {
	kept, lost = b.kept, b.lost
	*b = backlog{}
	return kept, lost
}

// lose lets go of what is kept; it counts as lost.
func (b *backlog) lose() { *b = backlog{lost: b.lost + len(b.kept)} }

// lostNote tells that n updates were lost.
func lostNote(n int) protocol.Body {
	return noticeOf("warning", fmt.Sprintf("The agent said more than could be kept while no turn took it: %d of its updates are lost.", n), &acp.HostUpdate{})
}

// lost tells of updates that no turn could take.
func (k *talk) lost(n int) {
	if n > 0 {
		k.t.Note(lostNote(n))
	}
}

// lost tells of updates that came before the session was known and did not fit.
func (c *child) lost(n int) {
	if n == 0 {
		return
	}
	c.host.mu.Lock()
	talk := c.host.talk
	c.host.mu.Unlock()
	if talk == nil {
		c.host.outsideNote(lostNote(n))
		return
	}
	talk.lost(n)
}

// buffers says whether updates of unknown sessions are kept until their session is known.
func (c *child) buffers(on bool) {
	c.mu.Lock()
	c.opening = on
	c.mu.Unlock()
}

// mute says whether what the child says is a replay of what is in our log already.
func (c *child) mute(on bool) {
	c.mu.Lock()
	c.silent = on
	c.mu.Unlock()
}

// Request implements rpc.Peer: it is called on the reading goroutine, in reading order.
func (c *child) Request(req protocol.Request) {
	switch {
	case req.Method == acp.MethodUpdate:
		c.update(req.Params)
		if req.ID != nil {
			c.reply(protocol.Reply{ID: req.ID, Result: object{}})
		}
	case req.Method == acp.MethodCancelRequest:
		c.withdrawn(req.Params)
	case req.ID == nil:
		c.event(req.Method, req.Params)
	default:
		c.asks(req)
	}
}

// update takes one session/update.
func (c *child) update(params json.RawMessage) {
	id, u, ok := acp.ReadHostUpdate(params)
	c.mu.Lock()
	mine := c.self.ID == id && c.self.ID != ""
	switch {
	case c.silent && !lasting(u.Kind):
		c.mu.Unlock()
		return
	case c.opening && !c.opened && (!mine || !c.silent):
		c.early.keep(params)
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.take(id, &u, ok, params)
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

// take hands an update to the turn that is being answered, or keeps it for one of its own.
func (c *child) take(id string, u *acp.HostUpdate, ok bool, params json.RawMessage) {
	if !ok || id != c.session().ID {
		c.event(acp.MethodUpdate, params)
		return
	}
	ho := c.host
	for {
		ho.mu.Lock()
		talk := ho.talk
		if talk == nil && says(u.Kind) {
			if !ho.dropping {
				ho.late.keep(params)
				ho.wake(c)
			}
			ho.mu.Unlock()
			return
		}
		ho.mu.Unlock()
		if talk == nil {
			ho.outside(c, u)
			return
		}
		if talk.update(u) {
			return
		}
		ho.over(talk, false) // its turn has just ended
	}
}

// flushEarly tells what came before the session was known. Called with the talk in place.
func (c *child) flushEarly() {
	c.mu.Lock()
	early, lost := c.early.take()
	c.mu.Unlock()
	c.lost(lost)
	for _, params := range early {
		id, u, ok := acp.ReadHostUpdate(params)
		if ok && id == c.session().ID && sets(u.Kind) { // how it was set before we set it
			c.event(acp.MethodUpdate, params)
			continue
		}
		c.take(id, &u, ok, params)
	}
}

// event keeps what we have no other place for.
func (c *child) event(method string, params json.RawMessage) {
	c.host.mu.Lock()
	talk := c.host.talk
	c.host.mu.Unlock()
	b := providerEvent(c.spec.Provider, method, params)
	if talk != nil {
		talk.t.Note(b)
		return
	}
	c.host.outsideNote(b)
}

func providerEvent(provider, method string, params json.RawMessage) *protocol.ProviderEvent {
	b := &protocol.ProviderEvent{}
	data := object{"provider": provider, "method": method}
	if len(params) > 0 {
		data["params"] = params
	}
	b.More.Data = protocol.MustMarshal(data)
	return b
}

func (ho *host) outsideNote(bodies ...protocol.Body) {
	if ho.hosts.all != nil {
		ho.hosts.all.Outside(ho.id, bodies...)
	}
}

// outside takes what is said of the session while no turn runs.
func (ho *host) outside(c *child, u *acp.HostUpdate) {
	switch u.Kind {
	case acp.CommandsUpdate:
		ho.outsideNote(ho.offers(u.Commands))
	case acp.InfoUpdate:
		ho.retitle(u)
	case acp.OptionsUpdate, acp.ModeUpdate:
		o := c.changed(u)
		if c.isOpen() && ho.hosts.all != nil { // before that the session's settings win
			ho.hosts.all.Adopt(ho.id, o.change(c.spec.Provider))
			ho.learn(c)
		}
	case acp.NoticeUpdate:
		if u.Title != nil && *u.Title != "" {
			ho.outsideNote(noticeOf(u.Severity, *u.Title, u))
		}
	default:
		ho.outsideNote(providerEvent(c.spec.Provider, acp.MethodUpdate, u.Raw))
	}
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
	if u.Title == nil || ho.hosts.all == nil {
		return
	}
	title := oneLine(*u.Title, 200)
	ho.mu.Lock()
	before := ho.title
	ho.title = title
	ho.mu.Unlock()
	ho.hosts.all.Retitle(ho.id, title, before)
}
