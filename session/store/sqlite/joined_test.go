package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/store/storetest"
)

// words is what the port has to say of an append.
func words(err error) string {
	for _, e := range []error{session.ErrGap, session.ErrKeyUsed, session.ErrFenced, session.ErrNotFound} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	return fmt.Sprint(err)
}

// What waits for the writer together is written together; each batch is answered, and leaves the store, as if it had come alone.
func TestBatchesThatShareACommitAreWhatTheyAreOneByOne(t *testing.T) {
	together, alone := open(t, filepath.Join(t.TempDir(), "sessions", "rind.db")), open(t, filepath.Join(t.TempDir(), "sessions", "rind.db"))
	run, longest := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		ids := []session.SessionID{session.SessionID(fmt.Sprintf("a%d", run)), session.SessionID(fmt.Sprintf("b%d", run))}
		leases := map[*sqlite.Store][]session.Lease{}
		for _, s := range []*sqlite.Store{together, alone} {
			for _, id := range ids {
				leases[s] = append(leases[s], storetest.Create(t, s, id))
			}
		}
		var of []int // the session of each batch
		var batches []session.Batch
		heads, parked := [2]session.Seq{}, [2]bool{}
		for range rapid.IntRange(1, 12).Draw(rt, "batches") {
			k := rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(rt, "session")
			of = append(of, k)
			b, at := session.Batch{}, heads[k]
			if rapid.IntRange(0, 14).Draw(rt, "odd") == 0 {
				at++ // a gap, for all behind it too
			}
			for range rapid.SampledFrom([]int{1, 1, 2, 3, 0}).Draw(rt, "entries") {
				at++
				turn := session.TurnID(fmt.Sprintf("%031x%x", run, rapid.IntRange(0, 3).Draw(rt, "turn")))
				b.Entries = append(b.Entries, storetest.Entry(at, turn, rapid.SampledFrom([]protocol.Body{
					&protocol.AssistantDelta{Text: "x"}, &protocol.TurnAccepted{}, &protocol.TurnStarted{}, &protocol.TurnCompleted{},
				}).Draw(rt, "body")))
			}
			heads[k] = at
			if rapid.Bool().Draw(rt, "row") {
				b.Row = &session.Row{Title: fmt.Sprint("title ", at), Messages: int(at), UserPrompt: true, Activity: time.UnixMicro(int64(at))}
				if rapid.IntRange(0, 2).Draw(rt, "fold") == 0 {
					b.Row.Fold, b.Row.FoldSeq = []byte(fmt.Sprint("fold ", at)), at
				}
				if rapid.IntRange(0, 3).Draw(rt, "usage") == 0 {
					b.Row.Usage = &session.UsageSample{Time: time.Unix(int64(run), 0), Model: fmt.Sprint("m", run), Input: int(at)}
				}
			}
			if key := rapid.SampledFrom([]string{"", "", "", "k1", "k2", "k3"}).Draw(rt, "key"); key != "" {
				b.Keys = []session.Key{{Surface: "rind", Key: key, Digest: fmt.Sprint(at), Turn: "t"}}
			}
			b.Retake = parked[k] && rapid.IntRange(0, 9).Draw(rt, "forgets") > 0
			b.Release = rapid.IntRange(0, 4).Draw(rt, "release") == 0
			parked[k] = b.Release
			batches = append(batches, b)
		}
		longest = max(longest, len(batches))

		answers := make([]chan error, len(batches))
		resume := together.Pause(t.Context())
		for i, b := range batches {
			answers[i] = make(chan error, 1)
			together.Append(leases[together][of[i]], b, func(err error) { answers[i] <- err })
		}
		resume()
		for i, b := range batches {
			want := words(storetest.Append(alone, leases[alone][of[i]], b))
			if got := words(<-answers[i]); got != want {
				rt.Fatalf("batch %d: %s, alone %s", i, got, want)
			}
		}
		type state struct {
			Entries []session.Entry
			Meta    session.Meta
			Fold    string
			FoldSeq session.Seq
			Keys    []session.Key
			Usage   []session.UsageRow
			Turns   int
		}
		stateOf := func(s *sqlite.Store, id session.SessionID) (st state) {
			var err error
			check := func(e error) {
				if e != nil && !errors.Is(e, session.ErrNotFound) {
					rt.Fatal(e)
				}
			}
			st.Entries, err = s.Read(t.Context(), id, 0, 1000, protocol.ViewAll)
			check(err)
			st.Meta, err = s.Session(t.Context(), id)
			check(err)
			if st.Meta.Owner != "" {
				st.Meta.Owner = "somebody"
			}
			if time.Since(st.Meta.Activity) < time.Hour { // it is that of the append, not of a row
				st.Meta.Activity = time.Time{}
			}
			fold, seq, err := s.Fold(t.Context(), id)
			check(err)
			st.Fold, st.FoldSeq = string(fold), seq
			for _, name := range []string{"k1", "k2", "k3"} {
				key, err := s.Key(t.Context(), id, "rind", name)
				check(err)
				st.Keys = append(st.Keys, key)
			}
			r, err := s.Usage(t.Context(), time.Time{})
			check(err)
			for _, u := range r.Sessions {
				if u.Name == string(id) {
					st.Usage = append(st.Usage, u)
				}
			}
			places, err := s.Turns(t.Context(), session.TurnQuery{Session: id, Limit: 100})
			check(err)
			st.Turns = len(places)
			return st
		}
		for _, id := range ids {
			if diff := cmp.Diff(stateOf(alone, id), stateOf(together, id)); diff != "" {
				rt.Fatalf("%s, alone (-) and together (+):\n%s", id, diff)
			}
		}
	})
	if longest < 8 {
		t.Errorf("at most %d batches were written together", longest)
	}
}
