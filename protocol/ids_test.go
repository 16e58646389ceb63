package protocol

import (
	"testing"
	"time"
)

// TestLaterTurnsSortBehindEarlierOnes: also the turns of years from now, and of one millisecond differ.
func TestLaterTurnsSortBehindEarlierOnes(t *testing.T) {
	var ids RandomIDs
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	last := TurnID("")
	for _, after := range []time.Duration{0, time.Millisecond, time.Second, time.Hour, 200 * 365 * 24 * time.Hour} {
		id := ids.Turn(at.Add(after))
		if id <= last || len(id) != 32 {
			t.Errorf("%s behind %s", id, last)
		}
		for _, c := range id {
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				t.Errorf("%s is not 32 lower-case hex digits", id)
			}
		}
		if again := ids.Turn(at.Add(after)); again == id || again[:12] != id[:12] {
			t.Errorf("%s and %s are of one millisecond", id, again)
		}
		last = id
	}
}
