package acp

import (
	"context"
	"encoding/json"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// Bounds of _rind/session/replay.
const (
	replayFacts = 200
	replayMost  = 1000
	replayBytes = 4 << 20
)

// replayed is the result of _rind/session/replay.
type replayed struct {
	Updates []replayedUpdate `json:"updates"`
	Cursor  string           `json:"cursor"`
	Head    string           `json:"head"`
	More    bool             `json:"hasMore"`
}

type replayedUpdate struct {
	Update json.RawMessage   `json:"update"`
	Meta   map[string]string `json:"_meta,omitempty"`
}

// replayAsked is what of a log _rind/session/replay is to tell.
type replayAsked struct {
	id    session.SessionID
	after session.Seq
	limit int // facts
}

func (k *call) replayAsked() (q replayAsked, err error) {
	q.limit = replayFacts
	if q.id, err = k.params.Session(); err != nil {
		return q, err
	}
	if k.params["afterCursor"] != nil {
		text, err := k.params.Text("afterCursor")
		if err != nil {
			return q, err
		}
		if q.after, err = acp.ParseCursor(text); err != nil {
			return q, err
		}
	}
	if raw := k.params["limit"]; raw != nil && (json.Unmarshal(raw, &q.limit) != nil || q.limit < 1 || q.limit > replayMost) {
		return q, acp.Bad("limit must be a number from 1 to %d.", replayMost)
	}
	return q, nil
}

// replay tells a page of facts, of a session that need not be open (docs/protocol/acp.md section 4).
func replay(k *call) {
	q, err := k.replayAsked()
	if err != nil {
		k.Fail(err)
		return
	}
	k.Background(func() {
		res, err := k.c.replay(context.Background(), q)
		k.Settle(res, err)
	})
}

func (c *Conn) replay(ctx context.Context, q replayAsked) (replayed, error) {
	s, err := c.d.cfg.Sessions.Open(ctx, q.id)
	if err != nil {
		return replayed{}, err
	}
	defer s.Close()
	var head session.Seq
	if err := s.InspectNow(ctx, func(v *session.View) { head = v.Head }); err != nil {
		return replayed{}, err
	}
	if q.after > head {
		return replayed{}, acp.Bad("The cursor is not one of this session.")
	}
	t := acp.NewTeller(q.id, s.Workspace(), c.clientCaps(), nil)
	t.Replay(q.after > 0)
	return c.tellPage(ctx, t, q, head)
}

// tellPage words the facts behind the cursor, up to head: as many as were asked for, or as fill a page of replayBytes. A file_change goes with
// its result.
func (c *Conn) tellPage(ctx context.Context, t *acp.Teller, q replayAsked, head session.Seq) (replayed, error) {
	res := replayed{Updates: []replayedUpdate{}, Cursor: acp.CursorText(q.after), Head: acp.CursorText(head)}
	at, size, facts := q.after, 0, 0
	var last protocol.Kind
	for {
		page, err := c.d.cfg.Sessions.Store().Read(ctx, q.id, at, outlet.PageEntries, protocol.ViewFacts)
		if err != nil {
			return replayed{}, err
		}
		for i := range page {
			e := &page[i]
			full := facts > 0 && last != protocol.KindFileChange && (facts >= q.limit || size >= replayBytes)
			if full || e.Seq > head {
				res.More = e.Seq <= head
				return res, nil
			}
			for _, told := range t.Tell(nil, page[i:i+1], false) {
				size += res.add(&told)
			}
			at, last = e.Seq, e.Kind
			res.Cursor = acp.CursorText(at)
			facts++
		}
		if len(page) < outlet.PageEntries {
			return res, nil
		}
	}
}

// add adds an update and returns its size; what is told is not always one.
func (r *replayed) add(told *acp.Told) int {
	u := replayedUpdate{Update: told.Raw()}
	if u.Update == nil {
		return 0
	}
	if told.Cursor > 0 {
		u.Meta = map[string]string{acp.MetaCursor: acp.CursorText(told.Cursor)}
	}
	r.Updates = append(r.Updates, u)
	return len(u.Update)
}
