package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/store/storetest"
)

// TestCursorsNeverGoBackWhoeverWrites: other processes follow by the numbers of entries and by the order of activity. Several write at the same
// time, are rolled back, begin anew on another connection, and delete what is newest; a trigger notes each number that is given.
func TestCursorsNeverGoBackWhoeverWrites(t *testing.T) {
	path := filled(t)
	query(t, path, `CREATE TABLE given (id INTEGER PRIMARY KEY, entry INTEGER, touched INTEGER);
		CREATE TRIGGER given_entry AFTER INSERT ON entries BEGIN INSERT INTO given (entry) VALUES (new.id); END;
		CREATE TRIGGER given_made AFTER INSERT ON sessions BEGIN INSERT INTO given (touched) VALUES (new.touched); END;
		CREATE TRIGGER given_place AFTER UPDATE ON sessions WHEN new.touched <> old.touched BEGIN INSERT INTO given (touched) VALUES (new.touched); END`)
	watching := open(t, path)
	rings, err := watching.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const writers, rounds = 4, 25
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			s := open(t, path)
			id := session.SessionID(fmt.Sprintf("w%d", i))
			l := storetest.Create(t, s, id)
			seq := session.Seq(0)
			for n := range rounds {
				full := i < 2 && n%6 == 5
				if full {
					s.LimitPages(t.Context(), 1)
				}
				var b session.Batch
				for k := range session.Seq(3) {
					b.Entries = append(b.Entries, storetest.Entry(seq+k+1, "", &protocol.SessionRenamed{Name: "n", Title: strings.Repeat("t", 3000)}))
				}
				err := storetest.Append(s, l, b)
				switch {
				case full && errors.Is(err, session.ErrFull): // rolled back, and its connection is made anew
				case err != nil:
					t.Errorf("writer %d, round %d: %v", i, n, err)
					return
				default:
					seq += 3
				}
				if i == 3 && n%5 == 4 { // the newest there is
					gone := session.SessionID(fmt.Sprintf("gone%d", n))
					l := storetest.Create(t, s, gone)
					if err := storetest.Append(s, l, fact(1)); err != nil {
						t.Error(err)
					}
					if err := s.Delete(t.Context(), gone); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	last := map[session.SessionID]bool{}
	for waiting := true; waiting; {
		select {
		case id := <-rings:
			last[id] = true
		case <-done:
			waiting = false
		}
	}
	for deadline := time.After(10 * time.Second); len(last) < writers; {
		select {
		case id := <-rings:
			if strings.HasPrefix(string(id), "w") {
				last[id] = true
			}
		case <-deadline:
			t.Fatalf("rung for %v", last)
		}
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, column := range []string{"entry", "touched"} {
		var n, back int
		q := fmt.Sprintf("SELECT count(*), count(*) FILTER (WHERE is_back) FROM (SELECT %[1]s <= lag(%[1]s, 1, 0) OVER (ORDER BY id) AS is_back FROM given WHERE %[1]s IS NOT NULL)", column)
		if err := db.QueryRow(q).Scan(&n, &back); err != nil {
			t.Fatal(err)
		}
		if n < writers*(rounds-5) || back > 0 {
			t.Errorf("%s: %d were given, %d of them not above the one before", column, n, back)
		}
	}
}

// odd is text as nobody would write it.
const odd = "nul \x00 in it, \xff\xfe no UTF-8, \xed\xa0\x80 half a pair, ' \" ; -- ?1 \\ \r\n\t \u2028 end \x00"

func TestAnyTextAndAnySizeComeBackToTheByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions", "rind.db")
	s := open(t, path)
	ctx := t.Context()
	meta := session.Meta{
		ID: session.SessionID("id " + odd), ConversationID: "conversation " + odd, Workspace: "/w" + odd, Parent: odd, Created: time.UnixMicro(1_700_000_000_000_001).UTC(),
		Row: session.Row{
			Title: odd, Preview: strings.Repeat(odd, 1000), Metadata: []byte(`{"m":"x"}`), Activity: time.UnixMicro(1_700_000_000_000_002).UTC(), UserPrompt: true,
		},
	}
	if err := s.Create(ctx, meta); err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(ctx, meta.ID)
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat(`a\u0000ä€😀 `, 10<<20/16)
	turn := session.TurnID("turn " + odd)
	want := []session.Entry{storetest.Entry(1, turn, &protocol.TurnAccepted{})}
	for i, text := range []string{big, "", "x", big + "!", strings.Repeat("y", 4096), strings.Repeat("z", 1<<20)} {
		e := storetest.Entry(session.Seq(i+2), turn, &protocol.AssistantDelta{Text: "t"})
		e.Event, e.More = []byte(`{"text":"`+text+`"}`), []byte(`{"v":1,"b":"`+text+`"}`)
		e.PortableFirst, e.PortableCount = int64(i+1), 1
		want = append(want, e)
	}
	key := session.Key{Surface: "s" + odd, Key: "k" + odd, Digest: "d" + odd, Turn: turn}
	fold := bytes.Repeat([]byte{0, 1, 255}, 1<<20)
	if err := storetest.Append(s, l, session.Batch{
		Entries: want, Keys: []session.Key{key},
		Row: &session.Row{Title: odd, Preview: meta.Preview, Metadata: meta.Metadata, Fold: fold, FoldSeq: 3, UserPrompt: true, Activity: meta.Activity},
	}); err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"letter":"` + big + `"}`)
	letter, err := s.Post(ctx, meta.ID, body)
	if err != nil {
		t.Fatal(err)
	}
	rule, err := s.AddRule(ctx, session.Rule{Workspace: meta.Workspace, Tool: odd, Pattern: odd + "2", Allow: true})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	s = open(t, path)
	same := func(what string, want, got any, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(want, got) {
			t.Errorf("%s is not what was written (%v)", what, err)
		}
	}
	meta.Head = 7
	got, err := s.Session(ctx, meta.ID)
	got.Owner, got.OwnerAlive = "", false
	same("the session", meta, got, err)
	got, err = s.Conversation(ctx, meta.ConversationID)
	same("its conversation", meta.ID, got.ID, err)
	es, err := s.Read(ctx, meta.ID, 0, 100, protocol.ViewAll)
	same("the log", want, es, err)
	var into session.Page
	for range 2 {
		es, err = s.ReadTurn(ctx, turn, 0, 100, &into)
		same("the turn", want[1:], es, err)
	}
	k, err := s.Key(ctx, meta.ID, key.Surface, key.Key)
	same("the key", key, k, err)
	f, at, err := s.Fold(ctx, meta.ID)
	same("the fold", fold, f, err)
	same("its place", session.Seq(3), at, err)
	letters, err := s.Open(ctx, meta.ID)
	same("the letters", []session.Letter{{ID: letter, Session: meta.ID, Body: body}}, letters, err)
	rules, err := s.Rules(ctx, meta.Workspace)
	same("the rules", []session.Rule{rule}, rules, err)
	list, _, err := s.Sessions(ctx, session.Query{Limit: 9, Workspace: meta.Workspace, Exclude: []string{odd}})
	same("the list", 1, len(list), err)
}

func TestALongLogIsReadFromBothEndsToTheEntry(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sessions", "rind.db"))
	l := storetest.Create(t, s, "s")
	const entries, each = 100_000, 1000
	acks := make(chan error, entries/each)
	for n := session.Seq(0); n < entries; n += each {
		var b session.Batch
		for i := range session.Seq(each) {
			b.Entries = append(b.Entries, session.Entry{Seq: n + i + 1, Kind: protocol.KindAssistantDelta, Time: time.UnixMicro(int64(n + i)).UTC(), Event: fmt.Appendf(nil, "%d", n+i+1)})
		}
		s.Append(l, b, func(err error) { acks <- err })
	}
	for range entries / each {
		if err := <-acks; err != nil {
			t.Fatal(err)
		}
	}
	check := func(e *session.Entry, seq session.Seq) {
		if e.Seq != seq || string(e.Event) != fmt.Sprint(seq) || e.Time != time.UnixMicro(int64(seq-1)).UTC() {
			t.Fatalf("entry %d is %d: %s at %s", seq, e.Seq, e.Event, e.Time)
		}
	}
	seq := session.Seq(0)
	for {
		page, err := s.Read(t.Context(), "s", seq, 1024, protocol.ViewAll)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			seq++
			check(&page[i], seq)
		}
	}
	if seq != entries {
		t.Fatalf("%d entries were read", seq)
	}
	for seq > 0 {
		page, err := s.ReadBack(t.Context(), "s", seq+1, 1024, protocol.ViewAll)
		if err != nil || len(page) == 0 {
			t.Fatalf("behind %d: %v", seq, err)
		}
		for i := range page {
			check(&page[i], seq)
			seq--
		}
	}
}

// TestManyGoroutinesShareFewConnections is for the race detector: connections have no lock of their own.
func TestManyGoroutinesShareFewConnections(t *testing.T) {
	path := filled(t)
	stores := []*sqlite.Store{open(t, path), open(t, path)}
	var all sync.WaitGroup
	ends := time.Now().Add(500 * time.Millisecond)
	for i := range 24 {
		s := stores[i%2]
		all.Go(func() {
			id := session.SessionID(fmt.Sprintf("m%d", i))
			if i < 6 {
				l := storetest.Create(t, s, id)
				for seq := session.Seq(1); time.Now().Before(ends); seq++ {
					if err := storetest.Append(s, l, fact(seq)); err != nil {
						t.Error(err)
						return
					}
				}
				return
			}
			for time.Now().Before(ends) {
				if es, err := s.Read(t.Context(), first, 0, 10, protocol.ViewAll); err != nil || len(es) != 3 {
					t.Errorf("%d entries, %v", len(es), err)
				}
				if _, _, err := s.Sessions(t.Context(), session.Query{Limit: 5, All: true}); err != nil {
					t.Error(err)
				}
				if _, err := s.Outcome(t.Context(), 1); !errors.Is(err, session.ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
