package acp

import (
	"context"
	"sync/atomic"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

const (
	pageEntries = 256 // read from a log at once
	mergeBeyond = 256 // entries behind: text is told in larger pieces
)

// follow is a cursor in the log of one session: an outlet.Stream. Its fields belong to the outlet's goroutine once it is followed.
type follow struct {
	out    *outbox
	s      *session.Session // a reference
	bell   *session.Follower
	cursor session.Seq
	teller *acp.Teller
	// A replay: what is told up to head is history.
	head session.Seq
	open acp.Open
	late bool // the answer went before: what is open is asked at the replay's end
	asks []*acp.Ask
	// join are the actions that are open where the client joins, to be asked once.
	join []*acp.Ask
	// greeting are lines that go before anything live. Whoever takes them away writes them.
	greeting atomic.Pointer[[]byte]
}

// Told implements outlet.Stream.
func (f *follow) Told() session.Seq { return f.cursor }

// Close implements outlet.Stream.
func (f *follow) Close() {
	f.bell.Stop()
	f.s.Close()
}

// replaying reports whether a stream has not told all of its replay yet.
func replaying(s outlet.Stream) bool {
	f, ok := s.(*follow)
	return ok && f.head > 0
}

// Page implements outlet.Stream. Every held answer separates what is of its turn from what comes next.
func (f *follow) Page(buf []byte, limit func() session.Seq) (_ []byte, more bool, err error) {
	entries, head, err := f.s.Read(context.Background(), f.cursor, pageEntries)
	if err != nil {
		return buf, false, err
	}
	through := limit()
	if f.head > 0 {
		through = f.head
	}
	n, used := 0, len(buf)
	for n < len(entries) && (through < 0 || entries[n].Seq <= through) && used < outlet.BatchBytes {
		used += entries[n].Size()
		n++
	}
	told := f.out.told[:0]
	if f.join != nil {
		told, f.join = f.teller.Join(told, f.join), nil
	}
	told = f.teller.Tell(told, entries[:n], head-f.cursor > mergeBeyond)
	if n > 0 {
		f.cursor = entries[n-1].Seq
	}
	ended := f.head > 0 && (f.cursor >= f.head || n == 0 && len(entries) == 0 || n < len(entries) && entries[n].Seq > f.head)
	if ended {
		told, f.asks = f.teller.EndReplay(told, f.open)
		f.cursor, f.head = max(f.cursor, f.head), 0
	}
	buf = f.appendTold(buf, told)
	f.out.told = told
	if ended && f.late {
		f.askAll()
	}
	return buf, ended || n > 0 && f.cursor < head, nil
}

// appendTold writes what the Teller told.
func (f *follow) appendTold(buf []byte, told []acp.Told) []byte {
	if len(told) > 0 {
		if lines := f.greeting.Swap(nil); lines != nil {
			buf = append(buf, *lines...)
		}
	}
	c := f.out.conn
	for i := range told {
		t := &told[i]
		switch {
		case t.Ask != nil:
			c.ask(f, t.Ask)
		case t.Resolved != "":
			buf = c.asks.resolved(buf, t.Resolved)
		case t.Settings != nil:
			buf = c.appendSettings(buf, f.s.ID, t.Settings)
		default:
			buf = append(acp.AppendUpdate(buf, f.s.ID, t.Raw(), t.Cursor), '\n')
			if t.Over != "" {
				c.overAfter(t.Over)
			}
		}
	}
	clear(told) // keeps no text alive
	return buf
}

// askAll puts what is open to the client, once.
func (f *follow) askAll() {
	for _, a := range f.asks {
		f.out.conn.ask(f, a)
	}
	f.asks = nil
}

// greeted writes the greeting that nothing live came after.
func (f *follow) greeted() {
	if lines := f.greeting.Swap(nil); lines != nil {
		f.out.lines(*lines, "")
	}
}
