package frame_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/protocol/frame"
)

// all reads to the end and returns what came, faults as their text.
func all(r *frame.Reader) []string {
	var out []string
	for {
		b, err := r.Next()
		switch {
		case err == nil:
			out = append(out, string(b))
		case errors.Is(err, io.EOF):
			return out
		default:
			out = append(out, "error: "+err.Error())
			if !errors.Is(err, frame.ErrTooLong) && !errors.Is(err, frame.ErrUTF8) && !errors.Is(err, frame.ErrDepth) {
				return out
			}
		}
	}
}

const (
	tooLong   = "error: frame exceeds the bound of bytes"
	badUTF8   = "error: frame is not valid UTF-8"
	tooDeep   = "error: nesting exceeds 1000 levels"
	badHeader = "error: header block has no valid Content-Length"
	cut       = "error: unexpected EOF"
)

func TestALineEndsAtLFAndNowhereElse(t *testing.T) {
	bom := "\xef\xbb\xbf"
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"two lines", "{}\n[1]\n", []string{"{}", "[1]"}},
		{"CRLF and CR CR LF", "1\r\n2\r\r\n3\n", []string{"1", "2", "3"}},
		{"a CR in the middle", "{}\r{}\n1\n", []string{"{}\r{}", "1"}},
		{"U+2028, U+2029 and U+0085 are text", "\"a\u2028b\u2029c\u0085d\"\n", []string{"\"a\u2028b\u2029c\u0085d\""}},
		{"blank lines", "\n  \n\t\r\n1\n\n\n2\n \n", []string{"1", "2"}},
		{"a byte order mark first", bom + "1\n2\n", []string{"1", "2"}},
		{"one behind blank lines", "\n\r\n" + bom + "1\n", []string{"1"}},
		{"one alone on the first line", bom + "\n1\n", []string{"1"}},
		{"one before a later line is content", "1\n" + bom + "2\n", []string{"1", bom + "2"}},
		{"only half of one", "\xef\xbb\n1\n", []string{badUTF8, "1"}},
		{"an unterminated line", "1\n{\"a\":1}", []string{"1", cut}},
		{"an end in white space", "1\n  \r", []string{"1"}},
		{"bytes that are not UTF-8", "\xff\xfe\n\xc3\x28\n1\n", []string{badUTF8, badUTF8, "1"}},
		{"nothing", "", nil},
		{"nothing but a mark", bom, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, wrap := range readers {
				if diff := cmp.Diff(c.want, all(frame.NewReader(wrap(strings.NewReader(c.in))))); diff != "" {
					t.Errorf("read %s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

// readers are the ways bytes may arrive.
var readers = map[string]func(io.Reader) io.Reader{
	"at once":         func(r io.Reader) io.Reader { return r },
	"byte by byte":    iotest.OneByteReader,
	"in halves":       iotest.HalfReader,
	"end with a read": iotest.DataErrReader,
}

func TestHeaderFramingReadsBodiesByTheirLength(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"two", "Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n[1]", []string{"{}", "[1]"}},
		{"any case and other headers", "content-TYPE: x; charset=utf-8\r\nCONTENT-length:2\r\n\r\n{}", []string{"{}"}},
		{"LF alone", "Content-Length: 2\n\n{}", []string{"{}"}},
		{"newlines in the body and after it", "Content-Length: 4\r\n\r\n{\n\n}\r\n\r\nContent-Length: 1\r\n\r\n1\n", []string{"{\n\n}", "1"}},
		{"a byte order mark first", "\xef\xbb\xbfContent-Length: 1\r\n\r\n1", []string{"1"}},
		{"the same length twice", "Content-Length: 1\r\nContent-Length: 1\r\n\r\n1", []string{"1"}},
		{"an empty body", "Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\n1", []string{"", "1"}},
		{"a body that is not UTF-8", "Content-Length: 1\r\n\r\n\xffContent-Length: 1\r\n\r\n1", []string{badUTF8, "1"}},
		{"two lengths", "Content-Length: 1\r\nContent-Length: 2\r\n\r\n11", []string{badHeader}},
		{"no length", "Content-Type: x\r\n\r\n{}", []string{badHeader}},
		{"a negative length", "Content-Length: -1\r\n\r\n{}", []string{badHeader}},
		{"a length with a sign", "Content-Length: +1\r\n\r\n1", []string{badHeader}},
		{"a length that is no number", "Content-Length: 0x10\r\n\r\n{}", []string{badHeader}},
		{"a length beyond any", "Content-Length: 99999999999999999999\r\n\r\n{}", []string{badHeader}},
		{"a block over the bound", "Content-Length: 1\r\nX: " + strings.Repeat("a", frame.MaxHeader) + "\r\n\r\n1", []string{badHeader}},
		{"a block over the bound that does not end", strings.Repeat("a", frame.MaxHeader+1), []string{badHeader}},
		{"an end in the block", "Content-Length: 1\r\n", []string{cut}},
		{"an end before the body", "Content-Length: 1\r\n\r\n", []string{cut}},
		{"an end in the body", "Content-Length: 3\r\n\r\n{}", []string{cut}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, wrap := range readers {
				r := frame.NewReader(wrap(strings.NewReader(c.in)))
				r.SetFraming(frame.Headers)
				if diff := cmp.Diff(c.want, all(r)); diff != "" {
					t.Errorf("read %s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func TestTheBlockOfHeadersMayBeExactlyAtItsBound(t *testing.T) {
	head := "Content-Length: 1\r\nX: \r\n\r\n"
	block := strings.Replace(head, "X: ", "X: "+strings.Repeat("a", frame.MaxHeader-len(head)), 1)
	r := frame.NewReader(strings.NewReader(block + "1"))
	r.SetFraming(frame.Headers)
	if got := all(r); len(got) != 1 || got[0] != "1" {
		t.Errorf("a block of %d bytes gave %q", len(block), got)
	}
}

func TestALineOverTheBoundIsOneFaultAndTheNextOneIsRead(t *testing.T) {
	for _, c := range []struct {
		n    int
		end  string
		want string
	}{
		{frame.MaxBytes, "\n", "ok"},
		{frame.MaxBytes - 1, "\r\n", "ok"},
		{frame.MaxBytes, "\r\n", tooLong}, // everything before the LF counts
		{frame.MaxBytes + 1, "\n", tooLong},
		{frame.MaxBytes + 1<<20, "\n", tooLong},
		{frame.MaxBytes + 1, "", cut},
	} {
		in := io.MultiReader(io.LimitReader(letters{}, int64(c.n)), strings.NewReader(c.end+"1\n"))
		if c.end == "" {
			in = io.LimitReader(letters{}, int64(c.n))
		}
		r := frame.NewReader(in)
		b, err := r.Next()
		got := "ok"
		if err != nil {
			got = "error: " + err.Error()
		} else if len(b) != c.n {
			got = fmt.Sprint(len(b), " bytes")
		}
		if got != c.want {
			t.Errorf("%d bytes and %q: %s, want %s", c.n, c.end, got, c.want)
		}
		if c.end == "" {
			continue
		}
		if b, err := r.Next(); err != nil || string(b) != "1" {
			t.Errorf("%d bytes and %q: the next line is %q, %v", c.n, c.end, b, err)
		}
	}
}

func TestABodyOverTheBoundIsSkippedByItsLength(t *testing.T) {
	for _, n := range []int{frame.MaxBytes, frame.MaxBytes + 1, frame.MaxBytes + 1<<20} {
		in := io.MultiReader(strings.NewReader(fmt.Sprintf("Content-Length: %d\r\n\r\n", n)), io.LimitReader(letters{}, int64(n)),
			strings.NewReader("Content-Length: 1\r\n\r\n1"))
		r := frame.NewReader(in)
		r.SetFraming(frame.Headers)
		_, err := r.Next()
		if want := n > frame.MaxBytes; errors.Is(err, frame.ErrTooLong) != want {
			t.Errorf("%d bytes: %v", n, err)
		}
		if b, err := r.Next(); err != nil || string(b) != "1" {
			t.Errorf("%d bytes: the next frame is %q, %v", n, b, err)
		}
	}
}

// letters is an endless line.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'A'
	}
	return len(p), nil
}

func TestALineWithoutAnEndCostsBoundedMemory(t *testing.T) {
	for _, how := range []frame.Framing{frame.Lines, frame.Headers} {
		in := io.Reader(io.MultiReader(io.LimitReader(letters{}, 160<<20), strings.NewReader("\n1\n")))
		if how == frame.Headers {
			in = io.MultiReader(strings.NewReader(fmt.Sprintf("Content-Length: %d\r\n\r\n", 160<<20)), io.LimitReader(letters{}, 160<<20))
		}
		r := frame.NewReader(in)
		r.SetFraming(how)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := r.Next(); !errors.Is(err, frame.ErrTooLong) {
			t.Fatalf("Next = %v", err)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 96<<20 {
			t.Errorf("framing %d: 160 MiB without an end allocated %d MiB in all", how, got>>20)
		}
	}
}

func TestABodyCostsMemoryOnlyAsItArrives(t *testing.T) {
	r := frame.NewReader(strings.NewReader(fmt.Sprintf("Content-Length: %d\r\n\r\n{", frame.MaxBytes)))
	r.SetFraming(frame.Headers)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := r.Next()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, io.ErrUnexpectedEOF) || got > 1<<20 {
		t.Errorf("a promised body cost %d KiB, %v", got>>10, err)
	}
}

func TestTheMemoryOfABigFrameIsGivenBackBeforeTheNextIsWaitedFor(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	r := frame.NewReader(in)
	go func() {
		_, _ = io.Copy(out, io.LimitReader(letters{}, frame.MaxBytes))
		_, _ = out.Write([]byte("\n"))
	}()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	next := make(chan error, 1)
	waiting := make(chan struct{})
	go func() {
		close(waiting)
		_, err := r.Next()
		next <- err
	}()
	<-waiting
	held := uint64(frame.MaxBytes)
	for range 1000 { // until the other goroutine has come to wait
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if held = m.HeapAlloc; held < 8<<20 {
			break
		}
	}
	if held >= 8<<20 {
		t.Errorf("%d MiB are held while waiting", held>>20)
	}
	out.Close()
	if err := <-next; !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestNestingIsBoundedBeforeAnythingIsDecoded(t *testing.T) {
	nest := func(open, end string, n int) string { return strings.Repeat(open, n) + strings.Repeat(end, n) }
	for _, c := range []struct {
		name, in, want string
	}{
		{"1000 arrays", nest("[", "]", 1000), ""},
		{"1001 arrays", nest("[", "]", 1001), tooDeep},
		{"1001 objects", nest(`{"a":`, "}", 1001), tooDeep},
		{"a million, never closed", strings.Repeat(`{"a":`, 1_000_000), tooDeep},
		{"brackets in a string", `"` + strings.Repeat("[", 2000) + `"`, ""},
		{"behind an escaped quote", `"\"` + strings.Repeat("[", 2000) + `"`, ""},
		{"behind an escaped backslash", `["\\",` + strings.Repeat("[", 1000), tooDeep},
		{"one after the other", strings.Repeat("[]", 2000), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := all(frame.NewReader(strings.NewReader(c.in + "\n1\n")))
			want := []string{c.in, "1"}
			if c.want != "" {
				want[0] = c.want
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%.300s", diff)
			}
		})
	}
}

func TestSniffTellsTheFramingAndTakesOnlyWhatPrecedesIt(t *testing.T) {
	for _, c := range []struct {
		in   string
		want frame.Framing
		next string
	}{
		{"Content-Length: 1\r\n\r\n1", frame.Headers, "1"},
		{"\r\n \xef\xbb\xbf cONTENT-lENGTH: 1\r\n\r\n1", frame.Headers, "1"},
		{"{\"kind\":1}\n", frame.Lines, `{"kind":1}`},
		{"\xef\xbb\xbf\n\n {}\n", frame.Lines, "{}"},
		{"Content\n", frame.Lines, "Content"},
		{"Cat\n", frame.Lines, "Cat"},
	} {
		for name, wrap := range readers {
			r := frame.NewReader(wrap(strings.NewReader(c.in)))
			how, head, err := r.Sniff(1)
			if err != nil || how != c.want || len(head) != 1 || head[0] != bytes.TrimLeft([]byte(c.in), "\r\n \xef\xbb\xbf")[0] {
				t.Errorf("%q read %s: framing %d, first %q, %v", c.in, name, how, head, err)
			}
			r.SetFraming(how)
			if b, err := r.Next(); err != nil || string(b) != c.next {
				t.Errorf("%q read %s: then %q, %v", c.in, name, b, err)
			}
		}
	}
	if _, _, err := frame.NewReader(strings.NewReader(" \n")).Sniff(1); !errors.Is(err, io.EOF) {
		t.Errorf("Sniff of nothing = %v", err)
	}
}

func TestSniffDoesNotWaitForMoreThanItNeeds(t *testing.T) {
	for _, in := range []string{"{\n", "C\n", "Cont\n", "\xef\n", "\xef\xbb\n"} {
		pr, pw := io.Pipe()
		r := frame.NewReader(pr)
		go func() { _, _ = pw.Write([]byte(in)) }() // and nothing behind it: the client waits for its answer
		if how, _, err := r.Sniff(1); how != frame.Lines || err != nil {
			t.Errorf("%q: %d, %v", in, how, err)
		}
		pw.Close()
	}
}

func TestAReadErrorIsPassedOn(t *testing.T) {
	broken := errors.New("broken")
	for _, in := range []string{"", "{", "Content-Length: 3\r\n", "Content-Length: 3\r\n\r\n{", "Content-Length: 99999999\r\n\r\n{"} {
		for _, how := range []frame.Framing{frame.Lines, frame.Headers} {
			r := frame.NewReader(io.MultiReader(strings.NewReader(in), iotest.ErrReader(broken)))
			r.SetFraming(how)
			_, err := r.Next()
			for err == nil {
				_, err = r.Next()
			}
			if !errors.Is(err, broken) {
				t.Errorf("%q in framing %d: %v", in, how, err)
			}
		}
	}
}
