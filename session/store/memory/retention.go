package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Delete implements session.Log.
func (s *Store) Delete(_ context.Context, id session.SessionID) error {
	r, err := s.enterSession(id, true)
	if err != nil {
		return err
	}
	defer s.b.mu.Unlock()
	if o := r.meta.Owner; o != "" && o != s.instance && s.b.alive[o] {
		return fmt.Errorf("session %s: %w", id, session.ErrBusy)
	}
	delete(s.b.sessions, id)
	s.b.ring(s, "")
	for t, rec := range s.b.turns {
		if rec.session == id {
			delete(s.b.turns, t)
		}
	}
	for l, letter := range s.b.letters {
		if letter.Session == id {
			delete(s.b.letters, l)
		}
	}
	s.b.usage = slices.DeleteFunc(s.b.usage, func(u usage) bool { return u.session == id })
	return nil
}

// Prune implements session.Log.
func (s *Store) Prune(_ context.Context, before time.Time) (int, error) {
	if err := s.enter(true); err != nil {
		return 0, err
	}
	defer s.b.mu.Unlock()
	removed := 0
	for _, r := range s.b.sessions {
		newest := map[protocol.Kind]session.Seq{}
		for i := range r.entries {
			newest[r.entries[i].Kind] = r.entries[i].Seq
		}
		kept := r.entries[:0:0]
		for _, e := range r.entries {
			if s.b.prunable(&e, before, newest) {
				removed++
				continue
			}
			kept = append(kept, e)
		}
		r.entries = kept
	}
	return removed, nil
}

func (b *Backing) prunable(e *session.Entry, before time.Time, newest map[protocol.Kind]session.Seq) bool {
	prune := e.Kind.Info().Prune
	if prune == protocol.Keep || prune == protocol.PruneOlder && newest[e.Kind] == e.Seq {
		return false
	}
	ended, portable := e.Time, false
	if e.Turn != "" {
		t := b.turns[e.Turn]
		ended, portable = t.ended, t.portable
	}
	if ended.IsZero() || !ended.Before(before) {
		return false
	}
	return prune != protocol.PruneEditor || !portable
}
