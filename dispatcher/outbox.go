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
		Sink: sink, Answering: c.requests.Answering, Answered: c.requests.Answered,
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

// encode is the line of an answer.
func (o *Outbox) encode(r protocol.Reply) []byte {
	line, err := rindv2.AppendReply(nil, o.conn.envelope(), r)
	if err != nil {
		line, _ = rindv2.AppendReply(nil, o.conn.envelope(), protocol.Reply{ID: r.ID, Err: o.conn.d.internal(err)})
	}
	return line
}

// reply hands over an answer.
func (o *Outbox) reply(r protocol.Reply, id string) { o.line(o.encode(r), id) }

// line hands over an encoded message that is no event: an answer, or with id "" anything else.
func (o *Outbox) line(line []byte, id string) { o.Line(o.framed(nil, line), id) }

// event hands over an event that has no entry. It gets its number when it is written.
func (o *Outbox) event(e protocol.Envelope) {
	o.Write(func(buf []byte) []byte { return o.appendEvent(buf, &e) })
}

// answer is what writes a held answer. reply is asked for it with the number of the last event line before.
func (o *Outbox) answer(reply func(lastSequence int64) protocol.Reply) func([]byte, outlet.Stream) []byte {
	return func(buf []byte, _ outlet.Stream) []byte { return o.framed(buf, o.encode(reply(o.seq))) }
}

func (o *Outbox) framed(buf, line []byte) []byte {
	_, how := o.conn.form()
	return frame.Append(buf, how, line)
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
