package session

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/rind-dev/rind/protocol"
)

// Follower is somebody's interest in a session: a doorbell, nothing more. What there is to read stays in the log.
type Follower struct {
	s    *Session
	turn TurnID // only what this one appends is of interest; "" for all
	ring func()
	push func(json.RawMessage)
	end  func()
}

// Follow registers a follower. ring is called whenever the log has grown; push hands over an event that has no entry
// (settings of a draft); end says that the session was deleted. All three run on the session's goroutine and must not
// block. Call it from within Inspect to get a snapshot and the subscription at one point of the log.
func (v *View) Follow(ring func(), push func(event json.RawMessage), end func()) *Follower {
	f := &Follower{s: v.Session, ring: ring, push: push, end: end}
	v.Session.followers = append(v.Session.followers, f)
	return f
}

// FollowTurn is Follow for one turn: ring is called whenever the log has grown by entries of it.
func (v *View) FollowTurn(turn TurnID, ring, end func()) *Follower {
	f := v.Follow(ring, nil, end)
	f.turn = turn
	return f
}

// Stop ends the interest. ring is not called any more once it has returned on the session's goroutine.
func (f *Follower) Stop() {
	f.s.post(func() {
		for i, g := range f.s.followers {
			if g == f {
				f.s.followers = append(f.s.followers[:i:i], f.s.followers[i+1:]...)
				return
			}
		}
	})
}

func (f *Follower) gone() {
	if f.end != nil {
		f.end()
	}
}

// ring tells the followers that the log has grown.
func (s *Session) ring(by []Entry) {
	for _, f := range s.followers {
		if f.turn == "" || slices.ContainsFunc(by, func(e Entry) bool { return e.Turn == f.turn }) {
			f.ring()
		}
	}
}

// announce tells the followers an event that is not in the log.
func (s *Session) announce(b protocol.Body) {
	e, err := protocol.Encode(protocol.Head{Time: s.all.now(), EventID: s.all.cfg.IDs.Hex32(), Session: s.ID}, b)
	if err != nil {
		return
	}
	for _, f := range s.followers {
		if f.push != nil {
			f.push(e.Event)
		}
	}
}

// Read returns up to limit entries behind after, from memory where they are recent, else from the store, and the Seq up to which
// everything was acknowledged. Safe for concurrent use; entries are not to be changed.
func (s *Session) Read(ctx context.Context, after Seq, limit int) ([]Entry, Seq, error) {
	es, head, ok := s.tail.after(after, limit)
	if ok {
		return es, head, nil
	}
	es, err := s.all.cfg.Store.Read(ctx, s.ID, after, limit, protocol.ViewAll)
	if err != nil {
		return nil, head, s.all.storeError(err)
	}
	for len(es) > 0 && es[len(es)-1].Seq > head { // committed, but not acknowledged yet
		es = es[:len(es)-1]
	}
	return es, head, nil
}

// Recent returns up to limit entries behind after, if they are in memory, and the Seq up to which everything was acknowledged; ok is false
// when some of them are not. Safe for concurrent use; entries are not to be changed.
func (s *Session) Recent(after Seq, limit int) (es []Entry, head Seq, ok bool) {
	return s.tail.after(after, limit)
}
