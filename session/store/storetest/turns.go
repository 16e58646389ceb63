package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// turns lists turns of two sessions that take turns being written, while further ones begin and end and one session is deleted.
func turns(t *testing.T, open Opener) {
	s := open(t, "a")
	first, second := Create(t, s, id), Create(t, s, "other")
	heads := map[session.SessionID]session.Seq{}
	write := func(l session.Lease, turn int, b protocol.Body) {
		t.Helper()
		heads[l.Session]++
		must(t, Append(s, l, session.Batch{Entries: []session.Entry{Entry(heads[l.Session], turnID(turn), b)}}))
	}
	for n := 1; n <= 6; n++ {
		l := first
		if n%2 == 0 {
			l = second
		}
		write(l, n, &protocol.TurnAccepted{})
	}
	write(first, 1, &protocol.TurnCompleted{}) // later entries of a turn change its state, not its place
	write(first, 3, &protocol.AssistantDelta{Text: "x"})
	must(t, Append(s, first, session.Batch{Entries: []session.Entry{Entry(heads[id]+1, "", &protocol.SessionRenamed{Name: "n", Title: "n"})}})) // of no turn
	heads[id]++

	list := func(s session.Store, q session.TurnQuery) []session.TurnPlace {
		t.Helper()
		page, err := s.Turns(ctx, q)
		must(t, err)
		if len(page) > q.Limit {
			t.Fatalf("%d turns, the limit was %d", len(page), q.Limit)
		}
		return page
	}
	check := func(what string, got []session.TurnPlace, want ...int) {
		t.Helper()
		var names []session.TurnID
		for _, n := range want {
			names = append(names, turnID(n))
		}
		var ids []session.TurnID
		for i, p := range got {
			ids = append(ids, p.Turn)
			if p.Place < 1 || i > 0 && p.Place >= got[i-1].Place {
				t.Errorf("%s: place %d stands at %d", what, p.Place, i)
			}
			if sid, err := s.TurnSession(ctx, p.Turn); err != nil || sid != p.Session {
				t.Errorf("%s: %s is listed in %s: %v, %v", what, p.Turn, p.Session, sid, err)
			}
			if p.Ended != (p.Turn == turnID(1)) {
				t.Errorf("%s: %s ended: %v", what, p.Turn, p.Ended)
			}
		}
		if !slices.Equal(ids, names) {
			t.Errorf("%s: %v, want %v", what, ids, names)
		}
	}
	all := list(s, session.TurnQuery{Limit: 100})
	check("all", all, 6, 5, 4, 3, 2, 1)
	check("of one session", list(s, session.TurnQuery{Session: id, Limit: 100}), 5, 3, 1)
	check("of one session, in part", list(s, session.TurnQuery{Session: "other", Before: all[0].Place, Limit: 1}), 4)
	check("of nobody", list(s, session.TurnQuery{Session: "nobody", Limit: 100}))
	check("below the first", list(s, session.TurnQuery{Before: all[5].Place, Limit: 100}))
	other := open(t, "b")
	if theirs := list(other, session.TurnQuery{Limit: 100}); fmt.Sprint(theirs) != fmt.Sprint(all) {
		t.Errorf("another process lists %v, want %v", theirs, all)
	}

	var paged []session.TurnPlace // what begins while the pages are read lies above them
	for before := int64(0); ; {
		page := list(other, session.TurnQuery{Before: before, Limit: 4})
		if len(page) == 0 {
			break
		}
		paged, before = append(paged, page...), page[len(page)-1].Place
		if len(paged) == 4 {
			write(second, 7, &protocol.TurnAccepted{})
		}
	}
	check("in pages", paged, 6, 5, 4, 3, 2, 1)
	check("with the new one", list(s, session.TurnQuery{Limit: 2}), 7, 6)

	must(t, s.Delete(ctx, "other"))
	check("after a deletion", list(s, session.TurnQuery{Limit: 100}), 5, 3, 1)
	check("of the deleted session", list(s, session.TurnQuery{Session: "other", Limit: 100}))
	write(first, 8, &protocol.TurnAccepted{}) // perhaps in the place of a deleted one
	check("after the next beginning", list(s, session.TurnQuery{Limit: 100}), 8, 5, 3, 1)
}
