package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

func appended(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	u := &protocol.UserMessage{}
	u.More.ID, u.More.Text, u.More.Origin = "m", "zero \x00 byte, \u2028, 😀", "user"
	want := []session.Entry{
		Entry(1, turnID(1), u), Entry(2, turnID(1), &protocol.AssistantDelta{Text: "<&>\"\\ \x00"}), Entry(3, "", &protocol.SessionRenamed{Name: "n", Title: "n"}),
	}
	must(t, Append(s, l, session.Batch{Entries: want[:2]}))
	must(t, Append(s, l, session.Batch{Entries: want[2:]}))
	for _, name := range []string{"a", "b"} {
		got := read(t, s, protocol.ViewAll)
		if len(got) != 3 {
			t.Fatalf("%s: %d entries", name, len(got))
		}
		for i := range want {
			a, _ := json.Marshal(want[i])
			b, _ := json.Marshal(got[i])
			if string(a) != string(b) || string(want[i].Event) != string(got[i].Event) || string(want[i].More) != string(got[i].More) || (want[i].Event == nil) != (got[i].Event == nil) {
				t.Errorf("%s: entry %d\n got %s\nwant %s", name, i+1, b, a)
			}
		}
		s = open(t, "b") // another process reads the same
	}
	if page, err := s.Read(ctx, id, 1, 1, protocol.ViewAll); err != nil || len(page) != 1 || page[0].Seq != 2 {
		t.Errorf("page after 1: %v, %v", page, err)
	}
	if back, err := s.ReadBack(ctx, id, 0, 2, protocol.ViewAll); err != nil || len(back) != 2 || back[0].Seq != 3 || back[1].Seq != 2 {
		t.Errorf("backwards: %v, %v", back, err)
	}
	_, err := s.Read(ctx, "nobody", 0, 1, protocol.ViewAll)
	wantErr(t, "read of an unknown session", err, session.ErrNotFound)
	m, err := s.Session(ctx, id)
	must(t, err)
	if m.Head != 3 || m.Workspace != "/w" || !m.Created.Equal(base) {
		t.Errorf("meta %+v", m)
	}
	if byConv, err := s.Conversation(ctx, "conv_"+string(id)); err != nil || byConv.ID != id {
		t.Errorf("by conversation: %v, %v", byConv.ID, err)
	}
	wantErr(t, "second create", s.Create(ctx, session.Meta{ID: id, ConversationID: "x"}), session.ErrExists)
}

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

func note(seq session.Seq) session.Batch {
	return session.Batch{Entries: []session.Entry{Entry(seq, turnID(1), &protocol.AssistantDelta{Text: "x"})}}
}

