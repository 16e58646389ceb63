package memory

import (
	"fmt"
	"slices"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Append implements session.Log.
func (s *Store) Append(l session.Lease, b session.Batch, done func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.closed
	s.pending = append(s.pending, func(refused error) {
		if late {
			refused = session.ErrClosed
		}
		if refused == nil {
			refused = s.append(l, b)
		}
		done(refused)
	})
	if s.idle == nil {
		s.idle = make(chan struct{})
		go s.work(s.idle)
	}
}

func (s *Store) work(idle chan struct{}) {
	defer close(idle)
	for {
		s.mu.Lock()
		if len(s.pending) == 0 {
			s.idle = nil
			s.mu.Unlock()
			return
		}
		f := s.pending[0]
		s.pending = s.pending[1:]
		var refused error
		if s.killed {
			refused = session.ErrClosed
		}
		s.mu.Unlock()
		f(refused)
	}
}

func (s *Store) append(l session.Lease, b session.Batch) error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	r, err := s.b.find(l.Session)
	if err != nil {
		return err
	}
	if owner := r.meta.Owner; r.epoch != l.Epoch || owner != s.instance && !(b.Retake && owner == "") {
		return fmt.Errorf("session %s: %w", l.Session, session.ErrFenced)
	}
	for i := range b.Entries {
		if b.Entries[i].Seq != r.meta.Head+session.Seq(i)+1 {
			return fmt.Errorf("session %s: entry %d after head %d: %w", l.Session, b.Entries[i].Seq, r.meta.Head, session.ErrGap)
		}
	}
	for i, k := range b.Keys {
		same := func(o session.Key) bool { return o.Surface == k.Surface && o.Key == k.Key }
		if _, taken := r.keys[k.Surface+"\x00"+k.Key]; taken || slices.ContainsFunc(b.Keys[:i], same) {
			return fmt.Errorf("session %s: %w", l.Session, session.ErrKeyUsed)
		}
	}
	if r.meta.Owner = s.instance; b.Release {
		r.meta.Owner = ""
	}
	for _, k := range b.Keys {
		r.keys[k.Surface+"\x00"+k.Key] = k
	}
	for _, e := range b.Entries {
		r.entries = append(r.entries, e)
		r.meta.Head = e.Seq
		s.b.track(l.Session, &e)
	}
	if b.Row != nil {
		fold, seq := r.meta.Fold, r.meta.FoldSeq
		r.meta.Row = *b.Row
		if b.Row.Fold == nil {
			r.meta.Fold, r.meta.FoldSeq = fold, seq
		}
		if b.Row.Usage != nil {
			s.b.usage = append(s.b.usage, usage{l.Session, *b.Row.Usage})
		}
		r.meta.Usage = nil
	}
	if b.Row == nil || b.Row.Activity.IsZero() {
		r.meta.Activity = time.Now().UTC().Truncate(time.Microsecond)
	}
	s.b.touch++
	r.touched = s.b.touch
	s.b.ring(s, l.Session)
	return nil
}

// track keeps what is known of a turn.
func (b *Backing) track(id session.SessionID, e *session.Entry) {
	if e.Turn == "" {
		return
	}
	t := b.turns[e.Turn]
	if t == nil {
		b.lastTurn++
		t = &turn{session: id, place: b.lastTurn}
		b.turns[e.Turn] = t
	}
	if e.Kind == protocol.KindTurnAccepted {
		body, err := protocol.Decode(e)
		t.portable = err != nil || body.(*protocol.TurnAccepted).More.Surface == protocol.SurfacePortable
	}
	if e.Kind.Info().Terminal {
		t.ended = e.Time
	}
}
