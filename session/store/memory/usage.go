package memory

import (
	"context"
	"sort"
	"time"

	"github.com/rind-dev/rind/session"
)

// Usage implements session.Log.
func (s *Store) Usage(_ context.Context, since time.Time) (session.UsageReport, error) {
	if err := s.enter(false); err != nil {
		return session.UsageReport{}, err
	}
	defer s.b.mu.Unlock()
	days, models, sessions := map[string]*session.UsageRow{}, map[string]*session.UsageRow{}, map[string]*session.UsageRow{}
	for _, u := range s.b.usage {
		if u.sample.Time.Before(since) {
			continue
		}
		add(days, u.sample.Time.UTC().Format(time.DateOnly), u.sample)
		add(models, u.sample.Model, u.sample)
		add(sessions, string(u.session), u.sample)
	}
	rep := session.UsageReport{Days: rows(days), Models: rows(models), Sessions: rows(sessions)}
	sort.Slice(rep.Days, func(i, j int) bool { return rep.Days[i].Name < rep.Days[j].Name })
	total := func(r session.UsageRow) int64 { return r.Input + r.Output }
	sort.Slice(rep.Models, func(i, j int) bool { return total(rep.Models[i]) > total(rep.Models[j]) })
	sort.Slice(rep.Sessions, func(i, j int) bool { return rep.Sessions[i].Last.After(rep.Sessions[j].Last) })
	return rep, nil
}

func add(m map[string]*session.UsageRow, name string, u session.UsageSample) {
	r := m[name]
	if r == nil {
		r = &session.UsageRow{Name: name}
		m[name] = r
	}
	r.Input += int64(u.Input)
	r.Cached += int64(u.Cached)
	r.Output += int64(u.Output)
	r.Reasoning += int64(u.Reasoning)
	r.Samples++
	if u.Compaction {
		r.Compactions++
	}
	if u.Time.After(r.Last) {
		r.Last = u.Time
	}
}

func rows(m map[string]*session.UsageRow) []session.UsageRow {
	out := make([]session.UsageRow, 0, len(m))
	for _, r := range m {
		out = append(out, *r)
	}
	return out
}

// Health implements session.Log.
func (s *Store) Health(context.Context) (session.Health, error) {
	if err := s.enter(false); err != nil {
		return session.Health{}, err
	}
	defer s.b.mu.Unlock()
	h := session.Health{Path: ":memory:", Sessions: int64(len(s.b.sessions)), Integrity: "ok"}
	for _, r := range s.b.sessions {
		h.Entries += int64(len(r.entries))
	}
	return h, nil
}
