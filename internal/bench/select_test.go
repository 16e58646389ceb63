package bench

import (
	"database/sql"
	"testing"
	"time"

	_ "modernc.org/sqlite"
)

// bareSelect reads every row once, with nothing of ours around it.
func bareSelect(t *testing.T, path string) time.Duration {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	began := time.Now()
	rows, err := db.Query("SELECT seq, turn, kind, time, event, more, number, count FROM entries ORDER BY session, seq")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var seq, kind, at, number, count int64
		var turn sql.NullInt64
		var event, more []byte
		if err := rows.Scan(&seq, &turn, &kind, &at, &event, &more, &number, &count); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// bareTurn is the floor of a replay of one execution: the columns of its entries, fetched in pages as they are stored, with nothing done to them.
func bareTurn(t *testing.T, path, turn string) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	page, err := db.Prepare("SELECT e.seq, e.kind, e.time, e.event, e.more, e.number, e.count FROM entries e WHERE e.turn = (SELECT id FROM turns WHERE turn = ?) AND e.count > 0 AND e.number > ? ORDER BY e.number LIMIT 256")
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	all := func() {
		var seq, kind, at, number, count int64
		var event, more []byte
		for n := 256; n == 256; {
			rows, err := page.Query(turn, number)
			if err != nil {
				t.Fatal(err)
			}
			for n = 0; rows.Next(); n++ {
				if err := rows.Scan(&seq, &kind, &at, &event, &more, &number, &count); err != nil {
					t.Fatal(err)
				}
			}
			if err := rows.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if number < 10_000 {
			t.Fatalf("the turn ends at %d", number)
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
