//go:build unix

package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/storetest"
)

// The last process on a file died, and has left a long log. The next ones all find it at once, and one of them is killed while the log is being
// recovered, or soon after. The others go on, and nothing that was acknowledged is missing.
func TestAProcessKilledWhileALogIsRecoveredTakesNobodyAlong(t *testing.T) {
	p := newPowered(t)
	for range 6 {
		p.append(p.text(40))
		p.append(p.fact())
	}
	for round := range 8 {
		path := filledCopy(t, p.now.file, p.now.wal)
		dies, _ := start(t, path, "dies", 5, "")
		lives, out := start(t, path, "lives", 0.1, "")
		time.Sleep(time.Duration(rand.IntN(30*(round+1))) * time.Millisecond / 8) // anywhere in its beginning
		_ = dies.Process.Kill()
		_ = dies.Wait()
		s := open(t, path)
		l, err := s.Acquire(t.Context(), "s")
		if err != nil || l.Head != p.now.head {
			t.Fatalf("round %d: head %d of %d, %v", round, l.Head, p.now.head, err)
		}
		e := storetest.Entry(l.Head+1, "", &protocol.SessionRenamed{Name: "n", Title: "n"})
		if err := storetest.Append(s, l, session.Batch{Entries: []session.Entry{e}}); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		if err := lives.Wait(); err != nil {
			t.Errorf("round %d: the other process: %v", round, err)
		}
		n := strings.Count(out.String(), "\n")
		if es, err := s.Read(t.Context(), "lives", 0, 1<<20, protocol.ViewAll); err != nil || len(es) != n || n == 0 {
			t.Errorf("round %d: %d entries, %d were acknowledged (%v)", round, len(es), n, err)
		}
		if es, err := s.Read(t.Context(), "s", 0, 1<<20, protocol.ViewAll); err != nil || len(es) != int(l.Head)+1 {
			t.Errorf("round %d: %d entries of %d (%v)", round, len(es), l.Head+1, err)
		}
		if h, err := s.Health(t.Context()); err != nil || h.Integrity != "ok" {
			t.Error(fmt.Sprintf("round %d: integrity %q,", round, h.Integrity), err)
		}
		_ = s.Close()
	}
}