func gaps(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	must(t, Append(s, l, note(1)))
	wantErr(t, "hole", Append(s, l, note(3)), session.ErrGap)
	wantErr(t, "repeat", Append(s, l, note(1)), session.ErrGap)
	must(t, Append(s, l, note(2)))
	other := session.SessionID("20260102_101112_0000000b")
	l2 := Create(t, s, other)
	ch := make(chan error, 3)
	s.Append(l, note(9), func(err error) { ch <- err })
	s.Append(l2, note(1), func(err error) { ch <- err })
	s.Append(l, note(3), func(err error) { ch <- err })
	wantErr(t, "hole in a group", <-ch, session.ErrGap)
	must(t, <-ch)
	must(t, <-ch)
	if n := len(read(t, s, protocol.ViewAll)); n != 3 {
		t.Errorf("%d entries, want 3", n)
	}
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

func folds(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	b := note(1)
	b.Row = &session.Row{Title: "t", Fold: []byte("f1"), FoldSeq: 1}
	must(t, Append(s, l, b))
	b = note(2)
	b.Row = &session.Row{Title: "t2"}
	must(t, Append(s, l, b))
	f, seq, err := s.Fold(ctx, id)
	if err != nil || string(f) != "f1" || seq != 1 {
		t.Errorf("fold %q at %d, %v", f, seq, err)
	}
	if m, err := s.Session(ctx, id); err != nil || m.Title != "t2" {
		t.Errorf("row %+v, %v", m.Row, err)
	}
}

func closes(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	const n = 500
	order := make(chan int, n)
	for i := range n {
		s.Append(l, note(session.Seq(i+1)), func(err error) {
			if err != nil {
				t.Errorf("append %d: %v", i, err)
			}
			order <- i
		})
	}
	for i := range n {
		if got := <-order; got != i {
			t.Fatalf("acknowledge %d came at place %d", got, i)
		}
	}
	must(t, s.Close())
	must(t, s.Close())
	wantErr(t, "append after close", Append(s, l, note(n+1)), session.ErrClosed)
	if es := read(t, open(t, "b"), protocol.ViewAll); len(es) != n {
		t.Errorf("%d entries after close", len(es))
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

// isolated appends good and bad batches of several sessions at once, while the writer is busy, so that they meet in one group.
func isolated(t *testing.T, open Opener) {
	s := open(t, "a")
	good, other := Create(t, s, "good"), Create(t, s, "other")
	taken := note(1)
	taken.Keys = []session.Key{{Surface: "rind", Key: "taken"}}
	must(t, Append(s, other, taken))
	stale := other
	stale.Epoch--
	again := note(2)
	again.Keys = taken.Keys
	twice := note(2)
	twice.Keys = []session.Key{{Surface: "rind", Key: "x"}, {Surface: "rind", Key: "x"}}
	cases := []struct {
		l    session.Lease
		b    session.Batch
		want error
	}{
		{stale, note(2), session.ErrFenced},
		{session.Lease{}, note(1), session.ErrNotFound},
		{session.Lease{Session: "good"}, note(1), session.ErrFenced},
		{other, note(7), session.ErrGap},
		{other, again, session.ErrKeyUsed},
		{other, twice, session.ErrKeyUsed},
		{session.Lease{Session: "nobody", Epoch: 1}, note(1), session.ErrNotFound},
	}
	type outcome struct {
		what string
		err  error
		want error
	}
	ch := make(chan outcome, 100)
	n, seq := 0, session.Seq(0)
	for round := range 3 {
		for i, c := range cases {
			seq++
			s.Append(good, note(seq), func(err error) { ch <- outcome{fmt.Sprintf("good %d.%d", round, i), err, nil} })
			s.Append(c.l, c.b, func(err error) { ch <- outcome{fmt.Sprintf("bad %d.%d", round, i), err, c.want} })
			n += 2
		}
	}
	for range n {
		o := <-ch
		if o.want == nil && o.err != nil || o.want != nil && !errors.Is(o.err, o.want) {
			t.Errorf("%s: got %v, want %v", o.what, o.err, o.want)
		}
	}
	es, err := s.Read(ctx, "good", 0, 1000, protocol.ViewAll)
	if err != nil || len(es) != int(seq) {
		t.Errorf("%d of %d good entries, %v", len(es), seq, err)
	}
	if es, err := s.Read(ctx, "other", 0, 1000, protocol.ViewAll); err != nil || len(es) != 1 {
		t.Errorf("%d entries of refused batches, %v", len(es)-1, err)
	}
	_, err = s.Key(ctx, "other", "rind", "x")
	wantErr(t, "key of a refused batch", err, session.ErrNotFound)
}

// waiting holds up the first answer until all batches are handed over, which is a deadlock when Append waits for anything.
func waiting(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	const n = 5000
	all, ended := make(chan struct{}), make(chan error, n)
	go func() {
		for i := range n {
			s.Append(l, note(session.Seq(i+1)), func(err error) {
				<-all
				ended <- err
			})
		}
		close(all)
	}()
	select {
	case <-all:
	case <-time.After(30 * time.Second):
		t.Fatal("Append waits for the writer")
	}
	for range n {
		must(t, <-ended)
	}
}

func large(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	var b session.Batch
	for i := range 1500 {
		b.Entries = append(b.Entries, note(session.Seq(i+1)).Entries...)
	}
	b.Entries = append(b.Entries, Entry(1501, turnID(1), &protocol.AssistantMessageCompleted{Content: strings.Repeat("long ", 1<<20)}))
	bad := b
	bad.Keys = []session.Key{{Surface: "rind", Key: "k"}, {Surface: "rind", Key: "k"}}
	wantErr(t, "large batch with a bad key", Append(s, l, bad), session.ErrKeyUsed)
	if n := len(read(t, s, protocol.ViewAll)); n != 0 {
		t.Fatalf("%d entries of a refused batch", n)
	}
	must(t, Append(s, l, b))
	last, err := s.ReadBack(ctx, id, 0, 1, protocol.ViewAll)
	must(t, err)
	if len(last) != 1 || string(last[0].Event) != string(b.Entries[1500].Event) {
		t.Error("the large entry is not as it was")
	}
}

func crowd(t *testing.T, open Opener) {
	a, b := open(t, "a"), open(t, "b")
	const writers, each = 8, 60
	var wg sync.WaitGroup
	for w := range writers {
		name := session.SessionID(fmt.Sprintf("s%d", w))
		s := []session.Store{a, b}[w%2]
		l := Create(t, s, name)
		wg.Go(func() {
			acked := make(chan session.Seq, each)
			for i := range session.Seq(each) {
				s.Append(l, note(i+1), func(err error) {
					if err != nil {
						t.Errorf("%s, entry %d: %v", name, i+1, err)
					}
					acked <- i + 1
				})
			}
			for i := range session.Seq(each) {
				if got := <-acked; got != i+1 {
					t.Errorf("%s: entry %d was acknowledged in place of %d", name, got, i+1)
				}
			}
		})
		wg.Go(func() { // the other process follows
			r := []session.Store{b, a}[w%2]
			deadline := time.Now().Add(30 * time.Second)
			for at := session.Seq(0); at < each && time.Now().Before(deadline); {
				page, err := r.Read(ctx, name, at, 7, protocol.ViewAll)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				for i := range page {
					if at++; page[i].Seq != at {
						t.Errorf("%s: entry %d read in place of %d", name, page[i].Seq, at)
						return
					}
				}
			}
		})
	}
	wg.Wait()
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

func unknown(t *testing.T, open Opener) {
	s := open(t, "a")
	Create(t, s, id)
	for what, f := range map[string]func() error{
		"Session":      func() error { _, err := s.Session(ctx, "no"); return err },
		"Conversation": func() error { _, err := s.Conversation(ctx, "no"); return err },
		"Read":         func() error { _, err := s.Read(ctx, "no", 0, 1, protocol.ViewAll); return err },
		"ReadBack":     func() error { _, err := s.ReadBack(ctx, "no", 0, 1, protocol.ViewFacts); return err },
		"ReadTurn":     func() error { _, err := s.ReadTurn(ctx, "no", 0, 1, nil); return err },
		"TurnSession":  func() error { _, err := s.TurnSession(ctx, "no"); return err },
		"Fold":         func() error { _, _, err := s.Fold(ctx, "no"); return err },
		"Key":          func() error { _, err := s.Key(ctx, "no", "rind", "k"); return err },
		"a key":        func() error { _, err := s.Key(ctx, id, "rind", "k"); return err },
		"Delete":       func() error { return s.Delete(ctx, "no") },
		"Acquire":      func() error { _, err := s.Acquire(ctx, "no"); return err },
		"Post":         func() error { _, err := s.Post(ctx, "no", json.RawMessage(`{}`)); return err },
		"Outcome":      func() error { _, err := s.Outcome(ctx, 99); return err },
		"Settle":       func() error { return s.Settle(ctx, 99, json.RawMessage(`{}`)) },
	} {
		wantErr(t, what, f(), session.ErrNotFound)
	}
	must(t, s.Release(ctx, session.Lease{Session: "no", Epoch: 1}))
	if open, err := s.Open(ctx, "no"); err != nil || len(open) != 0 {
		t.Errorf("letters to nobody: %v, %v", open, err)
	}
	if gone, err := s.Withdraw(ctx, 99); err != nil || gone {
		t.Errorf("withdrew a letter that never was: %v, %v", gone, err)
	}
	if es, err := s.Read(ctx, id, 0, 1, protocol.ViewAll); err != nil || len(es) != 0 {
		t.Errorf("empty session: %v, %v", es, err)
	}
	if f, at, err := s.Fold(ctx, id); err != nil || f != nil || at != 0 {
		t.Errorf("fold of an empty session: %q at %d, %v", f, at, err)
	}
	wantErr(t, "second session of a conversation", s.Create(ctx, session.Meta{ID: "two", ConversationID: "conv_" + string(id)}), session.ErrExists)
}

func closed(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	must(t, Append(s, l, note(1)))
	bells, err := s.Watch(ctx)
	must(t, err)
	must(t, s.Close())
	for range bells { // ends with the store
	}
	for what, f := range map[string]func() error{
		"Create":   func() error { return s.Create(ctx, session.Meta{ID: "x", ConversationID: "x"}) },
		"Acquire":  func() error { _, err := s.Acquire(ctx, id); return err },
		"Append":   func() error { return Append(s, l, note(2)) },
		"Read":     func() error { _, err := s.Read(ctx, id, 0, 1, protocol.ViewAll); return err },
		"Session":  func() error { _, err := s.Session(ctx, id); return err },
		"Sessions": func() error { _, _, err := s.Sessions(ctx, session.Query{Limit: 1}); return err },
		"Turns":    func() error { _, err := s.Turns(ctx, session.TurnQuery{Limit: 1}); return err },
		"Delete":   func() error { return s.Delete(ctx, id) },
		"Post":     func() error { _, err := s.Post(ctx, id, json.RawMessage(`{}`)); return err },
		"Watch":    func() error { _, err := s.Watch(ctx); return err },
		"Health":   func() error { _, err := s.Health(ctx); return err },
		"AddRule": func() error {
			_, err := s.AddRule(ctx, session.Rule{Workspace: "/w", Tool: "bash", Pattern: "p"})
			return err
		},
		"Rules":  func() error { _, err := s.Rules(ctx, "/w"); return err },
		"a rule": func() error { _, err := s.RemoveRule(ctx, "/w", 1); return err },
	} {
		wantErr(t, what, f(), session.ErrClosed)
	}
	must(t, s.Release(ctx, l))
}
