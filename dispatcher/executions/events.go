package executions

import (
	"context"
	"errors"

	"github.com/rind-dev/rind/protocol"
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

// Append adds the events of an entry of the execution that lie behind a cursor.
func (r *Run) Append(ctx context.Context, out []portable.Event, e *session.Entry, after int64) ([]portable.Event, error) {
	if e.PortableCount == 0 || e.PortableFirst+int64(e.PortableCount)-1 <= after {
		return out, nil
	}
	c, err := r.context(ctx)
	if err != nil {
		return out, err
	}
	b, err := protocol.Decode(e)
	if err != nil {
		return out, stored(errors.Join(session.ErrCorrupt, err))
	}
	events, err := portable.Events(c, e, b)
	if err != nil {
		return out, err
	}
	for _, ev := range events {
		if ev.Sequence > after {
			out = append(out, ev)
		}
	}
	return out, nil
}

// context is what the events of the execution depend on beside their entries.
func (r *Run) context(ctx context.Context) (*portable.Context, error) {
	if r.told != nil {
		return r.told, nil
	}
	rec, err := r.fold(ctx, func(*session.Entry, protocol.Body) bool { return true })
	if err != nil {
		return nil, err
	}
	c := rec.Context
	c.Output = func() (string, error) {
		whole, err := r.fold(context.WithoutCancel(ctx), nil)
		if err != nil {
			return "", err
		}
		return whole.Text(), nil
	}
	r.told = &c
	return r.told, nil
}
