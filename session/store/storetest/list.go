package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

func lists(t *testing.T, open Opener) {
	s := open(t, "a")
	var leases []session.Lease
	for i := range 7 {
		name := session.SessionID(fmt.Sprintf("s%d", i))
		l := Create(t, s, name)
		leases = append(leases, l)
		row := &session.Row{Title: string(name), UserPrompt: i != 3, Activity: base}
		must(t, Append(s, l, session.Batch{Entries: note(1).Entries, Row: row}))
	}
	var got []session.SessionID
	page := ""
	for n := 0; ; n++ {
		ms, next, err := s.Sessions(ctx, session.Query{Limit: 2, Page: page})
		must(t, err)
		for _, m := range ms {
			got = append(got, m.ID)
		}
		if n == 0 { // touched while the list is read: must not show again
			must(t, Append(s, leases[0], session.Batch{Entries: note(2).Entries}))
		}
		if next == "" || n > 9 {
			break
		}
		page = next
	}
	if want := []session.SessionID{"s6", "s5", "s4", "s2", "s1"}; !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	ms, _, err := s.Sessions(ctx, session.Query{Limit: 9, All: true, Workspace: "/w"})
	if err != nil || len(ms) != 7 || ms[0].ID != "s0" || ms[0].Title != "s0" {
		t.Errorf("all: %d, %v", len(ms), err)
	}
	if ms, _, err := s.Sessions(ctx, session.Query{Limit: 9, Exclude: []string{"/w"}}); err != nil || len(ms) != 0 {
		t.Errorf("excluded: %d, %v", len(ms), err)
	}
	for _, bad := range []string{"bad", ".", "1.", ".1", "0.1", "-5.3", "3.-5", "1.1.1", "zzzzzzzzzzzzzzzz.1", "9 .9"} {
		if _, _, err := s.Sessions(ctx, session.Query{Limit: 9, Page: bad}); protocol.KindOf(err) != protocol.InvalidRequest {
			t.Errorf("page token %q: %v", bad, err)
		}
	}
	if _, _, err := s.Sessions(ctx, session.Query{Limit: 9, Page: "bad"}); protocol.KindOf(err) != protocol.InvalidRequest {
		t.Errorf("bad page: %v", err)
	}
}

func usages(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	for i := range 4 {
		b := note(session.Seq(i + 1))
		b.Row = &session.Row{Usage: &session.UsageSample{Time: base.AddDate(0, 0, i/2), Model: fmt.Sprintf("m%d", i%2), Input: 10 * (i%2 + 1), Cached: 1, Output: 2, Compaction: i == 3}}
		must(t, Append(s, l, b))
	}
	r, err := s.Usage(ctx, base.Add(-time.Hour))
	must(t, err)
	if len(r.Days) != 2 || r.Days[0].Name != "2026-01-02" || r.Days[0].Input != 30 || r.Days[1].Compactions != 1 {
		t.Errorf("days %+v", r.Days)
	}
	if len(r.Models) != 2 || r.Models[0].Name != "m1" || r.Models[0].Input != 40 || r.Models[0].Samples != 2 {
		t.Errorf("models %+v", r.Models)
	}
	if len(r.Sessions) != 1 || r.Sessions[0].Name != string(id) || r.Sessions[0].Output != 8 {
		t.Errorf("sessions %+v", r.Sessions)
	}
}

func rows(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	first := session.Row{
		Title: "t", Preview: "p", Activity: base, Messages: 3, ToolCalls: 2, UserPrompt: true, Metadata: json.RawMessage(`{"a":"\u0000"}`),
	}
	b := note(1)
	b.Row = &first
	must(t, Append(s, l, b))
	check := func(what string, want session.Row, head session.Seq) {
		t.Helper()
		m, err := s.Session(ctx, id)
		must(t, err)
		got := m.Row
		if !want.Activity.IsZero() && !got.Activity.Equal(want.Activity) {
			t.Errorf("%s: activity %v, want %v", what, got.Activity, want.Activity)
		}
		got.Activity, want.Activity, got.Fold, got.FoldSeq = time.Time{}, time.Time{}, nil, 0
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || m.Head != head {
			t.Errorf("%s: row %+v at %d, want %+v at %d", what, got, m.Head, want, head)
		}
	}
	check("first", first, 1)
	must(t, Append(s, l, note(2)))
	left := first
	left.Activity = time.Time{} // but for that
	check("left", left, 2)
	second := session.Row{Title: "u", Activity: base.Add(time.Hour), UserPrompt: true}
	must(t, Append(s, l, session.Batch{Row: &second})) // no entries: the head stays
	check("replaced", second, 2)
	stale := l
	stale.Epoch--
	wantErr(t, "row with a stale lease", Append(s, stale, session.Batch{Row: &first}), session.ErrFenced)
	check("refused", second, 2)
}
