package storetest

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/rind-dev/rind/session"
)

// Spoiling is a store that makes the most of what a session.Page allows: what was read into one is filled with noise once it is read into again,
// so that whoever kept a piece of it shows that.
type Spoiling struct {
	session.Store

	mu   sync.Mutex
	lent map[*session.Page][]session.Entry
	n    int
}

// Spoiled is how often something was spoiled.
func (s *Spoiling) Spoiled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// ReadTurn implements session.Log.
func (s *Spoiling) ReadTurn(ctx context.Context, turn session.TurnID, after int64, limit int, into *session.Page) ([]session.Entry, error) {
	if into == nil {
		return s.Store.ReadTurn(ctx, turn, after, limit, nil)
	}
	s.mu.Lock()
	old := s.lent[into]
	delete(s.lent, into)
	if len(old) > 0 {
		s.n++
	}
	s.mu.Unlock()
	noise := func(b []byte) {
		for i := range b {
			b[i] = '~'
		}
	}
	for i := range old {
		noise(old[i].Event)
		noise(old[i].More)
		old[i] = session.Entry{Seq: 1 << 50, Turn: "spoiled"}
	}
	found, err := s.Store.ReadTurn(ctx, turn, after, limit, nil)
	page := slices.Clone(found) // a store in memory gives its own
	for i := range page {
		page[i].Event, page[i].More = bytes.Clone(page[i].Event), bytes.Clone(page[i].More)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lent == nil {
		s.lent = map[*session.Page][]session.Entry{}
	}
	s.lent[into] = page
	return page, err
}
