package dispatcher

import (
	"io"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/frame"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// Outbox is a connection's outlet in the words of rind v2 and its JSON-RPC twin: it numbers the events and encodes them. Its goroutine is the
// outlet's.
type Outbox struct {
	*outlet.Outlet
	conn *Conn

	// Owned by the goroutine.
	seq  int64               // number of the last event line
	told []protocol.Envelope // of the page being written
}

func newOutbox(c *Conn, sink io.Writer) *Outbox {
	o := &Outbox{conn: c}
	o.Outlet = outlet.New(outlet.Options{
		Sink: sink, Frame: o.frame, Told: c.d.wire, Answering: c.requests.Answering, Answered: c.requests.Answered,
		Lost:   func(err error) { c.d.log().Info("connection lost", "err", err) },
		Unread: o.unread,
	})
	return o
}

// unread says that a session's log could not be read. The client of one that stays so is told: it may replay the session when that works again.
func (o *Outbox) unread(key string, err error, last bool) {
	o.conn.d.log().Error("read log", "session", key, "err", err, "given_up", last)
	if !last || !o.conn.showsNotices() {
		return
	}
	if execution, ok := isWatch(key); ok {
		o.event(protocol.Envelope{Event: o.conn.d.loose("notice", "", protocol.Notice{
			Severity: "error", Title: "The log of " + execution + " cannot be read; it is not followed any more. Run rind doctor, then ask for its events.",
		})})
		return
	}
	id := session.SessionID(key)
	o.event(protocol.Envelope{Session: id, Event: o.conn.d.loose("notice", id, protocol.Notice{
		Severity: "error", Title: "The log of this session cannot be read; its events are not followed any more. Run rind doctor, then replay it.",
	})})
}

// frame is the frame of an answer.
func (o *Outbox) frame(r protocol.Reply) []byte {
	env, how := o.conn.form()
	line, err := rindv2.AppendReply(nil, env, r)
	if err != nil {
		line, _ = rindv2.AppendReply(nil, env, protocol.Reply{ID: r.ID, Err: o.conn.d.internal(err)})
	}
	return frame.Append(nil, how, line)
}

// line hands over an encoded message that is neither answer nor event.
func (o *Outbox) line(line []byte) {
	_, how := o.conn.form()
	o.Line(frame.Append(nil, how, line), "")
}

// event hands over an event that has no entry. It gets its number when it is written.
func (o *Outbox) event(e protocol.Envelope) {
	o.Write(func(buf []byte) []byte { return o.appendEvent(buf, &e) })
}

func (o *Outbox) appendEvent(buf []byte, e *protocol.Envelope) []byte {
	env, how := o.conn.form()
	return o.appendFormed(buf, e, env, how)
}

// appendTold encodes what a Teller told.
func (o *Outbox) appendTold(buf []byte) []byte {
	env, how := o.conn.form()
	for i := range o.told {
		buf = o.appendFormed(buf, &o.told[i], env, how)
	}
	clear(o.told) // keeps no text alive
	return buf
}

func (o *Outbox) appendFormed(buf []byte, e *protocol.Envelope, env rindv2.Envelope, how frame.Framing) []byte {
	o.seq++
	e.Sequence = o.seq
	if how == frame.Lines {
		return append(rindv2.AppendEvent(buf, env, e), '\n')
	}
	return frame.Append(buf, how, rindv2.AppendEvent(nil, env, e))
}
