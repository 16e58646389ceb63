package frame_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rind-dev/rind/protocol/frame"
)

// writes keeps every Write apart.
type writes struct {
	got []string
	err error
}

func (w *writes) Write(p []byte) (int, error) {
	w.got = append(w.got, string(p))
	return len(p), w.err
}

func TestABatchIsOneWrite(t *testing.T) {
	for _, c := range []struct {
		how  frame.Framing
		want string
	}{
		{frame.Lines, "{\"a\":\"é\"}\n2\n"},
		{frame.Headers, "Content-Length: 10\r\n\r\n{\"a\":\"é\"}Content-Length: 1\r\n\r\n2"},
	} {
		var out writes
		w := frame.NewWriter(&out, c.how)
		w.Add([]byte(`{"a":"é"}`))
		w.Add([]byte(`2`))
		if w.Len() != len(c.want) || len(out.got) != 0 {
			t.Errorf("before Flush: %d bytes gathered, %d writes", w.Len(), len(out.got))
		}
		for range 2 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if len(out.got) != 1 || out.got[0] != c.want {
			t.Errorf("wrote %q, want one %q", out.got, c.want)
		}
	}
}

func TestAFailedWriteIsTold(t *testing.T) {
	out := writes{err: errors.New("gone")}
	w := frame.NewWriter(&out, frame.Lines)
	w.Add([]byte("1"))
	if err := w.Flush(); !errors.Is(err, out.err) {
		t.Errorf("Flush = %v", err)
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	bodies := []string{`{}`, `"` + string(bytes.Repeat([]byte("x"), 200_000)) + `"`, `[1,2]`}
	for _, how := range []frame.Framing{frame.Lines, frame.Headers} {
		var out bytes.Buffer
		w := frame.NewWriter(&out, how)
		for _, b := range bodies {
			w.Add([]byte(b))
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		r := frame.NewReader(&out)
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
