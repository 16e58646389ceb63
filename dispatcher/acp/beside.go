package acp

import (
	"context"
	"errors"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// besides are the executions beside the serial turn of a session, as one client is told of them (docs/protocol/portable-2026-09-02.md section 12).
// ACP has no ids of turns, so what they say is told in one piece, from the log, once they have ended and no message of the serial turn is open;
// what they ask is told at once. They keep ids alone.
type besides struct {
	store session.Store
	id    session.SessionID
	// open are those without an end where a replay ends: what they asked is not told with the rest later.
	open  map[protocol.TurnID]bool
	known map[protocol.TurnID]bool // whether a turn is one of them
	ended []protocol.TurnID        // not told yet, in the order of their ends
}

// mostKnown bounds the turns that are known; the store is asked again for what was forgotten.
const mostKnown = 1024

func newBesides(store session.Store, v *session.View) *besides {
	b := &besides{store: store, id: v.Session.ID, open: map[protocol.TurnID]bool{}, known: map[protocol.TurnID]bool{}}
	for turn := range v.Parallel {
		b.open[turn] = true
	}
	return b
}

// has reports whether an entry is of such an execution.
func (b *besides) has(e *session.Entry) (bool, error) {
	if e.Turn == "" {
		return false, nil
	}
	if beside, ok := b.known[e.Turn]; ok {
		return beside, nil
	}
	first := e
	if e.Kind != protocol.KindTurnAccepted {
		var err error
		if first, err = b.first(e.Turn); err != nil {
			return false, err
		}
	}
	beside := false
	if first != nil && first.Kind == protocol.KindTurnAccepted {
		body, err := protocol.Decode(first)
		if err != nil {
			return false, err
		}
		beside = body.(*protocol.TurnAccepted).More.Parallel
	}
	if len(b.known) >= mostKnown {
		clear(b.known)
	}
	b.known[e.Turn] = beside
	return beside, nil
}

// first is the first entry of an execution; nil of a turn that is none.
func (b *besides) first(turn protocol.TurnID) (*session.Entry, error) {
	page, err := b.store.ReadTurn(context.Background(), turn, 0, 1, nil)
	if errors.Is(err, session.ErrNotFound) || err == nil && len(page) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &page[0], nil
}

// asksPerson reports whether an entry is about something that a person is asked.
func asksPerson(k protocol.Kind) bool {
	switch k {
	case protocol.KindApprovalRequested, protocol.KindApprovalResolved, protocol.KindUserQuestionRequested, protocol.KindUserQuestionAnswered:
		return true
	}
	return false
}

// later reports whether an entry is not to be told where it stands.
func (b *besides) later(t *acp.Teller, e *session.Entry) (bool, error) {
	beside, err := b.has(e)
	return beside && !(asksPerson(e.Kind) && (!t.Replaying() || b.open[e.Turn])), err
}

// tell tells those that have ended, unless that would be in the middle of a message.
func (b *besides) tell(t *acp.Teller, dst []acp.Told) ([]acp.Told, error) {
	for len(b.ended) > 0 && !t.Speaking() {
		facts, err := b.facts(b.ended[0], t.Replaying())
		if err != nil {
			return dst, err
		}
		b.ended = b.ended[1:]
		dst = t.Whole(dst, facts, len(b.ended) > 0)
	}
	return dst, nil
}

// facts reads what is to be told of an execution that has ended.
func (b *besides) facts(turn protocol.TurnID, asked bool) (facts []session.Entry, err error) {
	first, err := b.first(turn)
	if first == nil {
		return nil, err
	}
	for at := first.Seq - 1; ; {
		page, err := b.store.Read(context.Background(), b.id, at, outlet.PageEntries, protocol.ViewFacts)
		if err != nil {
			return nil, err
		}
		for i := range page {
			e := &page[i]
			if at = e.Seq; e.Turn != turn {
				continue
			}
			if asked || !asksPerson(e.Kind) {
				facts = append(facts, *e)
			}
			if e.Kind.Info().Terminal {
				return facts, nil
			}
		}
		if len(page) < outlet.PageEntries {
			return facts, nil
		}
	}
}

// pass tells entries, each in its place or with the execution it belongs to, and reports how many were passed: all but where something cannot
// be read.
func (b *besides) pass(t *acp.Teller, told []acp.Told, entries []session.Entry, merge bool) (_ []acp.Told, n int, err error) {
	if told, err = b.tell(t, told); err != nil {
		return told, 0, err
	}
	for i := range entries {
		e := &entries[i]
		later, err := b.later(t, e)
		if err != nil {
			return t.Tell(told, entries[n:i], merge), i, err
		}
		if !later && len(b.ended) == 0 {
			continue
		}
		told = t.Tell(told, entries[n:i], merge)
		if later {
			if e.Kind.Info().Terminal {
				b.ended = append(b.ended, e.Turn)
			}
			t.Pass(e, len(b.ended) > 0)
		} else {
			told = t.Tell(told, entries[i:i+1], merge)
		}
		n = i + 1
		if told, err = b.tell(t, told); err != nil {
			return told, n, err
		}
	}
	return t.Tell(told, entries[n:], merge), len(entries), nil
}
