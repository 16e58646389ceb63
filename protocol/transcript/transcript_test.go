package transcript

import (
	"strings"
	"testing"
)

func TestWhatDiffersFromRunToRunGetsAName(t *testing.T) {
	var n Names
	got := n.Stable(`{"kind":"event","method":"session/update","sequence":7,"session_id":"20260102_030405_0a1b2c3d","turn_id":"0123456789abcdef0123456789abcdef","event":{"ts":"2026-01-02T03:04:05.000001+00:00","event_id":"ffffffffffffffffffffffffffffffff","duration_ms":12}}`)
	want := `{"kind":"event","method":"session/update","sequence":<n>,"session_id":"<session1>","turn_id":"<turn1>","event":{"ts":"<time>","event_id":"<event1>","duration_ms":"<ms>"}}`
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if again := n.Stable(`"0123456789abcdef0123456789abcdef" "00000000000000000000000000000000"`); again != `"<turn1>" "<id1>"` {
		t.Errorf("again: %s", again)
	}
	if got := n.Stable(`{"cursor":41,"head_cursor":41,"next_cursor":7,"as_of_sequence":3,"x":{"cursor":0}}`); got != `{"cursor":"<cursor1>","head_cursor":"<cursor1>","next_cursor":"<cursor2>","as_of_sequence":"<n>","x":{"cursor":0}}` {
		t.Errorf("cursors: %s", got)
	}
	digest := strings.Repeat("0123456789abcdef", 4)
	if got := n.Stable(`{"sha256":"` + digest + `","history_digest":"` + digest + `"}`); got != `{"sha256":"`+digest+`","history_digest":"<digest>"}` {
		t.Errorf("digests: %s", got)
	}
	if got := n.Stable(`{"id":"system","ts":"x","role":"system","content":"a \" b"},"There is no tool \"x\". Tools: a, b."`); got != `{"id":"system","ts":"x","role":"system","content":"…"},"There is no tool \"x\". Tools: …."` {
		t.Errorf("what depends on the program: %s", got)
	}
	if ids := n.IDs("session"); len(ids) != 1 || ids[0] != "20260102_030405_0a1b2c3d" {
		t.Errorf("sessions: %v", ids)
	}
	if real := n.Real(`{"after_cursor":"<cursor2>"}`); real != `{"after_cursor":7}` {
		t.Errorf("real cursor: %s", real)
	}
	if real := n.Real(`{"turn_id":"<turn1>","x":"<turn9>"}`); real != `{"turn_id":"0123456789abcdef0123456789abcdef","x":"<turn9>"}` {
		t.Errorf("real: %s", real)
	}
}

func TestPiecesOfOneTextAreJoinedAndNothingElse(t *testing.T) {
	a := []byte(`{"kind":"event","sequence":1,"turn_id":"t","event":{"type":"assistant_delta","event_id":"1","text":"a\n"}}`)
	b := []byte(`{"kind":"event","sequence":2,"turn_id":"t","event":{"type":"assistant_delta","event_id":"2","text":"b"}}`)
	if !Merges(a, b) || string(Joined(a, b)) != `{"kind":"event","sequence":2,"turn_id":"t","event":{"type":"assistant_delta","event_id":"2","text":"a\nb"}}` {
		t.Errorf("joined %s", Joined(a, b))
	}
	whole := `{"kind":"event","sequence":2,"turn_id":"t","event":{"type":"assistant_delta","event_id":"2","text":"` // however a text is cut, the transcript is the same
	if got := Joined([]byte(whole+`a <b> & "}}`), []byte(whole+`\u2028\u0001\"é"}}`)); string(got) != whole+`a <b> & \u2028\u0001\"é"}}` {
		t.Errorf("joined %s", got)
	}
	for _, other := range []string{
		`{"kind":"event","turn_id":"u","event":{"type":"assistant_delta","text":"b"}}`, `{"kind":"event","turn_id":"t","event":{"type":"turn_completed"}}`,
		`{"kind":"response","turn_id":"t"}`, `no JSON`,
	} {
		if Merges(a, []byte(other)) {
			t.Errorf("merges with %s", other)
		}
	}
}
