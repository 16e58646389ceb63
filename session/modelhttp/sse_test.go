package modelhttp

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// readEvents reads all events, comments as "#".
func readEvents(t testing.TB, r io.Reader) (out []string, err error) {
	t.Helper()
	e := &events{r: r}
	for {
		ev, err := e.next()
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return out, err
		case ev.Comment:
			out = append(out, "#")
		default:
			out = append(out, ev.Name+"|"+string(ev.Data))
		}
	}
}

func TestEventsAreSplitWhateverTheirLineEnds(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"LF":                     {"data: a\n\ndata: b\n\n", "|a,|b"},
		"CRLF":                   {"data: a\r\n\r\ndata: b\r\n\r\n", "|a,|b"},
		"CR":                     {"data: a\r\rdata: b\r\r", "|a,|b"},
		"mixed":                  {"data: a\r\n\ndata: b\n\r\n", "|a,|b"},
		"no space":               {"data:a\n\n", "|a"},
		"two spaces":             {"data:  a \n\n", "| a "},
		"several lines":          {"data: a\ndata\ndata: b\n\n", "|a\n\nb"},
		"a name":                 {"event: x\ndata: a\n\ndata: b\n\n", "x|a,|b"},
		"a name without data":    {"event: x\n\ndata: b\n\n", "|b"},
		"empty data":             {"data:\n\n", "|"},
		"comments":               {": one\n\n:\r\n\ndata: a\n: two\ndata: b\n\n", "#,#,#,|a\nb"},
		"other fields":           {"id: 1\nretry: 10\nfoo\ndata: a\nid\n\n", "|a"},
		"a byte order mark":      {"\xEF\xBB\xBFdata: a\n\n", "|a"},
		"a mark within":          {"data: \xEF\xBB\xBFa\n\n", "|\xEF\xBB\xBFa"},
		"no blank line at last":  {"data: a\n\ndata: b", "|a,|b"},
		"an empty stream":        {"", ""},
		"a colon in the data":    {"data: {\"a\":\"b:c\"}\n\n", `|{"a":"b:c"}`},
		"a mark that ends early": {"\xEF\xBB", ""},
	} {
		for how, wrap := range map[string]func(io.Reader) io.Reader{"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "end with data": iotest.DataErrReader} {
			got, err := readEvents(t, wrap(strings.NewReader(test.in)))
			if s := strings.Join(got, ","); s != test.want || err != nil {
				t.Errorf("%s, %s: %q, %v, want %q", name, how, s, err, test.want)
			}
		}
	}
}

func TestABrokenConnectionIsNoEndOfAnEvent(t *testing.T) {
	broken := errors.New("broken")
	got, err := readEvents(t, io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)))
	if len(got) != 1 || !errors.Is(err, broken) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAnEndlessLineOrEventIsAnError(t *testing.T) {
	for name, unit := range map[string]string{"line": "x", "event": "data: " + strings.Repeat("x", 1000) + "\n"} {
		r := &repeat{unit: []byte(strings.Repeat(unit, 100))}
		if _, err := readEvents(t, r); err == nil || r.n > 3*maxEvent {
			t.Errorf("%s: %v after %d bytes", name, err, r.n)
		}
	}
}

// repeat is a reader without an end.
type repeat struct {
	unit []byte
	at   int
	n    int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.unit[r.at:])
	r.at = (r.at + n) % len(r.unit)
	r.n += n
	return n, nil
}

func FuzzEventsAreTheSameInAnyPieces(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "\xEF\xBB\xBFdata: a\r\r\n:x\revent: y\n\n", "data\ndata: [DONE]\n\n: c\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, err := readEvents(t, bytes.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []io.Reader{iotest.OneByteReader(bytes.NewReader(in)), iotest.HalfReader(bytes.NewReader(in)), iotest.DataErrReader(bytes.NewReader(in))} {
			pieces, err := readEvents(t, r)
			if err != nil || strings.Join(whole, "\x00") != strings.Join(pieces, "\x00") {
				t.Fatalf("%q: whole %q, in pieces %q, %v", in, whole, pieces, err)
			}
		}
		// Line ends are only line ends: written as CRLF the events are the same.
		if !bytes.ContainsRune(in, '\r') {
			crlf, err := readEvents(t, bytes.NewReader(bytes.ReplaceAll(in, []byte("\n"), []byte("\r\n"))))
			if err != nil || strings.Join(whole, "\x00") != strings.Join(crlf, "\x00") {
				t.Fatalf("%q: %q with CRLF %q, %v", in, whole, crlf, err)
			}
		}
	})
}
