package dispatcher

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// follow begins to follow a session from where it stands, unless the connection does already. The cursor and the doorbell are set at one
// point of the log, ahead of whatever is asked of the session next. Whether it is followed is asked there too: what was read before this and is
// not done yet may be about to follow it, or to end that.
func (c *Conn) follow(s *session.Session) {
	s.Inspect(func(v *session.View) {
		if c.following(s.ID) {
			return
		}
		ref, err := c.d.cfg.Sessions.Open(context.Background(), s.ID)
		if err != nil {
			return // it is being deleted: there is nothing to follow
		}
		f := c.newStream(ref, c.bell(v), v.Head)
		if t := v.Serial; t != nil {
			message, text := v.OpenMessage()
			f.teller.Resume(t.ID, message, protocol.CharLen(text))
		}
		c.out.Follow(string(s.ID), f, nil)
	})
}

func (c *Conn) newStream(ref *session.Session, bell *session.Follower, cursor session.Seq) *stream {
	return &stream{Cursor: outlet.Cursor{Session: ref, Bell: bell, At: cursor}, out: c.out, teller: rindv2.Teller{Session: ref.ID}}
}

func (c *Conn) following(id session.SessionID) bool { return c.out.Stream(string(id)) != nil }

// followAfter makes a follower that is told the durable events behind a cursor, the open message's text in one piece, and then goes live.
// From behind the end it goes live at once. Runs on the session's goroutine.
func (c *Conn) followAfter(ref *session.Session, v *session.View, after session.Seq) *stream {
	f := c.newStream(ref, c.bell(v), min(after, v.Head))
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
	return v.Follow(c.out.Ring, func(event json.RawMessage) {
		c.out.event(protocol.Envelope{Session: id, Event: event})
	}, func() { c.discarded(id) })
}

// discarded tells that a session is gone.
func (c *Conn) discarded(id session.SessionID) {
	go func() { // not on the session's goroutine, which ends with this
		c.out.Unfollow(string(id))
		c.mu.Lock()
		if c.current != nil && c.current.ID == id {
			c.lostCurrent = id
			c.current = nil
		}
		c.mu.Unlock()
		c.out.event(protocol.Envelope{Session: id, Event: c.d.loose("session_discarded", id, nil)})
	}()
}

// subscribed lists the sessions followed, sorted.
func (c *Conn) subscribed() []session.SessionID {
	ids := []session.SessionID{}
	for _, key := range c.out.Streams() {
		if _, ok := isWatch(key); !ok {
			ids = append(ids, session.SessionID(key))
		}
	}
	slices.Sort(ids)
	return ids
}

// loose makes an event without an entry.
func (d *RuntimeDispatcher) loose(name string, id session.SessionID, fields any) json.RawMessage {
	return protocol.LooseEvent(name, protocol.Head{Time: d.cfg.Now().UTC(), EventID: protocol.RandomIDs{}.Hex32(), Session: id}, fields)
}
