package memory

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Read implements session.Log.
func (s *Store) Read(_ context.Context, id session.SessionID, after session.Seq, limit int, v protocol.View) ([]session.Entry, error) {
	r, err := s.enterSession(id, false)
	if err != nil {
		return nil, err
	}
	defer s.b.mu.Unlock()
	i := sort.Search(len(r.entries), func(i int) bool { return r.entries[i].Seq > after })
	var out []session.Entry
	for ; i < len(r.entries) && len(out) < limit; i++ {
		if r.entries[i].In(v) {
			out = append(out, r.entries[i])
		}
	}
	return out, nil
}

// ReadBack implements session.Log.
func (s *Store) ReadBack(_ context.Context, id session.SessionID, before session.Seq, limit int, v protocol.View) ([]session.Entry, error) {
	r, err := s.enterSession(id, false)
	if err != nil {
		return nil, err
	}
	defer s.b.mu.Unlock()
	var out []session.Entry
	for i := len(r.entries) - 1; i >= 0 && len(out) < limit; i-- {
		if (before == 0 || r.entries[i].Seq < before) && r.entries[i].In(v) {
			out = append(out, r.entries[i])
		}
	}
	return out, nil
}

// ReadTurn implements session.Log.
func (s *Store) ReadTurn(_ context.Context, id session.TurnID, after int64, limit int, _ *session.Page) ([]session.Entry, error) {
	if err := s.enter(false); err != nil {
		return nil, err
	}
	defer s.b.mu.Unlock()
	t := s.b.turns[id]
	if t == nil {
		return nil, fmt.Errorf("turn %s: %w", id, session.ErrNotFound)
	}
	r, err := s.b.find(t.session)
	if err != nil {
		return nil, err
	}
	var out []session.Entry
	for i := range r.entries {
		e := &r.entries[i]
		if e.Turn == id && e.PortableCount > 0 && e.PortableFirst+int64(e.PortableCount)-1 > after && len(out) < limit {
			out = append(out, *e)
		}
	}
	return out, nil
}

// TurnSession implements session.Log.
func (s *Store) TurnSession(_ context.Context, id session.TurnID) (session.SessionID, error) {
	if err := s.enter(false); err != nil {
		return "", err
	}
	defer s.b.mu.Unlock()
	t := s.b.turns[id]
	if t == nil {
		return "", fmt.Errorf("turn %s: %w", id, session.ErrNotFound)
	}
	return t.session, nil
}

// Turns implements session.Log.
func (s *Store) Turns(_ context.Context, q session.TurnQuery) ([]session.TurnPlace, error) {
	if err := s.enter(false); err != nil {
		return nil, err
	}
	defer s.b.mu.Unlock()
	var out []session.TurnPlace
	for id, t := range s.b.turns {
		if (q.Before == 0 || t.place < q.Before) && (q.Session == "" || q.Session == t.session) && s.b.sessions[t.session] != nil {
			out = append(out, session.TurnPlace{Turn: id, Session: t.session, Place: t.place, Ended: !t.ended.IsZero()})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Place > out[j].Place })
	return out[:min(len(out), q.Limit)], nil
}

func (b *Backing) describe(r *record) session.Meta {
	m := r.meta
	m.OwnerAlive = m.Owner != "" && b.alive[m.Owner]
	return m
}

// Session implements session.Log.
func (s *Store) Session(_ context.Context, id session.SessionID) (session.Meta, error) {
	r, err := s.enterSession(id, false)
	if err != nil {
		return session.Meta{}, err
	}
	defer s.b.mu.Unlock()
	return s.b.describe(r), nil
}

// Conversation implements session.Log.
func (s *Store) Conversation(_ context.Context, conv string) (session.Meta, error) {
	if err := s.enter(false); err != nil {
		return session.Meta{}, err
	}
	defer s.b.mu.Unlock()
	for _, r := range s.b.sessions {
		if r.meta.ConversationID == conv {
			return s.b.describe(r), nil
		}
	}
	return session.Meta{}, fmt.Errorf("conversation %s: %w", conv, session.ErrNotFound)
}

// Fold implements session.Log.
func (s *Store) Fold(_ context.Context, id session.SessionID) ([]byte, session.Seq, error) {
	r, err := s.enterSession(id, false)
	if err != nil {
		return nil, 0, err
	}
	defer s.b.mu.Unlock()
	return r.meta.Fold, r.meta.FoldSeq, nil
}

// Key implements session.Log.
func (s *Store) Key(_ context.Context, id session.SessionID, surface, key string) (session.Key, error) {
	r, err := s.enterSession(id, false)
	if err != nil {
		return session.Key{}, err
	}
	defer s.b.mu.Unlock()
	k, ok := r.keys[surface+"\x00"+key]
	if !ok {
		return session.Key{}, fmt.Errorf("key: %w", session.ErrNotFound)
	}
	return k, nil
}

// Sessions implements session.Log. A page token holds the start of the listing and the last place shown.
func (s *Store) Sessions(_ context.Context, q session.Query) ([]session.Meta, string, error) {
	if err := s.enter(false); err != nil {
		return nil, "", err
	}
	defer s.b.mu.Unlock()
	start, below := s.b.touch, s.b.touch+1
	if q.Page != "" {
		a, c, ok := strings.Cut(q.Page, ".")
		var err1, err2 error
		start, err1 = strconv.ParseInt(a, 36, 64)
		below, err2 = strconv.ParseInt(c, 36, 64)
		if !ok || err1 != nil || err2 != nil || start < 1 || below < 1 {
			return nil, "", protocol.Errorf(protocol.InvalidRequest, "Invalid page token.")
		}
	}
	var found []*record
	for _, r := range s.b.sessions {
		if r.touched > start || r.touched >= below || !q.All && !r.meta.UserPrompt || q.Workspace != "" && r.meta.Workspace != q.Workspace {
			continue
		}
		excluded := false
		for _, w := range q.Exclude {
			excluded = excluded || w == r.meta.Workspace
		}
		if !excluded {
			found = append(found, r)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].touched > found[j].touched })
	next := ""
	if len(found) > q.Limit {
		found = found[:q.Limit]
		next = strconv.FormatInt(start, 36) + "." + strconv.FormatInt(found[len(found)-1].touched, 36)
	}
	page := make([]session.Meta, 0, len(found))
	for _, r := range found {
		page = append(page, s.b.describe(r))
	}
	return page, next, nil
}
