package acp

import (
	"context"
	"encoding/json"

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

// replay tells a page of facts, of a session that need not be open (docs/protocol/acp.md section 4).
func replay(k *call) {
	id, err := k.params.Session()
	after := session.Seq(0)
	limit := replayFacts
	if err == nil && k.params["afterCursor"] != nil {
		var text string
		if text, err = k.params.Text("afterCursor"); err == nil {
			after, err = acp.ParseCursor(text)
		}
	}
	if raw := k.params["limit"]; err == nil && raw != nil && (json.Unmarshal(raw, &limit) != nil || limit < 1 || limit > replayMost) {
		err = acp.Bad("limit must be a number from 1 to %d.", replayMost)
	}
	if err != nil {
		k.fail(err)
		return
	}
	k.c.mu.Lock()
	caps := k.c.caps
	k.c.mu.Unlock()
	k.background(func() {
		ctx := context.Background()
		store := k.c.d.cfg.Sessions.Store()
		s, err := k.c.d.cfg.Sessions.Open(ctx, id)
		if err != nil {
			k.fail(err)
			return
		}
		defer s.Close()
		var head session.Seq
		if err := s.InspectNow(ctx, func(v *session.View) { head = v.Head }); err != nil {
			k.fail(err)
			return
		}
		if after > head {
			k.fail(acp.Bad("The cursor is not one of this session."))
			return
		}
		t := acp.NewTeller(id, s.Workspace(), caps, nil)
		t.Replay(after > 0)
		res := replayed{Updates: []replayedUpdate{}, Head: acp.CursorText(head)}
		at, size, facts := after, 0, 0
		var before protocol.Kind // a file_change goes with its result
		for !res.More {
			page, err := store.Read(ctx, id, at, 256, protocol.ViewFacts)
			if err != nil {
				k.fail(err)
				return
			}
			for i := range page {
				e := &page[i]
				if e.Seq > head || before != protocol.KindFileChange && facts > 0 && (facts >= limit || size >= replayBytes) {
					res.More = e.Seq <= head
					page = nil
					break
				}
				for _, told := range t.Tell(nil, page[i:i+1], false) {
					raw := told.Raw()
					if raw == nil {
						continue
					}
					u := replayedUpdate{Update: raw}
					if told.Cursor > 0 {
						u.Meta = map[string]string{acp.MetaCursor: acp.CursorText(told.Cursor)}
					}
					res.Updates = append(res.Updates, u)
					size += len(raw)
				}
				at, before = e.Seq, e.Kind
				facts++
			}
			if len(page) < 256 {
				break
			}
		}
		res.Cursor = acp.CursorText(at)
		k.ok(res)
	})
}
