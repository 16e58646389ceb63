// Package storetest is the one suite every implementation of session.Store runs: each test is a sentence of the port's contract. Fault
// wraps a store to make it fail, stall or fill up.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Opener opens another process's access to one and the same store.
type Opener func(t *testing.T, instance string) session.Store

// Run runs the suite. fresh makes an empty store and returns how to open it.
func Run(t *testing.T, fresh func(t *testing.T) Opener) {
	t.Helper()
	for _, c := range []struct {
		name string
		f    func(t *testing.T, open Opener)
	}{
		{"AppendedEntriesReadBackAsTheyWere", appended},
		{"ViewsShowFactsDurableAndTaskEvents", views},
		{"AGapIsRefusedAndWhatIsBehindItToo", gaps},
		{"AStaleLeaseIsFenced", fenced},
		{"ALivingOwnerIsBusyADeadOneIsTakenOver", owners},
		{"AKeyIsClaimedOnceWithItsBatch", keys},
		{"ListsAreNewestFirstAndShowNothingTwice", lists},
		{"PortableNumbersPageATurn", portable},
		{"FoldStaysUntilANewerOne", folds},
		{"DeleteRemovesEverythingAndIDsMayReturn", deletes},
		{"WatchRingsForOthersCommitsAndLetters", watches},
		{"ALetterHasOneOutcomeOrIsWithdrawn", letters},
		{"PruneFollowsTheCatalogue", prunes},
		{"UsageIsSummedPerDayModelAndSession", usages},
		{"EveryAppendIsAnsweredInOrderAlsoAtClose", closes},
	} {
		t.Run(c.name, func(t *testing.T) { c.f(t, fresh(t)) })
	}
}

var ctx = context.Background()

const id = session.SessionID("20260102_101112_0000000a")

var base = time.Date(2026, 1, 2, 10, 11, 12, 345678000, time.UTC)

// Entry makes an encoded entry.
func Entry(seq session.Seq, turn session.TurnID, b protocol.Body) session.Entry {
	e, err := protocol.Encode(protocol.Head{Time: base.Add(time.Duration(seq) * time.Second), EventID: fmt.Sprintf("%032x", seq), Session: id, Turn: turn}, b)
	if err != nil {
		panic(err)
	}
	e.Seq, e.PortableFirst = seq, 1
	return e
}

func turnID(n int) session.TurnID { return session.TurnID(fmt.Sprintf("%032x", n)) }

