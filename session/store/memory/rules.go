package memory

import (
	"context"
	"slices"
	"time"

	"github.com/rind-dev/rind/session"
)

// AddRule implements session.Rules. A rule that replaces another gets an id of its own.
func (s *Store) AddRule(_ context.Context, r session.Rule) (session.Rule, error) {
	if err := s.enter(true); err != nil {
		return session.Rule{}, err
	}
	defer s.b.mu.Unlock()
	s.b.rules = slices.DeleteFunc(s.b.rules, func(o session.Rule) bool {
		return o.Workspace == r.Workspace && o.Tool == r.Tool && o.Pattern == r.Pattern
	})
	s.b.nextRule++
	r.ID, r.Created = s.b.nextRule, time.Now().UTC().Truncate(time.Microsecond)
	s.b.rules = append(s.b.rules, r)
	return r, nil
}

// Rules implements session.Rules.
func (s *Store) Rules(_ context.Context, workspace string) ([]session.Rule, error) {
	if err := s.enter(false); err != nil {
		return nil, err
	}
	defer s.b.mu.Unlock()
	var out []session.Rule
	for _, r := range s.b.rules {
		if r.Workspace == workspace {
			out = append(out, r)
		}
	}
	return out, nil
}

// RemoveRule implements session.Rules.
func (s *Store) RemoveRule(_ context.Context, workspace string, id int64) (bool, error) {
	if err := s.enter(true); err != nil {
		return false, err
	}
	defer s.b.mu.Unlock()
	before := len(s.b.rules)
	s.b.rules = slices.DeleteFunc(s.b.rules, func(r session.Rule) bool { return r.Workspace == workspace && r.ID == id })
	return len(s.b.rules) < before, nil
}
