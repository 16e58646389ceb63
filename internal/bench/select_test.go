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
