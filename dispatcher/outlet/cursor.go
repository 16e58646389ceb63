package outlet

import (
	"context"

	"github.com/rind-dev/rind/session"
)

// PageEntries is how many entries of a log are read at once.
const PageEntries = 256

// envelopeBytes is about what a dialect writes around an entry.
const envelopeBytes = 192

// Cursor is a place in the log of one session, and the doorbell that rings when there is more: what a dialect's stream is made of. Both are
// references, which Close gives back.
type Cursor struct {
	Session *session.Session
	Bell    *session.Follower
	At      session.Seq // everything up to here was told
}

// Told implements Stream.
func (c *Cursor) Told() session.Seq { return c.At }

// Close implements Stream.
func (c *Cursor) Close() {
	c.Bell.Stop()
	c.Session.Close()
}

// Page is a part of a log.
type Page struct {
	Entries []session.Entry
	Head    session.Seq // of the log
	End     bool        // nothing that may be told lies behind them
}

// Read reads what comes next up to a limit, as much as fills a batch that holds used bytes.
func (c *Cursor) Read(used int, limit func() session.Seq) (Page, error) {
	entries, head, err := c.Session.Read(context.Background(), c.At, PageEntries)
	if err != nil {
		return Page{}, err
	}
	most := limit()
	n := Fits(entries, most, used)
	end := len(entries) == 0 || n < len(entries) && most >= 0 && entries[n].Seq > most
	return Page{entries[:n], head, end}, nil
}

// Pass moves behind entries that were told.
func (c *Cursor) Pass(entries []session.Entry) {
	if n := len(entries); n > 0 {
		c.At = entries[n-1].Seq
	}
}

// Fits is how many of entries may be told: none behind limit, and no more than what fills a batch, but one.
func Fits(entries []session.Entry, limit session.Seq, used int) int {
	for i := range entries {
		if limit >= 0 && entries[i].Seq > limit || used >= BatchBytes {
			return i
		}
		used += entries[i].Size() + envelopeBytes
	}
	return len(entries)
}
