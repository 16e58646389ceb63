package sqlite_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

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
