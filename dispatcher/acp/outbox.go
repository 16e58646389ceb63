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
		Sink: sink, Answering: c.requests.Answering, Answered: c.requests.Answered,
		Lost:   func(err error) { c.d.cfg.Log.Info("connection lost", "err", err) },
		Unread: o.unread,
	})
	return o
}

// unread says that a session's log could not be read. The client of one that stays so is told: it may load the session when that works again.
func (o *outbox) unread(key string, err error, last bool) {
	o.conn.d.cfg.Log.Error("read log", "session", key, "err", err, "given_up", last)
	if last && o.conn.clientCaps().Notices {
		o.lines(append(acp.AppendUpdate(nil, session.SessionID(key), acp.Notice("error",
			"The log of this session cannot be read; its updates are not followed any more. Run rind doctor, then load it again."), 0), '\n'), "")
	}
}

// encode is the line of an answer.
func (o *outbox) encode(r protocol.Reply) []byte {
	line, err := acp.AppendReply(nil, r)
	if err != nil {
		line, _ = acp.AppendReply(nil, protocol.Reply{ID: r.ID, Err: o.conn.d.internal(err)})
	}
	return append(line, '\n')
}

// reply hands over an answer.
func (o *outbox) reply(r protocol.Reply, id string) { o.Line(o.encode(r), id) }

// lines hands over whole lines; id is that of the request they answer, "" for none.
func (o *outbox) lines(lines []byte, id string) { o.Line(lines, id) }

// answer is what writes a held answer, behind lead.
func (o *outbox) answer(lead []byte, build func(f *follow) protocol.Reply) func([]byte, outlet.Stream) []byte {
	return func(buf []byte, s outlet.Stream) []byte {
		f, _ := s.(*follow)
		return append(append(buf, lead...), o.encode(build(f))...)
	}
}
