package executions

import (
	"context"
	"errors"
	"sync"

	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

// Part is a part of the events of an execution.
type Part struct {
	Events []portable.Event
	Cursor int64       // number of the last one, or where the part begins
	Seq    session.Seq // of the entry before the last one's: what lies behind it has the events behind the part. 0 when there are none
}

// Part reads up to limit events behind a cursor. It ends early, but not empty, before the first event that fits not: fits is told the JSON text
// of each in turn, which is good until it returns.
func (r *Run) Part(ctx context.Context, after int64, limit int, fits func(event []byte) bool) (Part, error) {
	p := Part{Events: []portable.Event{}, Cursor: after}
	t := r.Teller()
	var text []byte
	for full := false; !full && len(p.Events) < limit; {
		entries, err := r.entries(ctx, p.Cursor, min(limit-len(p.Events), 256), nil)
		if err != nil || len(entries) == 0 {
			return p, err
		}
		for i := range entries {
			if err := t.Each(&entries[i], p.Cursor, func(l *portable.Line) {
				if full = full || len(p.Events) == limit; full {
					return
				}
				text = l.Append(text[:0])
				if full = !fits(text) && len(p.Events) > 0; !full {
					p.Events, p.Cursor, p.Seq = append(p.Events, l.Event()), l.Sequence, entries[i].Seq-1
				}
			}); err != nil || full {
				return p, err
			}
		}
	}
	return p, nil
}

// Ended reports whether there will be no more events behind a part: its last one, or one before it, is the terminal one.
func (r *Run) Ended(ctx context.Context, p *Part) (bool, error) {
	if n := len(p.Events); n > 0 {
		return portable.Terminal(p.Events[n-1].Type), nil
	}
	rec, err := r.fold(ctx, nil)
	return err == nil && rec.Ended(), err
}

// Teller puts entries of an execution into events. Not safe for concurrent use.
type Teller struct{ portable.Teller }

// Teller tells the entries of the execution.
func (r *Run) Teller() *Teller {
	t := &Teller{}
	t.Context = portable.Context{Execution: r.ID, Provider: r.provider, Workspace: r.Session.Workspace, Output: func() (string, error) {
		whole, err := r.fold(context.Background(), nil)
		if err != nil {
			return "", err
		}
		return whole.Text(), nil
	}}
	return t
}

// Each tells the events of an entry that lie behind a cursor, as portable.Teller does.
func (t *Teller) Each(e *session.Entry, after int64, see func(*portable.Line)) error {
	if err := t.Teller.Each(e, after, see); err != nil {
		return Stored(errors.Join(session.ErrCorrupt, err))
	}
	return nil
}

// PageEntries is how many entries a Feed reads at one time from the store.
const PageEntries = 256

// pages are read into by one feed after the other: one that waits holds none.
var pages = sync.Pool{New: func() any { return &session.Page{} }}

// Feed reads an execution behind a cursor: from memory where its entries are recent, else from the store. It keeps its place and nothing else.
// Not safe for concurrent use.
type Feed struct {
	run    *Run
	teller *Teller
	s      *session.Session // nil: the store alone
	from   int64            // number of the last event that was read
	seen   session.Seq      // everything of the execution up to here was read
}

// Feed begins behind a cursor. s is the session of the execution, to be followed while it is open; nil reads the store alone.
func (r *Run) Feed(s *session.Session, after int64) *Feed {
	return &Feed{run: r, teller: r.Teller(), s: s, from: after, seen: r.first - 1}
}

// Cursor is the number of the last event that was read.
func (f *Feed) Cursor() int64 { return f.from }

// Next hands over events behind the cursor, those of a page at most, and reports of how many entries; 0 when there are none now. The line that
// see is handed is good until it returns.
func (f *Feed) Next(ctx context.Context, see func(*portable.Line)) (int, error) {
	for f.s != nil {
		recent, _, ok := f.s.Recent(f.seen, 1024)
		if !ok {
			break // it lags: the store knows
		}
		if len(recent) == 0 {
			return 0, nil
		}
		if n, err := f.tell(recent, see); n > 0 || err != nil {
			return n, err
		}
	}
	head := session.Seq(0)
	if f.s != nil {
		_, head, _ = f.s.Recent(1<<62, 1)
	}
	into := pages.Get().(*session.Page)
	defer pages.Put(into)
	page, err := f.run.entries(ctx, f.from, PageEntries, into)
	if err != nil {
		return 0, err
	}
	n, err := f.tell(page, see)
	if err == nil && len(page) < PageEntries {
		f.seen = max(f.seen, head) // what the store gave of later entries is told apart by its numbers
	}
	return n, err
}

// tell hands over the events of those entries that are of the execution and behind the cursor, and passes all of them.
func (f *Feed) tell(page []session.Entry, see func(*portable.Line)) (n int, err error) {
	for i := range page {
		e := &page[i]
		if last := e.PortableFirst + int64(e.PortableCount) - 1; e.PortableCount > 0 && last > f.from && e.Turn == f.run.Turn {
			if err := f.teller.Each(e, f.from, see); err != nil {
				return n, err
			}
			f.from = last
			n++
		}
		f.seen = max(f.seen, e.Seq)
	}
	return n, nil
}
