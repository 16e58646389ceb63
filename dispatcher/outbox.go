package dispatcher

import (
	"context"
	"io"
	"sync"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/frame"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

const (
	batchBytes    = 256 << 10 // of one write
	pageEntries   = 256       // read from a log at once
	mergeBeyond   = 64        // entries behind: text is told in larger pieces
	envelopeBytes = 192       // about, around an event
	pauseReplies  = 1024      // unwritten answers at which reading pauses
	pauseBytes    = 1 << 20
)

// Outbox is the only writer of a connection. It pulls: answers and entry-less events are handed over, everything else it reads
// from the logs of the sessions it follows, when there is room on the wire. So a client that does not read costs a cursor per
// session, and holds up nobody. One goroutine, started by its Conn; it ends when it is closed and drained, or when a write fails.
type Outbox struct {
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
	broken  error
	wake    chan struct{}
	done    chan struct{}

	// Owned by the goroutine.
	seq  int64               // number of the last event line
	told []protocol.Envelope // of the page being written
}

// item is something ready to be written: an answer, or an event without an entry.
type item struct {
	line  []byte // encoded reply
	event *protocol.Envelope
	id    string // of the request answered
}

// hold is an answer that belongs to a place in a session's log: it is written once the connection was told everything up to seq. An exact
// one also keeps what is behind seq back until then, so that it separates the events before a snapshot from those after it.
type hold struct {
	session session.SessionID
	seq     session.Seq
	exact   bool
	ready   bool
	last    bool // behind everything else; the outbox ends with it
	build   func(lastSequence int64) protocol.Reply
	id      string
}

// follow is a cursor in the log of one session.
type follow struct {
	s      *session.Session
	bell   *session.Follower
	cursor session.Seq
	teller rindv2.Teller // owned by the outbox's goroutine once the follower is added
	// Catching up from after_cursor: durable events up to head, then the open message's text in one piece, then live.
	head session.Seq
	open *protocol.Envelope
}

func newOutbox(c *Conn, sink io.Writer) *Outbox {
	return &Outbox{conn: c, sink: sink, follows: map[session.SessionID]*follow{}, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

func (o *Outbox) ring() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// reply hands over an answer.
func (o *Outbox) reply(r protocol.Reply, id string) {
	line, err := rindv2.AppendReply(nil, o.conn.envelope(), r)
	if err != nil {
		line, _ = rindv2.AppendReply(nil, o.conn.envelope(), protocol.Reply{ID: r.ID, Err: o.conn.d.internal(err)})
	}
	o.line(line, id)
}

// line hands over an encoded line that is no event: an answer, or with id "" anything else.
func (o *Outbox) line(line []byte, id string) {
	o.mu.Lock()
	o.items = append(o.items, item{line: line, id: id})
	o.count(1, len(line))
	o.mu.Unlock()
	o.ring()
}

// count keeps account of unwritten answers; o.mu is held.
func (o *Outbox) count(n, bytes int) {
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
func (o *Outbox) pause() {
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

// event hands over an event that has no entry.
func (o *Outbox) event(e protocol.Envelope) {
	o.mu.Lock()
	o.items = append(o.items, item{event: &e})
	o.mu.Unlock()
	o.ring()
}

// hold registers an answer at a place of a log; ready makes it writable.
func (o *Outbox) hold(h *hold) *hold {
	o.mu.Lock()
	o.holds = append(o.holds, h)
	o.mu.Unlock()
	return h
}

func (o *Outbox) ready(h *hold, build func(lastSequence int64) protocol.Reply) {
	o.mu.Lock()
	h.build, h.ready = build, true
	o.mu.Unlock()
	o.ring()
}

// add begins to follow a session, or moves the cursor when it does already.
func (o *Outbox) add(f *follow) {
	id := f.s.ID
	o.mu.Lock()
	old := o.follows[id]
	if old != nil {
		f.bell, old.bell = old.bell, f.bell
		if old.bell != nil {
			old.bell.Stop()
		}
	} else {
		o.order = append(o.order, id)
	}
	o.follows[id] = f
	o.mu.Unlock()
	if old != nil {
		old.s.Close() // one reference per session followed
	}
	o.ring()
}

// follows reports whether a session is followed.
func (o *Outbox) following(id session.SessionID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.follows[id] != nil
}

// remove ends following a session; false when it was not followed.
func (o *Outbox) remove(id session.SessionID) bool {
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
	if f == nil {
		return false
	}
	if f.bell != nil {
		f.bell.Stop()
	}
	f.s.Close()
	o.ring()
	return true
}

// close lets the goroutine end once everything due is written.
func (o *Outbox) close() {
	o.mu.Lock()
	o.closing = true
	o.mu.Unlock()
	o.ring()
}

// run is the goroutine.
func (o *Outbox) run() {
	defer close(o.done)
	var buf []byte
	for {
		var more, last bool
		var err error
		if cap(buf) > 4*batchBytes { // one huge event must not keep its memory
			buf = nil
		}
		if buf, more, last, err = o.fill(buf[:0]); err != nil {
			o.fail(err)
			return
		}
		if len(buf) > 0 {
			o.conn.leave(o.conn.batch.ids)
			if _, err := o.sink.Write(buf); err != nil {
				o.fail(err)
				return
			}
			o.written()
		}
		switch {
		case last:
			return
		case more:
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

// fail ends the connection: the client is gone.
func (o *Outbox) fail(err error) {
	o.mu.Lock()
	o.broken = err
	o.items, o.holds = nil, nil
	o.mu.Unlock()
	o.conn.d.log().Info("connection lost", "err", err)
	o.conn.lost()
}

// wrote collects what a batch answers.
type wrote struct {
	ids   []string
	bytes int
}

func (o *Outbox) written() {
	w := o.conn.batch
	o.conn.batch = wrote{}
	if len(w.ids) == 0 {
		return
	}
	o.mu.Lock()
	o.count(-len(w.ids), -w.bytes)
	o.mu.Unlock()
	o.conn.left()
}

// fill encodes what is to be written next: first what was handed over, then a page of each followed log, then the answers whose place was
// reached. more says that there may be more at once; last that nothing may follow.
func (o *Outbox) fill(buf []byte) (_ []byte, more, last bool, err error) {
	o.mu.Lock()
	items := o.items
	o.items = nil
	order := append([]session.SessionID(nil), o.order...)
	o.mu.Unlock()
	for i, it := range items {
		if it.event != nil {
			buf = o.appendEvent(buf, it.event)
		} else {
			buf = o.appendLine(buf, it.line)
			o.conn.batch.ids = append(o.conn.batch.ids, it.id)
			o.conn.batch.bytes += len(it.line)
		}
		if len(buf) >= batchBytes && i+1 < len(items) {
			o.mu.Lock()
			o.items = append(items[i+1:len(items):len(items)], o.items...)
			o.mu.Unlock()
			return buf, true, false, nil
		}
	}
	for _, id := range order {
		var again bool
		if buf, again, err = o.page(buf, id); err != nil {
			return buf, false, false, err
		}
		more = more || again
		if len(buf) >= batchBytes {
			more = true
			break
		}
	}
	before := len(buf)
	buf, last = o.answers(buf, !more)
	return buf, more || len(buf) > before, last, nil
}

// limit is how far a session may be told, because of exact holds; -1 for no limit. o.mu is held.
func (o *Outbox) limit(id session.SessionID) session.Seq {
	var most session.Seq = -1
	for _, h := range o.holds {
		if h.exact && h.session == id && (most < 0 || h.seq < most) {
			most = h.seq
		}
	}
	return most
}

// page tells the next entries of one session.
func (o *Outbox) page(buf []byte, id session.SessionID) (_ []byte, more bool, err error) {
	o.mu.Lock()
	f, limit := o.follows[id], o.limit(id)
	o.mu.Unlock()
	if f == nil {
		return buf, false, nil
	}
	if f.head > 0 {
		return o.catchUp(buf, f, limit)
	}
	entries, head, err := f.s.Read(context.Background(), f.cursor, pageEntries)
	if err != nil {
		o.conn.d.log().Error("read log", "session", id, "err", err)
		o.conn.unfollow(id)
		return buf, false, nil
	}
	o.mu.Lock()
	limit = o.limit(id) // after reading: what was read behind a snapshot's place was stored after the snapshot was held
	o.mu.Unlock()
	n := fits(entries, limit, len(buf))
	f.teller.Approvals = o.conn.knowsApprovals()
	o.told = f.teller.Tell(o.told[:0], entries[:n], head-f.cursor > mergeBeyond)
	buf = o.appendTold(buf)
	if n == 0 {
		return buf, false, nil
	}
	cursor := entries[n-1].Seq
	o.moved(f, cursor)
	return buf, cursor < head, nil
}

// fits is how many of entries may be told: none behind limit, and no more than what fills a batch, but one.
func fits(entries []session.Entry, limit session.Seq, used int) int {
	for i := range entries {
		if limit >= 0 && entries[i].Seq > limit || used >= batchBytes {
			return i
		}
		used += entries[i].Size() + envelopeBytes
	}
	return len(entries)
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

func (o *Outbox) moved(f *follow, cursor session.Seq) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.follows[f.s.ID] == f { // not if it was moved or removed meanwhile
		f.cursor = cursor
	}
}

// catchUp tells the durable events of a follower that asked for them, up to where it joined, or to an exact hold before that.
func (o *Outbox) catchUp(buf []byte, f *follow, limit session.Seq) (_ []byte, more bool, err error) {
	through := f.head
	if limit >= 0 {
		through = min(through, limit)
	}
	store := o.conn.d.cfg.Sessions.Store()
	entries, err := store.Read(context.Background(), f.s.ID, f.cursor, pageEntries, protocol.ViewDurable)
	if err != nil {
		o.conn.d.log().Error("read log", "session", f.s.ID, "err", err)
		o.conn.unfollow(f.s.ID)
		return buf, false, nil
	}
	n := fits(entries, through, len(buf))
	f.teller.Approvals = o.conn.knowsApprovals()
	o.told = f.teller.CatchUp(o.told[:0], entries[:n])
	buf = o.appendTold(buf)
	cursor := f.cursor
	if n > 0 {
		cursor = entries[n-1].Seq
	}
	if n < len(entries) && entries[n].Seq <= through || n == pageEntries { // there is more, or may be
		o.moved(f, cursor)
		return buf, true, nil
	}
	if through < f.head { // the rest comes behind the answer that holds it
		o.moved(f, max(cursor, through))
		return buf, false, nil
	}
	if f.open != nil {
		buf = o.appendEvent(buf, f.open)
	}
	o.mu.Lock()
	f.cursor, f.head, f.open = max(cursor, f.head), 0, nil
	o.mu.Unlock()
	return buf, true, nil
}

// answers adds the held answers whose place was reached; idle says that every log was told to its end.
func (o *Outbox) answers(buf []byte, idle bool) (_ []byte, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var kept []*hold
	for _, h := range o.holds {
		f := o.follows[h.session]
		wait := !h.ready || f != nil && f.cursor < h.seq
		if h.last {
			wait = wait || !idle || len(o.holds) > 1 || len(o.items) > 0
		}
		if wait {
			kept = append(kept, h)
			continue
		}
		last = h.last
		r := h.build(o.seq)
		line, err := rindv2.AppendReply(nil, o.conn.envelope(), r)
		if err != nil {
			line, _ = rindv2.AppendReply(nil, o.conn.envelope(), protocol.Reply{ID: r.ID, Err: o.conn.d.internal(err)})
		}
		buf = o.appendLine(buf, line)
		o.conn.batch.ids = append(o.conn.batch.ids, h.id)
		o.count(1, 0)
	}
	o.holds = kept
	return buf, last
}

func (o *Outbox) appendLine(buf, line []byte) []byte {
	_, how := o.conn.form()
	return frame.Append(buf, how, line)
}

func (o *Outbox) appendEvent(buf []byte, e *protocol.Envelope) []byte {
	env, how := o.conn.form()
	return o.appendFormed(buf, e, env, how)
}

func (o *Outbox) appendFormed(buf []byte, e *protocol.Envelope, env rindv2.Envelope, how frame.Framing) []byte {
	o.seq++
	e.Sequence = o.seq
	if how == frame.Lines {
		return append(rindv2.AppendEvent(buf, env, e), '\n')
	}
	return frame.Append(buf, how, rindv2.AppendEvent(nil, env, e))
}
