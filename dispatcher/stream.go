package dispatcher

import (
	"context"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// mergeBeyond is how many entries behind text is told in larger pieces.
const mergeBeyond = 64

// stream is a cursor in the log of one session: an outlet.Stream.
type stream struct {
	outlet.Cursor
	out    *Outbox
	teller rindv2.Teller
	// Catching up from after_cursor: durable events up to head, then the open message's text in one piece, then live.
	head session.Seq
	open *protocol.Envelope
}

// Page implements outlet.Stream.
func (f *stream) Page(buf []byte, limit func() session.Seq) (_ []byte, more bool, err error) {
	if f.head > 0 {
		return f.catchUp(buf, limit)
	}
	page, err := f.Read(len(buf), limit)
	if err != nil || len(page.Entries) == 0 {
		return buf, false, err
	}
	f.teller.Approvals, f.teller.Notices = f.out.conn.knowsApprovals(), f.out.conn.showsNotices()
	f.out.told = f.teller.Tell(f.out.told[:0], page.Entries, page.Head-f.At > mergeBeyond)
	buf = f.out.appendTold(buf)
	f.Pass(page.Entries)
	return buf, f.At < page.Head, nil
}

// catchUp tells the durable events of a follower that asked for them, up to where it joined, or to an exact hold before that.
func (f *stream) catchUp(buf []byte, limit func() session.Seq) (_ []byte, more bool, err error) {
	through := f.head
	if most := limit(); most >= 0 {
		through = min(through, most)
	}
	store := f.out.conn.d.cfg.Sessions.Store()
	entries, err := store.Read(context.Background(), f.Session.ID, f.At, outlet.PageEntries, protocol.ViewDurable)
	if err != nil {
		return buf, false, err
	}
	n := outlet.Fits(entries, through, len(buf))
	f.teller.Approvals, f.teller.Notices = f.out.conn.knowsApprovals(), f.out.conn.showsNotices()
	f.out.told = f.teller.CatchUp(f.out.told[:0], entries[:n])
	buf = f.out.appendTold(buf)
	f.Pass(entries[:n])
	switch {
	case n < len(entries) && entries[n].Seq <= through || n == outlet.PageEntries: // there is more, or may be
		return buf, true, nil
	case through < f.head: // the rest comes behind the answer that holds it
		f.At = max(f.At, through)
		return buf, false, nil
	}
	if f.open != nil {
		buf = f.out.appendEvent(buf, f.open)
	}
	f.At, f.head, f.open = max(f.At, f.head), 0, nil
	return buf, true, nil
}
