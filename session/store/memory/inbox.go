package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"

	"github.com/rind-dev/rind/session"
)

func (b *Backing) ring(from *Store, id session.SessionID) {
	for w := range b.watchers {
		if w.store.instance == from.instance {
			continue
		}
		w.add(id)
	}
}

func (w *watcher) add(id session.SessionID) {
	w.ids[id] = true
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Watch implements session.Log. What is committed once it has returned rings; so do letters that were open before.
func (s *Store) Watch(ctx context.Context) (<-chan session.SessionID, error) {
	w := &watcher{store: s, ids: map[session.SessionID]bool{}, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, session.ErrClosed
	}
	s.watchers.Add(1)
	s.mu.Unlock()
	s.b.mu.Lock()
	s.b.watchers[w] = true
	for _, l := range s.b.letters {
		if l.Outcome == nil {
			w.add(l.Session)
		}
	}
	s.b.mu.Unlock()
	out := make(chan session.SessionID)
	go func() {
		defer s.watchers.Done()
		defer close(out)
		defer func() {
			s.b.mu.Lock()
			delete(s.b.watchers, w)
			s.b.mu.Unlock()
		}()
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.over:
				return
			case <-w.wake:
			}
			s.b.mu.Lock()
			ids := w.ids
			w.ids = map[session.SessionID]bool{}
			s.b.mu.Unlock()
			for id := range ids {
				select {
				case out <- id:
				case <-ctx.Done():
					return
				case <-s.over:
					return
				}
			}
		}
	}()
	return out, nil
}

// Post implements session.Inbox.
func (s *Store) Post(_ context.Context, id session.SessionID, body json.RawMessage) (int64, error) {
	if _, err := s.enterSession(id, true); err != nil {
		return 0, err
	}
	defer s.b.mu.Unlock()
	s.b.nextID++
	s.b.letters[s.b.nextID] = &session.Letter{ID: s.b.nextID, Session: id, Body: body}
	s.b.ring(s, id)
	return s.b.nextID, nil
}

// Open implements session.Inbox.
func (s *Store) Open(_ context.Context, id session.SessionID) ([]session.Letter, error) {
	if err := s.enter(false); err != nil {
		return nil, err
	}
	defer s.b.mu.Unlock()
	var out []session.Letter
	for _, l := range s.b.letters {
		if l.Session == id && l.Outcome == nil {
			out = append(out, *l)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out, nil
}

// Settle implements session.Inbox.
func (s *Store) Settle(_ context.Context, id int64, outcome json.RawMessage) error {
	if err := s.enter(true); err != nil {
		return err
	}
	defer s.b.mu.Unlock()
	l := s.b.letters[id]
	if l == nil || l.Outcome != nil {
		return fmt.Errorf("letter %d: %w", id, session.ErrNotFound)
	}
	l.Outcome = outcome
	return nil
}

// Outcome implements session.Inbox.
func (s *Store) Outcome(_ context.Context, id int64) (json.RawMessage, error) {
	if err := s.enter(false); err != nil {
		return nil, err
	}
	defer s.b.mu.Unlock()
	l := s.b.letters[id]
	if l == nil {
		return nil, fmt.Errorf("letter %d: %w", id, session.ErrNotFound)
	}
	return l.Outcome, nil
}

// Withdraw implements session.Inbox.
func (s *Store) Withdraw(_ context.Context, id int64) (bool, error) {
	if err := s.enter(true); err != nil {
		return false, err
	}
	defer s.b.mu.Unlock()
	l := s.b.letters[id]
	if l == nil || l.Outcome != nil {
		return false, nil
	}
	delete(s.b.letters, id)
	return true, nil
}
