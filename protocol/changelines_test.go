package protocol_test

import (
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
)

func TestTheLinesOfAChangeAreCountedWholeAndToldWithinTheirBounds(t *testing.T) {
	for _, c := range []struct {
		name, text string
		lines      int
		told       int
		last       string
	}{
		{"nothing", "", 0, 0, ""},
		{"no line end at the end", "a\r\nb", 2, 2, "b"},
		{"one carriage return belongs to the line end", "a\r\r\n", 1, 1, "a\r"},
		{"120 lines", strings.Repeat("x\n", 200), 200, 120, "x"},
		{"12,000 characters", strings.Repeat(strings.Repeat("é", 5_000)+"\n", 3), 3, 2, strings.Repeat("é", 5_000)},
		{"nothing behind the first that is left out", "a\n" + strings.Repeat("x", 12_001) + "\nb\n", 3, 1, "a"},
	} {
		var l protocol.ChangeLines
		if n := l.Take("added", c.text); n != c.lines {
			t.Errorf("%s: %d lines, want %d", c.name, n, c.lines)
		}
		told := l.Told()
		if told == nil || len(told) != c.told {
			t.Errorf("%s: %d lines told, want %d", c.name, len(told), c.told)
		}
		if len(told) > 0 && told[len(told)-1] != (protocol.DiffLine{Kind: "added", Text: c.last}) {
			t.Errorf("%s: the last line told is %+v", c.name, told[len(told)-1])
		}
	}
}
