package acp

import (
	"context"
	"io"
	"sync"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

const (
	batchBytes   = 256 << 10 // of one write
	pageEntries  = 256       // read from a log at once
	mergeBeyond  = 256       // entries behind: text is told in larger pieces
	pauseReplies = 1024      // unwritten answers at which reading pauses
	pauseBytes   = 1 << 20
)

// outbox is the only writer of a connection. Answers and calls are handed over; everything else it reads from the logs of the sessions that are
// open, when there is room on the wire: a client that does not read costs a cursor per session. One goroutine, started by Serve; it ends when it
// is closed and drained, or when a write fails.
type outbox struct {
	conn *Conn
	sink io.Writer

	mu      sync.Mutex // guards the fields below; never held over I/O
	items   []item
	holds   []*hold
	follows map[session.SessionID]*follow
	order   []session.SessionID // of follows, so that they take turns
	replies int                 // unwritten
	bytes   int                 // of them
	room    chan struct{}       // closed when reading may go on; nil while it may
	closing bool
	wake    chan struct{}
	done    chan struct{}

	// Owned by the goroutine.
	told  []acp.Told
	ids   []string // answered by the batch that is being written
	size  int      // of those answers
	after []func() // to be done once the batch is written
}

// item is a line that is ready.
type item struct {
	line []byte // with its newline
	id   string // of the request answered; "" for none
}

// hold is an answer that belongs to a place in a session's log: it is written once the connection was told everything up to seq, and before
// anything behind it.
type hold struct {
	session session.SessionID
	seq     session.Seq
	replay  bool // behind the replay that ends there
	id      string
	lead    []byte // lines before the answer
	build   func(f *follow) protocol.Reply
	written func() // on the outbox's goroutine, once it is on the wire; may be nil
}

// follow is a cursor in the log of one session.
type follow struct {
	s      *session.Session // a reference
	bell   *session.Follower
	cursor session.Seq
	teller *acp.Teller // owned by the outbox's goroutine
	// A replay: what is told up to head is history.
	head session.Seq
	open acp.Open
	late bool // the answer went before: what is open is asked at the replay's end
	asks []*acp.Ask
	// join are the actions that are open where the client joins, to be asked once.
	join []*acp.Ask
	// greeting are lines that go before anything live; guarded by outbox.mu.
	greeting []byte
}

func newOutbox(c *Conn, sink io.Writer) *outbox {
	return &outbox{conn: c, sink: sink, follows: map[session.SessionID]*follow{}, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

func (o *outbox) ring() {
	select {
	case o.wake <- struct{}{}:
	default:
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
func (o *outbox) reply(r protocol.Reply, id string) { o.lines(o.encode(r), id) }

// lines hands over whole lines; id is that of the request they answer, "" for none.
func (o *outbox) lines(lines []byte, id string) {
	o.mu.Lock()
	o.items = append(o.items, item{lines, id})
	o.count(1, len(lines))
	o.mu.Unlock()
	o.ring()
}

// count keeps account of what is unwritten; o.mu is held.
func (o *outbox) count(n, bytes int) {
	o.replies += n
	o.bytes += bytes
	full := o.replies >= pauseReplies || o.bytes >= pauseBytes
	switch {
	case full && o.room == nil:
		o.room = make(chan struct{})
	case !full && o.room != nil:
		close(o.room)
		o.room = nil
	}
}

// pause blocks while too many answers are unwritten.
func (o *outbox) pause() {
	o.mu.Lock()
	room := o.room
	o.mu.Unlock()
	if room == nil {
		return
	}
	select {
	case <-room:
	case <-o.done:
	}
}

// hold registers an answer at a place of a log.
func (o *outbox) hold(h *hold) {
	o.mu.Lock()
	o.holds = append(o.holds, h)
	o.mu.Unlock()
	o.ring()
}

// add begins to follow a session, in the place of following it so far. h, where there is one, is registered with it.
func (o *outbox) add(f *follow, h *hold) {
	id := f.s.ID
	o.mu.Lock()
	old := o.follows[id]
	if old == nil {
		o.order = append(o.order, id)
	}
	o.follows[id] = f
	if h != nil {
		o.holds = append(o.holds, h)
	}
	o.mu.Unlock()
	if old != nil {
		old.bell.Stop()
		old.s.Close()
	}
	o.ring()
}

// remove ends following a session.
func (o *outbox) remove(id session.SessionID) {
	o.mu.Lock()
	f := o.follows[id]
	delete(o.follows, id)
	for i, other := range o.order {
		if other == id {
			o.order = append(o.order[:i:i], o.order[i+1:]...)
			break
		}
	}
	o.mu.Unlock()
	if f != nil {
		f.bell.Stop()
		f.s.Close()
	}
	o.ring()
}

// close lets the goroutine end once everything due is written.
func (o *outbox) close() {
	o.mu.Lock()
	o.closing = true
	o.mu.Unlock()
	o.ring()
}

// run is the goroutine.
func (o *outbox) run() {
	defer close(o.done)
	var buf []byte
	for {
		if cap(buf) > 4*batchBytes { // one huge line must not keep its memory
			buf = nil
		}
		var more bool
		buf, more = o.fill(buf[:0])
		if len(buf) > 0 {
			o.conn.leave(o.ids)
			if _, err := o.sink.Write(buf); err != nil {
				o.fail(err)
				return
			}
			o.written()
		}
		if more {
			continue
		}
		o.mu.Lock()
		end := o.closing && len(o.items) == 0 && len(o.holds) == 0
		o.mu.Unlock()
		if end {
			return
		}
		<-o.wake
	}
}

// fail ends the connection: the client is gone, or a torn line lies on the wire.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	o.items, o.holds = nil, nil
	o.mu.Unlock()
	o.conn.d.cfg.Log.Info("connection lost", "err", err)
	o.conn.lost()
}

func (o *outbox) written() {
	o.mu.Lock()
	o.count(-len(o.ids), -o.size)
	o.mu.Unlock()
	o.ids, o.size = nil, 0
	after := o.after
	o.after = nil
	for _, f := range after {
		f()
	}
}

// fill encodes what is to be written next: what was handed over, a page of each followed log, the answers whose place was reached.
func (o *outbox) fill(buf []byte) (_ []byte, more bool) {
	o.mu.Lock()
	items := o.items
	o.items = nil
	order := append([]session.SessionID(nil), o.order...)
	o.mu.Unlock()
	for i, it := range items {
		buf = append(buf, it.line...)
		o.size += len(it.line)
		o.ids = append(o.ids, it.id)
		if len(buf) >= batchBytes && i+1 < len(items) {
			o.mu.Lock()
			o.items = append(items[i+1:len(items):len(items)], o.items...)
			o.mu.Unlock()
			return buf, true
		}
	}
	for _, id := range order {
		var again bool
		buf, again = o.page(buf, id)
		more = more || again
		if len(buf) >= batchBytes {
			more = true
			break
		}
	}
	before := len(buf)
	buf = o.answers(buf)
	return buf, more || len(buf) > before
}

// limit is how far a session may be told, because of holds: an answer separates what is of its turn from what comes next. -1 for no limit.
// o.mu is held.
func (o *outbox) limit(id session.SessionID) session.Seq {
	var most session.Seq = -1
	for _, h := range o.holds {
		if h.session == id && (most < 0 || h.seq < most) {
			most = h.seq
		}
	}
	return most
}

// page tells the next entries of one session.
func (o *outbox) page(buf []byte, id session.SessionID) (_ []byte, more bool) {
	o.mu.Lock()
	f := o.follows[id]
	o.mu.Unlock()
	if f == nil {
		return buf, false
	}
	entries, head, err := f.s.Read(context.Background(), f.cursor, pageEntries)
	if err != nil {
		o.conn.d.cfg.Log.Error("read log", "session", id, "err", err)
		o.remove(id)
		return buf, false
	}
	o.mu.Lock()
	limit := o.limit(id) // after reading: what was read behind it was stored after the hold was registered
	o.mu.Unlock()
	if f.head > 0 {
		limit = f.head
	}
	n, used := 0, len(buf)
	for n < len(entries) && (limit < 0 || entries[n].Seq <= limit) && used < batchBytes {
		used += entries[n].Size()
		n++
	}
	o.told = o.told[:0]
	if f.join != nil {
		o.told, f.join = f.teller.Join(o.told, f.join), nil
	}
	o.told = f.teller.Tell(o.told, entries[:n], head-f.cursor > mergeBeyond)
	if n > 0 {
		o.mu.Lock()
		f.cursor = entries[n-1].Seq
		o.mu.Unlock()
	}
	ended := f.head > 0 && (f.cursor >= f.head || n == 0 && len(entries) == 0 || n < len(entries) && entries[n].Seq > f.head)
	var asks []*acp.Ask
	if ended {
		o.told, asks = f.teller.EndReplay(o.told, f.open)
	}
	buf = o.appendTold(buf, f)
	if ended {
		o.mu.Lock()
		f.cursor, f.head = max(f.cursor, f.head), 0
		f.asks = asks
		o.mu.Unlock()
		if f.late {
			o.askAll(f)
		}
		return buf, true
	}
	return buf, n > 0 && f.cursor < head
}

// askAll puts what is open to the client, once.
func (o *outbox) askAll(f *follow) {
	for _, a := range f.asks {
		o.conn.ask(f, a)
	}
	f.asks = nil
}

// greet keeps the lines that follow the answer to a replay, before anything live.
func (o *outbox) greet(id session.SessionID, lines []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f := o.follows[id]; f != nil {
		f.greeting = lines
	}
}

// greeted hands the lines kept over, unless they went before.
func (o *outbox) greeted(id session.SessionID) {
	var lines []byte
	o.mu.Lock()
	if f := o.follows[id]; f != nil {
		lines, f.greeting = f.greeting, nil
	}
	o.mu.Unlock()
	if lines != nil {
		o.lines(lines, "")
	}
}

// askFollowed is askAll for the session with an id, where it is followed.
func (o *outbox) askFollowed(id session.SessionID) {
	o.mu.Lock()
	f := o.follows[id]
	o.mu.Unlock()
	if f != nil {
		o.askAll(f)
	}
}

// appendTold writes what a Teller told.
func (o *outbox) appendTold(buf []byte, f *follow) []byte {
	if len(o.told) > 0 {
		o.mu.Lock()
		buf = append(buf, f.greeting...)
		f.greeting = nil
		o.mu.Unlock()
	}
	for i := range o.told {
		t := &o.told[i]
		switch {
		case t.Ask != nil:
			o.conn.ask(f, t.Ask)
		case t.Resolved != "":
			buf = o.conn.asks.resolved(buf, t.Resolved)
		case t.Settings != nil:
			buf = o.conn.appendSettings(buf, f.s.ID, t.Settings)
		default:
			buf = append(acp.AppendUpdate(buf, f.s.ID, t.Raw(), t.Cursor), '\n')
		}
	}
	clear(o.told) // keeps no text alive
	return buf
}

// answers adds the held answers whose place was reached.
func (o *outbox) answers(buf []byte) []byte {
	o.mu.Lock()
	var due, kept []*hold
	follows := map[*hold]*follow{}
	for _, h := range o.holds {
		f := o.follows[h.session]
		if f != nil && (f.cursor < h.seq || h.replay && f.head > 0) {
			kept = append(kept, h)
			continue
		}
		due = append(due, h)
		follows[h] = f
	}
	o.holds = kept
	o.mu.Unlock()
	for _, h := range due {
		at := len(buf)
		buf = append(buf, h.lead...)
		buf = append(buf, o.encode(h.build(follows[h]))...)
		o.mu.Lock()
		o.count(1, len(buf)-at)
		o.mu.Unlock()
		o.size += len(buf) - at
		o.ids = append(o.ids, h.id)
		if h.written != nil {
			o.after = append(o.after, h.written)
		}
	}
	return buf
}
