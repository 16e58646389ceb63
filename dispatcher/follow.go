package dispatcher

import (
	"context"
	"encoding/json"
	"sort"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// follow begins to follow a session from where it stands, unless the connection does already. The cursor and the doorbell are set at one
// point of the log, ahead of whatever is asked of the session next.
func (c *Conn) follow(s *session.Session) {
	if c.out.following(s.ID) {
		return
	}
	ref, err := c.d.cfg.Sessions.Open(context.Background(), s.ID)
	if err != nil {
		return // it is being deleted: there is nothing to follow
	}
	if !ref.Inspect(func(v *session.View) {
		f := newFollow(ref, c.bell(v), v.Head)
		if t := v.Serial; t != nil {
			message, text := v.OpenMessage()
			f.teller.Resume(t.ID, message, protocol.CharLen(text))
		}
		c.out.add(f)
	}) {
		ref.Close()
	}
}

func newFollow(ref *session.Session, bell *session.Follower, cursor session.Seq) *follow {
	return &follow{s: ref, bell: bell, cursor: cursor, teller: rindv2.Teller{Session: ref.ID}}
}

// followAfter makes a follower that is told the durable events behind a cursor, the open message's text in one piece, and then goes live.
// From behind the end it goes live at once. Runs on the session's goroutine.
func (c *Conn) followAfter(ref *session.Session, v *session.View, after session.Seq) *follow {
	f := newFollow(ref, c.bell(v), min(after, v.Head))
	f.head = v.Head
	if open, ok := v.OpenText(); ok && f.head > 0 {
		f.open = &protocol.Envelope{Session: ref.ID, Turn: open.Turn, Event: open.Event}
		message, text := v.OpenMessage()
		f.teller.Resume(open.Turn, message, protocol.CharLen(text))
	}
	return f
}

// bell registers the connection with a session. Runs on the session's goroutine.
func (c *Conn) bell(v *session.View) *session.Follower {
	id := v.Session.ID
	return v.Follow(c.out.ring, func(event json.RawMessage) {
		c.out.event(protocol.Envelope{Session: id, Event: event})
	}, func() { c.discarded(id) })
}

// discarded tells that a session is gone.
func (c *Conn) discarded(id session.SessionID) {
	go func() { // not on the session's goroutine, which ends with this
		c.out.remove(id)
		c.mu.Lock()
		if c.current != nil && c.current.ID == id {
			c.lostCurrent = id
			c.current = nil
		}
		c.mu.Unlock()
		c.out.event(protocol.Envelope{Session: id, Event: c.d.loose("session_discarded", id, nil)})
	}()
}

// unfollow ends following a session.
func (c *Conn) unfollow(id session.SessionID) bool { return c.out.remove(id) }

// subscribed lists the sessions followed, sorted.
func (c *Conn) subscribed() []session.SessionID {
	c.out.mu.Lock()
	ids := append([]session.SessionID{}, c.out.order...)
	c.out.mu.Unlock()
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	return ids
}

// loose makes an event without an entry.
func (d *RuntimeDispatcher) loose(name string, id session.SessionID, fields any) json.RawMessage {
	return protocol.LooseEvent(name, protocol.Head{Time: d.cfg.Now().UTC(), EventID: protocol.RandomIDs{}.Hex32(), Session: id}, fields)
}
