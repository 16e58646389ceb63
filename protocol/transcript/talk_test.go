package transcript

import (
	"fmt"
	"strings"
	"testing"
)

func TestATalkIsReadRowByRow(t *testing.T) {
	rows, err := Rows("A> 1 ping {}\nA< {\"a\":1}\nB< {}\n# note\nA< {}\n\nB>> \"x\" session/prompt {\"input\":\"a b\"}\n! open go\nA> 2 ping\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, r := range rows {
		due := Due(rows, i)
		got = append(got, fmt.Sprintf("%s|%s|%s|%s|%s|%v|%v|%d,%d", r.Conn, r.Said, r.ID, r.Method, r.Params, r.Waits, r.Words, len(due["A"]), len(due["B"])))
	}
	want := []string{
		"A||1|ping|{}|true|[]|2,1", `A|{"a":1}||||false|[]|1,1`, "B|{}||||false|[]|1,0", "|||||false|[]|1,0", "A|{}||||false|[]|0,0", "|||||false|[]|0,0",
		`B||"x"|session/prompt|{"input":"a b"}|false|[]|0,0`, "|||||false|[open go]|0,0", "A||2|ping||true|[]|0,0",
	}
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
	for _, bad := range []string{"A ping", "A> ping", "!", "what"} {
		if _, err := Rows(bad); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func event(seq int, turn, kind, rest string) string {
	return fmt.Sprintf(`{"kind":"event","sequence":%d,"turn_id":%q,"event":{"type":%q%s}}`, seq, turn, kind, rest)
}

func TestLinesAreOrderedSoThatOnlyWhatIsPromisedShows(t *testing.T) {
	ask := func() *Conn {
		var c Conn
		for id, method := range map[string]string{"1": "session/prompt", "2": "ping", "3": "session/replay", "4": "shutdown"} {
			c.Asked(id, method)
		}
		return &c
	}
	end, next := event(1, "t", "turn_completed", ""), event(2, "u", "turn_started", "")
	answer, pong := `{"kind":"response","request_id":1,"result":{"turn_id":"t","outcome":"completed"}}`, `{"kind":"response","request_id":2,"result":{}}`
	waiting := `{"kind":"response","request_id":1,"result":{"turn_id":"t","outcome":"waiting"}}`
	replay, last := `{"kind":"response","request_id":3,"result":{}}`, `{"kind":"response","request_id":4,"result":{}}`
	refused := `{"kind":"response","request_id":1,"error":{}}`
	piece := func(seq int, text string) string { return event(seq, "t", "assistant_delta", `,"text":"`+text+`"`) }
	for _, c := range []struct {
		name      string
		in, want  []string
		wantError string
	}{
		{"answers that may overtake stand first", []string{end, answer, pong}, []string{pong, end, answer}, ""},
		{"an answer stands behind its terminal", []string{end, next, answer}, []string{end, answer, next}, ""},
		{"a waiting prompt and the last answer stay", []string{waiting, last}, []string{waiting, last}, ""},
		{"a refusal of a prompt stays", []string{end, refused, next}, []string{end, refused, next}, ""},
		{"a replay separates pieces", []string{piece(1, "a"), replay, piece(2, "b")}, []string{piece(1, "a"), replay, piece(2, "b")}, ""},
		{"pieces are one, whatever came between", []string{piece(1, "a"), pong, piece(2, "b"), piece(3, "c")}, []string{pong, piece(3, "abc")}, ""},
		{"an answer ahead of its terminal", []string{answer, end}, []string{answer, end}, "before the terminal"},
		{"a gap", []string{next}, []string{next}, "sequence 2"},
	} {
		conn := ask()
		var in [][]byte
		for _, l := range c.in {
			in = append(in, []byte(l))
		}
		got, err := conn.Order(in)
		if c.wantError == "" && err != nil || c.wantError != "" && (err == nil || !strings.Contains(err.Error(), c.wantError)) {
			t.Errorf("%s: error %v", c.name, err)
		}
		var lines []string
		for _, l := range got {
			lines = append(lines, string(l))
		}
		if a, b := strings.Join(lines, "\n"), strings.Join(c.want, "\n"); a != b {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, a, b)
		}
	}
	if _, err := ask().Order([][]byte{[]byte("no JSON")}); err == nil {
		t.Error("no JSON was taken")
	}
}

func TestWhatIsDueHasComeWhenItsLastTextIsWhole(t *testing.T) {
	var c Conn
	due := []string{event(1, "t", "turn_started", ""), event(3, "t", "assistant_delta", `,"text":"whole"`)}
	lines := [][]byte{[]byte(event(1, "t", "turn_started", ""))}
	for _, step := range []struct {
		text string
		said bool
	}{{"", false}, {"wh", false}, {"ol", false}, {"e", true}} {
		if step.text != "" {
			lines = append(lines, []byte(event(len(lines)+1, "t", "assistant_delta", `,"text":"`+step.text+`"`)))
		}
		if got := c.Said(lines, due); got != step.said {
			t.Errorf("after %q: %v", step.text, got)
		}
	}
	if got, err := c.Order(lines); err != nil || len(got) != 2 {
		t.Errorf("looking changed what is known: %d lines, %v", len(got), err)
	}
}
