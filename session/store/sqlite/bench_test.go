package sqlite_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	lite "zombiezen.com/go/sqlite"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/store/storetest"
)

func benchStore(b *testing.B) *sqlite.Store {
	b.Helper()
	s, err := sqlite.Open(filepath.Join(b.TempDir(), "sessions", "rind.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

func benchLease(b *testing.B, s *sqlite.Store, id session.SessionID) session.Lease {
	b.Helper()
	if err := s.Create(b.Context(), session.Meta{ID: id, ConversationID: "conv_" + string(id), Workspace: "/w", Created: time.Unix(0, 0)}); err != nil {
		b.Fatal(err)
	}
	l, err := s.Acquire(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func fact(seq session.Seq) session.Batch {
	return session.Batch{Entries: []session.Entry{storetest.Entry(seq, "", &protocol.SessionRenamed{Name: "n", Title: "a title of some words"})}}
}

// BenchmarkSingleFact is one producer that waits for each fact to be on the disk.
func BenchmarkSingleFact(b *testing.B) {
	s := benchStore(b)
	l := benchLease(b, s, "s")
	for i := 0; b.Loop(); i++ {
		if err := storetest.Append(s, l, fact(session.Seq(i+1))); err != nil {
			b.Fatal(err)
		}
	}
}

// Benchmark64Producers is one fact of one of 64 sessions, each of which waits for its own: what shares a flush is the gain.
func Benchmark64Producers(b *testing.B) {
	const producers = 64
	s := benchStore(b)
	var leases []session.Lease
	for i := range producers {
		leases = append(leases, benchLease(b, s, session.SessionID(fmt.Sprintf("s%d", i))))
	}
	var wg sync.WaitGroup
	b.ResetTimer()
	for _, l := range leases {
		wg.Go(func() {
			for i := range (b.N + producers - 1) / producers {
				if err := storetest.Append(s, l, fact(session.Seq(i+1))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkRead10000 reads a session of 10,000 events in pages; BenchmarkBareSelect10000 is the same rows in a bare loop, for the ratio.
func BenchmarkRead10000(b *testing.B) {
	s, _ := tenThousand(b)
	for b.Loop() {
		n := 0
		for at := session.Seq(0); ; {
			page, err := s.Read(b.Context(), "s", at, 512, protocol.ViewAll)
			if err != nil {
				b.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			n, at = n+len(page), page[len(page)-1].Seq
		}
		if n != 10_000 {
			b.Fatalf("%d events", n)
		}
	}
}

func BenchmarkBareSelect10000(b *testing.B) {
	_, path := tenThousand(b)
	c, err := lite.OpenConn(path, lite.OpenReadWrite)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	st, err := c.Prepare("SELECT seq, kind, time, event, more FROM entries WHERE session = 1 ORDER BY seq")
	if err != nil {
		b.Fatal(err)
	}
	var buf [4096]byte
	for b.Loop() {
		n := 0
		for ; ; n++ {
			more, err := st.Step()
			if err != nil {
				b.Fatal(err)
			}
			if !more {
				break
			}
			_, _, _ = st.ColumnInt64(0), st.ColumnInt64(1), st.ColumnInt64(2)
			st.ColumnBytes(3, buf[:])
			st.ColumnBytes(4, buf[:])
		}
		if err := st.Reset(); err != nil || n != 10_000 {
			b.Fatalf("%d events, %v", n, err)
		}
	}
}

// BenchmarkFactsAmongIncrements reads a page of the facts of a session of 10,000 entries, one in a hundred of which is a fact.
func BenchmarkFactsAmongIncrements(b *testing.B) {
	s, _ := tenThousand(b)
	for b.Loop() {
		page, err := s.Read(b.Context(), "s", 0, 100, protocol.ViewDurable)
		if err != nil || len(page) != 100 {
			b.Fatalf("%d facts, %v", len(page), err)
		}
	}
}

func tenThousand(b *testing.B) (*sqlite.Store, string) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "sessions", "rind.db")
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	l := benchLease(b, s, "s")
	for at := session.Seq(0); at < 10_000; at += 500 {
		var batch session.Batch
		for i := range session.Seq(500) {
			var body protocol.Body = &protocol.AssistantDelta{Text: "some text of a model, as it comes"}
			if i%100 == 99 {
				body = &protocol.AssistantMessageCompleted{Content: "the whole text of a model, as it came"}
			}
			batch.Entries = append(batch.Entries, storetest.Entry(at+i+1, "00000000000000000000000000000001", body))
		}
		if err := storetest.Append(s, l, batch); err != nil {
			b.Fatal(err)
		}
	}
	return s, path
}
