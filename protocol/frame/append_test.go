package frame_test

import (
	"bytes"
	"testing"

	"github.com/rind-dev/rind/protocol/frame"
)

func TestFramesAreAppendedInEitherFraming(t *testing.T) {
	for _, c := range []struct {
		how  frame.Framing
		want string
	}{
		{frame.Lines, "{\"a\":\"é\"}\n2\n"},
		{frame.Headers, "Content-Length: 10\r\n\r\n{\"a\":\"é\"}Content-Length: 1\r\n\r\n2"},
	} {
		if got := frame.Append(frame.Append(nil, c.how, []byte(`{"a":"é"}`)), c.how, []byte(`2`)); string(got) != c.want {
			t.Errorf("framing %d: %q, want %q", c.how, got, c.want)
		}
	}
}

func TestWhatIsAppendedIsReadBack(t *testing.T) {
	bodies := []string{`{}`, `"` + string(bytes.Repeat([]byte("x"), 200_000)) + `"`, `[1,2]`}
	for _, how := range []frame.Framing{frame.Lines, frame.Headers} {
		var out []byte
		for _, b := range bodies {
			out = frame.Append(out, how, []byte(b))
		}
		r := frame.NewReader(bytes.NewReader(out))
		got, _, _ := r.Sniff(1)
		if got != how {
			t.Errorf("sniffed %d, wrote %d", got, how)
		}
		r.SetFraming(got)
		for _, b := range bodies {
			if f, err := r.Next(); err != nil || string(f) != b {
				t.Errorf("framing %d: read %.40q, %v", how, f, err)
			}
		}
	}
}
