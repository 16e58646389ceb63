package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
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
