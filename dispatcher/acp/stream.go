package acp

import (
	"sync/atomic"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// mergeBeyond is how many entries behind text is told in larger pieces.
const mergeBeyond = 256

// follow is a cursor in the log of one session: an outlet.Stream. Its fields belong to the outlet's goroutine once it is followed.
type follow struct {
	outlet.Cursor
	out     *outbox
	teller  *acp.Teller
	besides *besides
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

// replaying reports whether a stream has not told all of its replay yet.
func replaying(s outlet.Stream) bool {
	f, ok := s.(*follow)
	return ok && f.head > 0
}

// Page implements outlet.Stream. Every held answer separates what is of its turn from what comes next.
func (f *follow) Page(buf []byte, limit func() session.Seq) (_ []byte, more bool, err error) {
	if replay := f.head; replay > 0 {
		limit = func() session.Seq { return replay }
	}
	page, err := f.Read(len(buf), limit)
	if err != nil {
		return buf, false, err
	}
	told := f.out.told[:0]
	if f.join != nil {
		told, f.join = f.teller.Join(told, f.join), nil
	}
	told, n, err := f.besides.pass(f.teller, told, page.Entries, page.Head-f.At > mergeBeyond)
	f.Pass(page.Entries[:n])
	if err != nil && n == 0 && len(told) == 0 {
		return buf, false, err
	}
	if err != nil { // what was told is not told again: the error is met anew where it is
		buf = f.appendTold(buf, told)
		f.out.told = told
		return buf, true, nil
	}
	ended := f.head > 0 && (f.At >= f.head || page.End)
	if ended {
		told, f.asks = f.teller.EndReplay(told, f.open)
		f.At, f.head = max(f.At, f.head), 0
	}
	buf = f.appendTold(buf, told)
	f.out.told = told
	if ended && f.late {
		f.askAll()
	}
	return buf, ended || len(page.Entries) > 0 && f.At < page.Head, nil
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
			buf = c.appendSettings(buf, f.Session.ID, t.Settings)
		default:
			buf = append(acp.AppendUpdate(buf, f.Session.ID, t.Raw(), t.Cursor), '\n')
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
		f.out.Line(*lines, "")
	}
}