// Create makes a session and takes its lease.
func Create(t *testing.T, s session.Store, id session.SessionID) session.Lease {
	t.Helper()
	if err := s.Create(ctx, session.Meta{ID: id, ConversationID: "conv_" + string(id), Workspace: "/w", Created: base}); err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Append appends and waits.
func Append(s session.Store, l session.Lease, b session.Batch) error {
	ch := make(chan error, 1)
	s.Append(l, b, func(err error) { ch <- err })
	select {
	case err := <-ch:
		return err
	case <-time.After(30 * time.Second):
		return errors.New("append was not answered in 30 s")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func read(t *testing.T, s session.Store, v protocol.View) []session.Entry {
	t.Helper()
	es, err := s.Read(ctx, id, 0, 1000, v)
	must(t, err)
	return es
}

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

func fenced(t *testing.T, open Opener) {
	a := open(t, "a")
	l := Create(t, a, id)
	must(t, Append(a, l, note(1)))
	again, err := a.Acquire(ctx, id)
	must(t, err)
	if again.Epoch != l.Epoch || again.Head != 1 {
		t.Errorf("acquired again: %+v, first %+v", again, l)
	}
	must(t, a.Release(ctx, l))
	b := open(t, "b")
	lb, err := b.Acquire(ctx, id)
	must(t, err)
	if lb.Epoch <= l.Epoch || lb.Head != 1 {
		t.Errorf("new lease %+v after %+v", lb, l)
	}
	wantErr(t, "append with the old lease", Append(a, l, note(2)), session.ErrFenced)
	must(t, a.Release(ctx, l)) // stale: no error, and no effect
	must(t, Append(b, lb, note(2)))
	_, err = b.Acquire(ctx, "nobody")
	wantErr(t, "lease of an unknown session", err, session.ErrNotFound)
}

func owners(t *testing.T, open Opener) {
	a, b := open(t, "a"), open(t, "b")
	l := Create(t, a, id)
	_, err := b.Acquire(ctx, id)
	wantErr(t, "lease of a living owner", err, session.ErrBusy)
	wantErr(t, "delete under a living owner", b.Delete(ctx, id), session.ErrBusy)
	m, err := b.Session(ctx, id)
	must(t, err)
	if !m.OwnerAlive {
		t.Error("the owner is shown as dead")
	}
	must(t, a.Close())
	m, err = b.Session(ctx, id)
	must(t, err)
	if m.OwnerAlive {
		t.Error("the closed owner is shown as alive")
	}
	lb, err := b.Acquire(ctx, id)
	must(t, err)
	if lb.Epoch <= l.Epoch {
		t.Errorf("epoch %d after %d", lb.Epoch, l.Epoch)
	}
}

func keys(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	k := session.Key{Surface: "rind", Key: "k", Digest: "d", Turn: turnID(1)}
	b := note(1)
	b.Keys = []session.Key{k}
	must(t, Append(s, l, b))
	b = note(2)
	b.Keys = []session.Key{{Surface: "rind", Key: "new", Digest: "x", Turn: turnID(2)}, k}
	wantErr(t, "taken key", Append(s, l, b), session.ErrKeyUsed)
	_, err := s.Key(ctx, id, "rind", "new")
	wantErr(t, "key of a batch that failed", err, session.ErrNotFound)
	got, err := s.Key(ctx, id, "rind", "k")
	must(t, err)
	if got != k {
		t.Errorf("key %+v", got)
	}
	_, err = s.Key(ctx, id, "acp", "k")
	wantErr(t, "key of another surface", err, session.ErrNotFound)
}

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
	if _, _, err := s.Sessions(ctx, session.Query{Limit: 9, Page: "bad"}); protocol.KindOf(err) != protocol.InvalidRequest {
		t.Errorf("bad page: %v", err)
	}
}

func portable(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	var es []session.Entry
	next := int64(1)
	for i, count := range []int{1, 0, 2, 1, 0, 2} {
		e := Entry(session.Seq(i+1), turnID(1), &protocol.AssistantDelta{Text: "x"})
		e.PortableFirst, e.PortableCount = next, count
		next += int64(count)
		es = append(es, e)
	}
	must(t, Append(s, l, session.Batch{Entries: es}))
	for after, want := range map[int64][]session.Seq{0: {1, 3, 4, 6}, 1: {3, 4, 6}, 2: {3, 4, 6}, 3: {4, 6}, 5: {6}, 6: nil} {
		got, err := s.ReadTurn(ctx, turnID(1), after, 100)
		must(t, err)
		var seqs []session.Seq
		for _, e := range got {
			seqs = append(seqs, e.Seq)
		}
		if !slices.Equal(seqs, want) {
			t.Errorf("after %d: %v, want %v", after, seqs, want)
		}
	}
	if sid, err := s.TurnSession(ctx, turnID(1)); err != nil || sid != id {
		t.Errorf("session of the turn: %v, %v", sid, err)
	}
	_, err := s.ReadTurn(ctx, turnID(9), 0, 1)
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

func deletes(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	b := note(1)
	b.Keys = []session.Key{{Surface: "rind", Key: "k"}}
	must(t, Append(s, l, b))
	must(t, s.Delete(ctx, id))
	_, err := s.Session(ctx, id)
	wantErr(t, "deleted session", err, session.ErrNotFound)
	_, err = s.TurnSession(ctx, turnID(1))
	wantErr(t, "its turn", err, session.ErrNotFound)
	wantErr(t, "append after the deletion", Append(s, l, note(2)), session.ErrNotFound)
	wantErr(t, "second delete", s.Delete(ctx, id), session.ErrNotFound)
	l = Create(t, s, id)
	must(t, Append(s, l, b))
}

func watches(t *testing.T, open Opener) {
	a, b := open(t, "a"), open(t, "b")
	l := Create(t, a, id)
	wctx, cancel := context.WithCancel(ctx)
	defer cancel()
	bells, err := b.Watch(wctx)
	must(t, err)
	expect := func(what string, do func()) {
		t.Helper()
		deadline := time.After(10 * time.Second)
		for { // the first looks of a watcher may miss what happened before it began
			do()
			select {
			case got := <-bells:
				if got != id {
					t.Errorf("%s: rang for %s", what, got)
				}
				return
			case <-time.After(300 * time.Millisecond):
			case <-deadline:
				t.Fatalf("%s: no ring", what)
			}
		}
	}
	seq := session.Seq(0)
	expect("append", func() {
		seq++
		must(t, Append(a, l, note(seq)))
	})
	expect("letter", func() {
		_, err := a.Post(ctx, id, json.RawMessage(`{}`))
		must(t, err)
	})
	cancel()
	for range bells { // closed when ctx ends
	}
}

func letters(t *testing.T, open Opener) {
	a, b := open(t, "a"), open(t, "b")
	Create(t, a, id)
	_, err := b.Post(ctx, "nobody", json.RawMessage(`{}`))
	wantErr(t, "letter to nobody", err, session.ErrNotFound)
	n, err := b.Post(ctx, id, json.RawMessage(`{"op":1}`))
	must(t, err)
	m, err := b.Post(ctx, id, json.RawMessage(`{"op":2}`))
	must(t, err)
	got, err := a.Open(ctx, id)
	must(t, err)
	if len(got) != 2 || got[0].ID != n || string(got[0].Body) != `{"op":1}` {
		t.Fatalf("open letters %+v", got)
	}
	if out, err := b.Outcome(ctx, n); err != nil || out != nil {
		t.Errorf("outcome before: %s, %v", out, err)
	}
	must(t, a.Settle(ctx, n, json.RawMessage(`{"ok":true}`)))
	if a.Settle(ctx, n, json.RawMessage(`{}`)) == nil {
		t.Error("a letter was settled twice")
	}
	if out, err := b.Outcome(ctx, n); err != nil || string(out) != `{"ok":true}` {
		t.Errorf("outcome: %s, %v", out, err)
	}
	if gone, err := b.Withdraw(ctx, n); err != nil || gone {
		t.Errorf("settled letter withdrawn: %v, %v", gone, err)
	}
	if gone, err := b.Withdraw(ctx, m); err != nil || !gone {
		t.Errorf("open letter not withdrawn: %v, %v", gone, err)
	}
	if a.Settle(ctx, m, json.RawMessage(`{}`)) == nil {
		t.Error("a withdrawn letter was settled")
	}
}

func prunes(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	var es []session.Entry
	add := func(turn session.TurnID, b protocol.Body) {
		es = append(es, Entry(session.Seq(len(es)+1), turn, b))
	}
	for n, surface := range []string{protocol.SurfaceEditor, protocol.SurfacePortable, protocol.SurfaceEditor} {
		acc := &protocol.TurnAccepted{}
		acc.More.Surface = surface
		turn := turnID(n + 1)
		add(turn, acc)
		add(turn, &protocol.ContextBuilt{})
		add(turn, &protocol.AssistantDelta{Text: "x"})
		add(turn, &protocol.ToolInputDelta{Delta: "x"})
		add(turn, &protocol.AssistantMessageCompleted{Content: "x"})
		if n < 2 {
			add(turn, &protocol.TurnCompleted{})
		}
	}
	must(t, Append(s, l, session.Batch{Entries: es}))
	n, err := s.Prune(ctx, base.Add(time.Hour))
	must(t, err)
	var got []session.Seq
	for _, e := range read(t, s, protocol.ViewAll) {
		got = append(got, e.Seq)
	}
	// 1-6: the editor's turn loses context, text and arguments. 7-12: the portable one keeps its text. 13-17 is open: nothing goes.
	if want := []session.Seq{1, 5, 6, 7, 9, 11, 12, 13, 14, 15, 16, 17}; !slices.Equal(got, want) || n != 5 {
		t.Errorf("left %v, removed %d, want %v", got, n, want)
	}
	must(t, Append(s, l, note(18)))
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
