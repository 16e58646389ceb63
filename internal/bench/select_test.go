package bench

import (
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
)

// bare is a connection with nothing of ours around it.
func bare(t *testing.T, path string) *sqlite.Conn {
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// rows fetches eight columns of each row, the last two of them bytes, and does nothing with them.
func rows(t *testing.T, st *sqlite.Stmt, each func(number int64)) {
	for {
		more, err := st.Step()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		for column := range 6 {
			_ = st.ColumnInt64(column)
		}
		for column := 6; column < 8; column++ {
			if n := st.ColumnLen(column); n > 0 {
				st.ColumnBytes(column, make([]byte, n))
			}
		}
		each(st.ColumnInt64(0))
	}
	if err := st.Reset(); err != nil {
		t.Fatal(err)
	}
}

// bareSelect reads every row once.
func bareSelect(t *testing.T, path string) time.Duration {
	c := bare(t, path)
	began := time.Now()
	st, err := c.Prepare("SELECT number, seq, turn, kind, time, count, event, more FROM entries ORDER BY session, seq")
	if err != nil {
		t.Fatal(err)
	}
	rows(t, st, func(int64) {})
	return time.Since(began)
}

// bareTurn is the floor of a replay of one execution: the columns of its entries, fetched in pages as they are stored.
func bareTurn(t *testing.T, path, turn string) {
	c := bare(t, path)
	st, err := c.Prepare(`SELECT number, seq, turn, kind, time, count, event, more FROM entries
		WHERE turn = (SELECT id FROM turns WHERE turn = ?) AND count > 0 AND number > ? ORDER BY number LIMIT 256`)
	if err != nil {
		t.Fatal(err)
	}
	all := func() {
		var last int64
		for n := 256; n == 256; {
			n = 0
			st.BindText(1, turn)
			st.BindInt64(2, last)
			rows(t, st, func(number int64) { last, n = number, n+1 })
		}
		if last < 10_000 {
			t.Fatalf("the turn ends at %d", last)
		}
	}
	all()
	best := time.Duration(1 << 62)
	for range 3 {
		before := cpuTime()
		for range 10 {
			all()
		}
		best = min(best, (cpuTime()-before)/10)
	}
	line("  a bare SELECT of the same entries, CPU", best.String(), "")
}
