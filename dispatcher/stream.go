package dispatcher

import (
	"context"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

const (
	pageEntries   = 256 // read from a log at once
	mergeBeyond   = 64  // entries behind: text is told in larger pieces
	envelopeBytes = 192 // about, around an event
)

// stream is a cursor in the log of one session: an outlet.Stream.
type stream struct {
	out    *Outbox
	s      *session.Session // a reference
	bell   *session.Follower
	cursor session.Seq
	teller rindv2.Teller
	// Catching up from after_cursor: durable events up to head, then the open message's text in one piece, then live.
	head session.Seq
	open *protocol.Envelope
}

// Told implements outlet.Stream.
func (f *stream) Told() session.Seq { return f.cursor }

// Close implements outlet.Stream.
func (f *stream) Close() {
	if f.bell != nil {
		f.bell.Stop()
	}
	f.s.Close()
}

// Page implements outlet.Stream.
func (f *stream) Page(buf []byte, limit func() session.Seq) (_ []byte, more bool, err error) {
	if f.head > 0 {
		return f.catchUp(buf, limit)
	}
	entries, head, err := f.s.Read(context.Background(), f.cursor, pageEntries)
	if err != nil {
		return buf, false, err
	}
	n := fits(entries, limit(), len(buf))
	f.teller.Approvals, f.teller.Notices = f.out.conn.knowsApprovals(), f.out.conn.showsNotices()
	f.out.told = f.teller.Tell(f.out.told[:0], entries[:n], head-f.cursor > mergeBeyond)
	buf = f.out.appendTold(buf)
	if n == 0 {
		return buf, false, nil
	}
	f.cursor = entries[n-1].Seq
	return buf, f.cursor < head, nil
}

// catchUp tells the durable events of a follower that asked for them, up to where it joined, or to an exact hold before that.
func (f *stream) catchUp(buf []byte, limit func() session.Seq) (_ []byte, more bool, err error) {
	through := f.head
	if most := limit(); most >= 0 {
		through = min(through, most)
	}
	store := f.out.conn.d.cfg.Sessions.Store()
	entries, err := store.Read(context.Background(), f.s.ID, f.cursor, pageEntries, protocol.ViewDurable)
	if err != nil {
		return buf, false, err
	}
	n := fits(entries, through, len(buf))
	f.teller.Approvals, f.teller.Notices = f.out.conn.knowsApprovals(), f.out.conn.showsNotices()
	f.out.told = f.teller.CatchUp(f.out.told[:0], entries[:n])
	buf = f.out.appendTold(buf)
	if n > 0 {
		f.cursor = entries[n-1].Seq
	}
	switch {
	case n < len(entries) && entries[n].Seq <= through || n == pageEntries: // there is more, or may be
		return buf, true, nil
	case through < f.head: // the rest comes behind the answer that holds it
		f.cursor = max(f.cursor, through)
		return buf, false, nil
	}
	if f.open != nil {
		buf = f.out.appendEvent(buf, f.open)
	}
	f.cursor, f.head, f.open = max(f.cursor, f.head), 0, nil
	return buf, true, nil
}

// fits is how many of entries may be told: none behind limit, and no more than what fills a batch, but one.
func fits(entries []session.Entry, limit session.Seq, used int) int {
	for i := range entries {
		if limit >= 0 && entries[i].Seq > limit || used >= outlet.BatchBytes {
			return i
		}
		used += entries[i].Size() + envelopeBytes
	}
	return len(entries)
}
