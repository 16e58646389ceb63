package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime/debug"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// replayBytes bounds a replay page (docs/protocol/rind-v2.md section 4.4).
const replayBytes = 4 << 20

func replay(k *call, p *rindv2.ReplayParams) {
	if p.AfterCursor == nil {
		replayMessages(k, p)
		return
	}
	k.snapshot(func(v *session.View, state rindv2.ReplayState) (func() (func(int64) any, error), error) {
		id := v.Session.ID
		draft := v.Draft
		return func() (func(int64) any, error) {
			res, err := k.c.events(id, *p.AfterCursor, p.Limit, state, draft)
			if err != nil {
				return nil, err
			}
			if p.AfterTaskCursor != nil {
				if err := k.c.taskEvents(id, *p.AfterTaskCursor, p.Limit, &res, draft); err != nil {
					return nil, err
				}
			}
			return func(seq int64) any {
				res.AsOfSequence = seq
				return res
			}, nil
		}, nil
	})
}

// taking takes from the state of a session, on its goroutine, what is to be answered; what it returns runs in the background, and what that
// returns makes the result once the place is reached.
type taking func(v *session.View, state rindv2.ReplayState) (func() (func(lastSequence int64) any, error), error)

// snapshot takes the state of the request's session at one point of its log and answers there: what was told before the answer is in it,
// what is told behind it is not.
func (k *call) snapshot(take taking) {
	k.inspect(func(v *session.View) { k.answerAt(v, take) })
}

func (k *call) answerAt(v *session.View, take taking) {
	state := rindv2.ReplayState{
		SessionID: v.Session.ID, Model: v.Sel.Model, Hosted: v.Hosted, Tasks: taskRecords(v), BackgroundWait: v.BackgroundWait(), HeadCursor: v.HeadCursor, TaskCursor: v.TaskCursor,
	}
	if ts := v.TurnState(); ts != nil {
		state.TurnState = ts
	}
	if lt := v.Live(k.c.knowsApprovals()); lt != nil {
		state.LiveTurn = lt
	}
	read, err := take(v, state)
	if err != nil {
		k.Fail(err)
		return
	}
	h := &outlet.Hold{Stream: string(v.Session.ID), Seq: v.Head, Exact: true, Wait: true}
	k.Answer(func() {
		h.ID = k.ID
		k.Out.Hold(h)
		go func() { k.Out.Ready(h, k.read(read)) }()
	})
}

// read makes an answer of what is read.
func (k *call) read(read func() (func(lastSequence int64) any, error)) (answer func(outlet.Stream) (any, error)) {
	failed := func(err error) func(outlet.Stream) (any, error) {
		return func(outlet.Stream) (any, error) { return nil, err }
	}
	defer func() {
		if v := recover(); v != nil {
			answer = failed(outlet.Panic(k.Method, v, debug.Stack()))
		}
	}()
	result, err := read()
	if err != nil {
		return failed(err)
	}
	return func(outlet.Stream) (any, error) { return result(k.c.out.seq), nil }
}

// events reads one page of durable events up to the snapshot.
func (c *Conn) events(id session.SessionID, after session.Seq, limit int, state rindv2.ReplayState, draft bool) (rindv2.ReplayEvents, error) {
	res := rindv2.ReplayEvents{Events: []json.RawMessage{}, Cursor: after, ReplayState: state}
	if draft || after >= state.HeadCursor {
		return res, nil
	}
	page, more, err := c.page(id, after, state.HeadCursor, limit, protocol.ViewDurable)
	if err != nil {
		return res, err
	}
	for i := range page {
		res.Cursor = page[i].Seq
		if line, ok := rindv2.Replayed(id, &page[i]); ok {
			res.Events = append(res.Events, line)
		}
	}
	if res.HasMore = more; more {
		next := res.Cursor
		res.NextCursor = &next
	}
	return res, nil
}

func (c *Conn) taskEvents(id session.SessionID, after session.Seq, limit int, res *rindv2.ReplayEvents, draft bool) error {
	more := false
	res.TaskEvents, res.TasksMore = []json.RawMessage{}, &more
	if draft || after >= res.TaskCursor {
		return nil
	}
	page, rest, err := c.page(id, after, res.TaskCursor, limit, protocol.ViewTasks)
	if err != nil {
		return err
	}
	for i := range page {
		if line, ok := rindv2.Replayed(id, &page[i]); ok {
			res.TaskEvents = append(res.TaskEvents, line)
		}
	}
	*res.TasksMore = rest
	return nil
}

// page reads up to limit entries of a view in (after, through], ending early at 4 MiB; more says that some are left.
func (c *Conn) page(id session.SessionID, after, through session.Seq, limit int, v protocol.View) (out []session.Entry, more bool, err error) {
	bytes := 0
	for len(out) < limit {
		page, err := c.d.cfg.Sessions.Store().Read(context.Background(), id, after, min(limit-len(out), outlet.PageEntries), v)
		switch {
		case errors.Is(err, session.ErrNotFound): // another process has deleted it
			return nil, false, rindv2.SessionNotFound(id)
		case err != nil:
			return nil, false, &protocol.Error{Kind: protocol.PersistenceError, Message: err.Error(), Cause: err}
		}
		for i := range page {
			if page[i].Seq > through {
				return out, false, nil
			}
			if bytes += page[i].Size(); bytes > replayBytes && len(out) > 0 {
				return out, true, nil
			}
			out = append(out, page[i])
			after = page[i].Seq
		}
		if len(page) == 0 {
			return out, false, nil
		}
	}
	return out, after < through, nil
}

// replayMessages answers in message mode: a slice over all messages.
func replayMessages(k *call, p *rindv2.ReplayParams) {
	start, end := int64(0), int64(math.MaxInt64)
	if p.Start != nil {
		start = *p.Start
	}
	if p.End != nil {
		end = *p.End
	}
	k.recall(func(v *session.Recalled) {
		k.answerAt(v.View, func(_ *session.View, state rindv2.ReplayState) (func() (func(int64) any, error), error) {
			wire := slice(v.Wire(), start, end)
			return func() (func(int64) any, error) {
				return func(seq int64) any {
					state.AsOfSequence = seq
					return rindv2.ReplayMessages{Messages: wire, ReplayState: state}
				}, nil
			}, nil
		})
	})
}

// slice is list[start:end] where negatives count from the end and nothing is out of range.
func slice(list []session.Wire, start, end int64) []session.Wire {
	n := int64(len(list))
	place := func(i int64) int64 {
		if i < 0 {
			i += n
		}
		return max(0, min(i, n))
	}
	from, to := place(start), place(end)
	if from >= to {
		return []session.Wire{}
	}
	return list[from:to]
}
