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

// replayedUpdate is one of its rows: an update, or what a hosted agent said that is none of ours.
type replayedUpdate struct {
	Update        json.RawMessage   `json:"update,omitempty"`
	ProviderEvent json.RawMessage   `json:"providerEvent,omitempty"`
	Meta          map[string]string `json:"_meta,omitempty"`
}

// replayAsked is what of a log _rind/session/replay is to tell.
type replayAsked struct {
	id    session.SessionID
	after session.Seq
	limit int // facts
	// hosted asks for the provider.event notes beside the facts.
	hosted bool
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
	if raw := k.params["hosted"]; raw != nil && json.Unmarshal(raw, &q.hosted) != nil {
		return q, acp.Bad("hosted must be true or false.")
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
	var b *besides
	if err := s.InspectNow(ctx, func(v *session.View) { head, b = v.Head, newBesides(c.d.cfg.Sessions.Store(), v) }); err != nil {
		return replayed{}, err
	}
	if q.after > head {
		return replayed{}, acp.Bad("The cursor is not one of this session.")
	}
	t := acp.NewTeller(q.id, s.Workspace(), c.clientCaps(), nil)
	t.Replay(q.after > 0)
	return c.tellPage(ctx, t, b, q, head)
}

// tellPage words the facts behind the cursor, up to head: as many as were asked for, or as fit into replayBytes. One that is longer by itself is
// a page of its own. A page never ends between a file_change and the result it goes with.
func (c *Conn) tellPage(ctx context.Context, t *acp.Teller, b *besides, q replayAsked, head session.Seq) (replayed, error) {
	res := replayed{Updates: []replayedUpdate{}, Head: acp.CursorText(head)}
	end := replayEnd{at: q.after}
	done := func(more bool) (replayed, error) {
		res.Updates, res.Cursor, res.More = res.Updates[:end.updates], acp.CursorText(end.at), more
		return res, nil
	}
	view := protocol.ViewFacts
	if q.hosted {
		view = protocol.ViewAll
	}
	at, size, facts := q.after, 0, 0
	for {
		page, err := c.d.cfg.Sessions.Store().Read(ctx, q.id, at, outlet.PageEntries, view)
		if err != nil {
			return replayed{}, err
		}
		for i := range page {
			e := &page[i]
			if e.Seq > head {
				return done(false)
			}
			if facts >= q.limit && end.at == at {
				return done(true)
			}
			switch {
			case e.Class() == protocol.Fact:
				facts++
				told, _, err := b.pass(t, nil, page[i:i+1], false)
				if err != nil {
					return replayed{}, err
				}
				for j := range told {
					size += res.add(&told[j])
				}
			case e.Kind == protocol.KindProviderEvent:
				size += res.addEvent(e)
			}
			if size > replayBytes && end.at > q.after {
				return done(true)
			}
			if at = e.Seq; e.Kind != protocol.KindFileChange {
				end = replayEnd{at, len(res.Updates)}
			}
		}
		if len(page) < outlet.PageEntries {
			return done(false)
		}
	}
}

// replayEnd is where a page may end.
type replayEnd struct {
	at      session.Seq
	updates int
}

// addEvent adds what a hosted agent said, as it was sent, and returns its size.
func (r *replayed) addEvent(e *protocol.Entry) int {
	b, err := protocol.Decode(e)
	event, ok := b.(*protocol.ProviderEvent)
	if err != nil || !ok || len(event.More.Data) == 0 {
		return 0
	}
	r.Updates = append(r.Updates, replayedUpdate{ProviderEvent: event.More.Data})
	return len(event.More.Data)
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
