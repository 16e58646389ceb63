package storetest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

func views(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	bodies := []protocol.Body{
		&protocol.UserMessage{}, &protocol.TurnStarted{}, &protocol.AssistantDelta{Text: "x"}, &protocol.TokenStatsUpdated{}, &protocol.TaskUpdated{Task: json.RawMessage(`{}`)},
		&protocol.ToolCallStarted{}, &protocol.TurnCompleted{},
	}
	var es []session.Entry
	for i, b := range bodies {
		es = append(es, Entry(session.Seq(i+1), turnID(1), b))
	}
	must(t, Append(s, l, session.Batch{Entries: es}))
	for v, want := range map[protocol.View][]session.Seq{
		protocol.ViewAll: {1, 2, 3, 4, 5, 6, 7}, protocol.ViewFacts: {1, 2, 5, 6, 7}, protocol.ViewDurable: {2, 7}, protocol.ViewTasks: {5},
	} {
		var got []session.Seq
		for _, e := range read(t, s, v) {
			got = append(got, e.Seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("view %d: got %v, want %v", v, got, want)
		}
	}
}

func pages(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	var es []session.Entry
	for i := range 40 {
		var b protocol.Body = &protocol.AssistantDelta{Text: "x"}
		if i%4 == 0 {
			b = &protocol.AssistantMessageCompleted{Content: "x"}
		}
		es = append(es, Entry(session.Seq(i+1), turnID(1), b))
	}
	must(t, Append(s, l, session.Batch{Entries: es}))
	for _, v := range []protocol.View{protocol.ViewAll, protocol.ViewFacts, protocol.ViewDurable, protocol.ViewTasks} {
		var want []session.Seq
		for i := range es {
			if es[i].In(v) {
				want = append(want, es[i].Seq)
			}
		}
		for _, limit := range []int{1, 3, 10, 100} {
			var forth, back []session.Seq
			for at := session.Seq(0); ; {
				page, err := s.Read(ctx, id, at, limit, v)
				must(t, err)
				if len(page) > limit {
					t.Fatalf("%d entries, the limit was %d", len(page), limit)
				}
				if len(page) == 0 {
					break
				}
				forth, at = append(forth, seqs(page)...), page[len(page)-1].Seq
			}
			for at := session.Seq(0); ; {
				page, err := s.ReadBack(ctx, id, at, limit, v)
				must(t, err)
				if len(page) == 0 || len(back) > 40 {
					break
				}
				back, at = append(back, seqs(page)...), page[len(page)-1].Seq
			}
			slices.Reverse(back)
			if !slices.Equal(forth, want) || !slices.Equal(back, want) {
				t.Errorf("view %d in pages of %d: forth %v, back %v, want %v", v, limit, forth, back, want)
			}
		}
	}
	if page, err := s.Read(ctx, id, 40, 10, protocol.ViewAll); err != nil || len(page) != 0 {
		t.Errorf("behind the head: %v, %v", page, err)
	}
}

func seqs(es []session.Entry) []session.Seq {
	out := make([]session.Seq, 0, len(es))
	for i := range es {
		out = append(out, es[i].Seq)
	}
	return out
}

func portable(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	var es []session.Entry
	next := int64(1)
	for i, count := range []int{1, 0, 2, 1, 0, 2} {
		e := Entry(session.Seq(i+1), turnID(1), &protocol.AssistantDelta{Text: strings.Repeat("x", 1+i*9000)})
		e.PortableFirst, e.PortableCount = next, count
		next += int64(count)
		es = append(es, e)
	}
	must(t, Append(s, l, session.Batch{Entries: es}))
	for after, want := range map[int64][]session.Seq{0: {1, 3, 4, 6}, 1: {3, 4, 6}, 2: {3, 4, 6}, 3: {4, 6}, 5: {6}, 6: nil} {
		got, err := s.ReadTurn(ctx, turnID(1), after, 100, nil)
		must(t, err)
		var seqs []session.Seq
		for _, e := range got {
			seqs = append(seqs, e.Seq)
		}
		if !slices.Equal(seqs, want) {
			t.Errorf("after %d: %v, want %v", after, seqs, want)
		}
	}
	var into session.Page // is read into again and again, and gives the same
	for range 3 {
		for after := range int64(7) {
			want, err := s.ReadTurn(ctx, turnID(1), after, 2, nil)
			must(t, err)
			got, err := s.ReadTurn(ctx, turnID(1), after, 2, &into)
			must(t, err)
			if !slices.EqualFunc(want, got, func(a, b session.Entry) bool { return reflect.DeepEqual(a, b) }) {
				t.Errorf("after %d: %v, into a page that was used: %v", after, want, got)
			}
		}
	}
	if sid, err := s.TurnSession(ctx, turnID(1)); err != nil || sid != id {
		t.Errorf("session of the turn: %v, %v", sid, err)
	}
	_, err := s.ReadTurn(ctx, turnID(9), 0, 1, nil)
	wantErr(t, "unknown turn", err, session.ErrNotFound)
}

func newer(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	e := session.Entry{Seq: 1, Turn: turnID(1), Kind: 250, Time: base, Event: json.RawMessage(`{"type":"of_tomorrow"}`), More: json.RawMessage(`{"v":9}`), PortableFirst: 1}
	odd := Entry(2, turnID(1), &protocol.TurnAccepted{})
	odd.More = json.RawMessage(`{"v":9,"surface":[1]}`)
	must(t, Append(s, l, session.Batch{Entries: []session.Entry{e, odd, Entry(3, turnID(1), &protocol.TurnCompleted{})}}))
	got := read(t, s, protocol.ViewFacts)
	if len(got) != 3 || got[0].Kind != 250 || string(got[0].Event) != string(e.Event) || string(got[0].More) != string(e.More) || string(got[1].More) != string(odd.More) {
		t.Errorf("read back %+v", got)
	}
	if n, err := s.Prune(ctx, base.AddDate(1, 0, 0)); err != nil || n != 0 {
		t.Errorf("pruned %d, %v", n, err)
	}
}

func clock(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	for i, step := range []time.Duration{0, 10 * time.Minute, -20 * time.Minute, 0, 1000 * time.Hour} {
		e := note(session.Seq(i + 1)).Entries[0]
		e.Time = base.Add(step)
		must(t, Append(s, l, session.Batch{Entries: []session.Entry{e}, Row: &session.Row{UserPrompt: true, Activity: e.Time}}))
	}
	if got := seqs(read(t, s, protocol.ViewAll)); !slices.Equal(got, []session.Seq{1, 2, 3, 4, 5}) {
		t.Errorf("read %v", got)
	}
	l2 := Create(t, s, "later") // later, by a clock that went back
	b := note(1)
	b.Row = &session.Row{UserPrompt: true, Activity: base.Add(-time.Hour)}
	must(t, Append(s, l2, b))
	ms, _, err := s.Sessions(ctx, session.Query{Limit: 5})
	if err != nil || len(ms) != 2 || ms[0].ID != "later" {
		t.Errorf("listed %v, %v", ms, err)
	}
}
