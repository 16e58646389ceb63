package executions

import (
	"context"
	"errors"

	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

// Page reads the events of up to n entries behind a cursor.
func (r *Run) Page(ctx context.Context, after int64, n int) ([]portable.Event, error) {
	entries, err := r.entries(ctx, after, n)
	if err != nil {
		return nil, err
	}
	var out []portable.Event
	for i := range entries {
		if out, err = r.Append(ctx, out, &entries[i], after); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Part is a part of the events of an execution.
type Part struct {
	Events []portable.Event
	Cursor int64       // number of the last one, or where the part begins
	Seq    session.Seq // of the entry before the last one's: what lies behind it has the events behind the part. 0 when there are none
}

// Part reads up to limit events behind a cursor. It ends early, but not empty, where the next event would make it larger than bytes.
func (r *Run) Part(ctx context.Context, after int64, limit, bytes int) (Part, error) {
	p := Part{Events: []portable.Event{}, Cursor: after}
	for {
		entries, err := r.entries(ctx, p.Cursor, min(limit-len(p.Events), 256))
		if err != nil || len(entries) == 0 {
			return p, err
		}
		for i := range entries {
			events, err := r.Append(ctx, nil, &entries[i], p.Cursor)
			if err != nil {
				return p, err
			}
			for _, e := range events {
				bytes -= len(e.Data) + len(e.ID) + len(e.ExecutionID) + len(e.Type) + len(e.Time)
				if len(p.Events) == limit || bytes < 0 && len(p.Events) > 0 {
					return p, nil
				}
				p.Events, p.Cursor, p.Seq = append(p.Events, e), e.Sequence, entries[i].Seq-1
			}
		}
		if len(p.Events) == limit {
			return p, nil
		}
	}
}

// Ended reports whether there will be no more events behind a part: its last one, or one before it, is the terminal one.
func (r *Run) Ended(ctx context.Context, p *Part) (bool, error) {
	if n := len(p.Events); n > 0 {
		return portable.Terminal(p.Events[n-1].Type), nil
	}
	rec, err := r.fold(ctx, nil)
	return err == nil && rec.Ended(), err
}

// Append adds the events of an entry of the execution that lie behind a cursor.
func (r *Run) Append(ctx context.Context, out []portable.Event, e *session.Entry, after int64) ([]portable.Event, error) {
	err := r.each(ctx, e, after, func(ev *portable.Event) { out = append(out, *ev) })
	return out, err
}

func (r *Run) each(ctx context.Context, e *session.Entry, after int64, see func(*portable.Event)) error {
	c := &portable.Context{Execution: r.ID, Provider: r.provider, Workspace: r.Session.Workspace, Output: func() (string, error) {
		whole, err := r.fold(context.WithoutCancel(ctx), nil)
		if err != nil {
			return "", err
		}
		return whole.Text(), nil
	}}
	if err := portable.Each(c, e, after, see); err != nil {
		return Stored(errors.Join(session.ErrCorrupt, err))
	}
	return nil
}

// PageEntries is how many entries a Feed reads at one time from the store.
const PageEntries = 256

// Feed reads an execution behind a cursor: from memory where its entries are recent, else from the store. It keeps its place and nothing else.
// Not safe for concurrent use.
type Feed struct {
	run  *Run
	s    *session.Session // nil: the store alone
	from int64            // number of the last event that was read
	seen session.Seq      // everything of the execution up to here was read
}

// Feed begins behind a cursor. s is the session of the execution, to be followed while it is open; nil reads the store alone.
func (r *Run) Feed(s *session.Session, after int64) *Feed {
	return &Feed{run: r, s: s, from: after, seen: r.first - 1}
}

// Cursor is the number of the last event that was read.
func (f *Feed) Cursor() int64 { return f.from }

// Next hands over events behind the cursor, those of a page at most, and reports of how many entries; 0 when there are none now.
func (f *Feed) Next(ctx context.Context, see func(*portable.Event)) (int, error) {
	page, err := f.page(ctx)
	for i := range page {
		if err := f.run.each(ctx, &page[i], f.from, see); err != nil {
			return i, err
		}
		f.from = lastNumber(&page[i])
	}
	return len(page), err
}

func (f *Feed) page(ctx context.Context) ([]session.Entry, error) {
	for f.s != nil {
		es, _, ok := f.s.Recent(f.seen, 1024)
		if !ok {
			break // it lags: the store knows
		}
		if len(es) == 0 {
			return nil, nil
		}
		f.seen = es[len(es)-1].Seq
		var own []session.Entry
		for i := range es {
			if es[i].Turn == f.run.Turn && es[i].PortableCount > 0 && lastNumber(&es[i]) > f.from {
				own = append(own, es[i])
			}
		}
		if len(own) > 0 {
			return own, nil
		}
	}
	head := session.Seq(0)
	if f.s != nil {
		_, head, _ = f.s.Recent(1<<62, 1)
	}
	page, err := f.run.entries(ctx, f.from, PageEntries)
	if n := len(page); n > 0 {
		f.seen = max(f.seen, page[n-1].Seq)
	}
	if err == nil && len(page) < PageEntries {
		f.seen = max(f.seen, head) // what the store gave of later entries is told apart by its numbers
	}
	return page, err
}

func lastNumber(e *session.Entry) int64 { return e.PortableFirst + int64(e.PortableCount) - 1 }
