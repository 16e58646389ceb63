package memory_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
	"github.com/rind-dev/rind/session/store/storetest"
)

// batch makes a batch of n entries behind at.
func batch(at session.Seq, n int) session.Batch {
	var b session.Batch
	for i := range session.Seq(n) {
		b.Entries = append(b.Entries, storetest.Entry(at+i+1, "", &protocol.SessionRenamed{Name: "n", Title: "n"}))
	}
	return b
}

// TestAFaultStrikesWhereItWasPlanned appends batches of two entries until one is refused or never answered.
func TestAFaultStrikesWhereItWasPlanned(t *testing.T) {
	odd := errors.New("odd")
	for _, c := range []struct {
		name   string
		plan   func(*storetest.Fault)
		acked  int // batches
		stored int // entries
		err    error
	}{
		{"nothing", func(*storetest.Fault) {}, 5, 10, nil},
		{"fails at an entry", func(f *storetest.Fault) { f.FailAt(6, odd) }, 2, 4, odd},
		{"fails at a batch", func(f *storetest.Fault) { f.FailBatchAt(4, odd) }, 3, 6, odd},
		{"fills up", func(f *storetest.Fault) { f.FillUpAt(1) }, 0, 0, session.ErrFull},
		{"dies before the batch is down", func(f *storetest.Fault) { f.DieAt(5, false) }, 2, 4, nil},
		{"dies after the batch is down", func(f *storetest.Fault) { f.DieAt(5, true) }, 2, 6, nil},
		{"dies at a batch", func(f *storetest.Fault) { f.DieAtBatch(3, true) }, 2, 6, nil},
		{"tears a batch", func(f *storetest.Fault) { f.TearAt(6) }, 2, 5, nil},
		{"tears at a boundary", func(f *storetest.Fault) { f.TearAt(5) }, 2, 4, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			backing := memory.NewBacking()
			f := storetest.NewFault(backing.Open("a"))
			l := storetest.Create(t, f, "s")
			c.plan(f)
			acked := 0
			var failed error
			answers := make(chan error, 1)
			for i := range 5 {
				f.Append(l, batch(session.Seq(2*i), 2), func(err error) { answers <- err })
				if f.Dead() {
					continue
				}
				if err := <-answers; err == nil {
					acked++
				} else if failed == nil {
					failed = err
				}
			}
			if err := f.Close(); err != nil { // waits for what a dead process had under way
				t.Fatal(err)
			}
			if acked != c.acked || !errors.Is(failed, c.err) {
				t.Errorf("%d batches acknowledged, %v; want %d, %v", acked, failed, c.acked, c.err)
			}
			if len(f.Order()) != 2*c.acked {
				t.Errorf("order %v", f.Order())
			}
			if len(answers) > 0 {
				t.Error("a dead process was answered")
			}
			after := backing.Open("b")
			es, err := after.Read(t.Context(), "s", 0, 20, protocol.ViewAll)
			if err != nil || len(es) != c.stored {
				t.Errorf("%d entries are stored, want %d (%v)", len(es), c.stored, err)
			}
			_ = after.Close()
		})
	}
}

func TestAStalledAppendIsStoredButNotAnswered(t *testing.T) {
	f := storetest.NewFault(memory.New())
	l := storetest.Create(t, f, "s")
	release := f.Stall()
	answer := make(chan error, 1)
	f.Append(l, batch(0, 1), func(err error) { answer <- err })
	for es := []session.Entry(nil); len(es) == 0; {
		var err error
		if es, err = f.Read(t.Context(), "s", 0, 1, protocol.ViewAll); err != nil {
			t.Fatal(err)
		}
	}
	f.Mark("asked")
	select {
	case err := <-answer:
		t.Errorf("answered with %v", err)
	default:
	}
	release()
	if err := <-answer; err != nil {
		t.Error(err)
	}
	if got := f.Order(); !slices.Equal(got, []string{"asked", "write 1"}) {
		t.Errorf("order %v", got)
	}
	_ = f.Close()
}
