package acp

import (
	"io"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// outbox is a connection's outlet in the words of ACP. Its goroutine is the outlet's.
type outbox struct {
	*outlet.Outlet
	conn *Conn
	told []acp.Told // of the page being written; owned by the goroutine
}

func newOutbox(c *Conn, sink io.Writer) *outbox {
	o := &outbox{conn: c}
	o.Outlet = outlet.New(outlet.Options{
		Sink: sink, Frame: o.frame, Told: c.d.wire, Answering: c.requests.Answering, Answered: c.requests.Answered,
		Lost:   func(err error) { c.d.cfg.Log.Info("connection lost", "err", err) },
		Unread: o.unread,
	})
	return o
}

// unread says that a session's log could not be read. The client of one that stays so is told: it may load the session when that works again.
func (o *outbox) unread(key string, err error, last bool) {
	o.conn.d.cfg.Log.Error("read log", "session", key, "err", err, "given_up", last)
	if last && o.conn.clientCaps().Notices {
		o.update(session.SessionID(key), acp.Notice("error",
			"The log of this session cannot be read; its updates are not followed any more. Run rind doctor, then load it again."))
	}
}

// frame is the line of an answer.
func (o *outbox) frame(r protocol.Reply) []byte {
	line, err := acp.AppendReply(nil, r)
	if err != nil {
		line, _ = acp.AppendReply(nil, protocol.Reply{ID: r.ID, Err: o.conn.d.internal(err)})
	}
	return append(line, '\n')
}

// update hands over an update that stands in no log.
func (o *outbox) update(id session.SessionID, update []byte) { o.Line(updateLine(id, update), "") }

// updateLine is the line of an update without a cursor.
func updateLine(id session.SessionID, update []byte) []byte {
	return append(acp.AppendUpdate(nil, id, update, 0), '\n')
}
