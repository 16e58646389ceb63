package frame_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/protocol/frame"
)

// FuzzReader: whatever comes, the reader ends, hands out only what may be decoded, and does so no matter how the bytes arrive.
func FuzzReader(f *testing.F) {
	for _, s := range []string{
		"{}\n", "\xef\xbb\xbf{}\r\n1\r\r\n", "{\"a\":[1]}\n\xff\n", "Content-Length: 2\r\n\r\n{}", "content-length:3\n\n[1]\r\nContent-Length: x\r\n\r\n",
		"Content-Length: 5\r\nContent-Length: 5\r\n\r\n12", "C\nContent-", "\xef\xbb", "[[[[\n", "\n\n \r\n",
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, in []byte, headers bool) {
		read := func(r io.Reader) []string {
			fr := frame.NewReader(r)
			how, _, err := fr.Sniff(1)
			if err != nil {
				how = frame.Lines
			}
			if headers {
				how = frame.Headers
			}
			fr.SetFraming(how)
			return all(fr)
		}
		got := read(bytes.NewReader(in))
		if diff := cmp.Diff(got, read(iotest.OneByteReader(bytes.NewReader(in)))); diff != "" {
			t.Fatalf("read at once and byte by byte differ:\n%s", diff)
		}
		var sent []string
		var again []byte
		for _, b := range got {
			if !utf8.ValidString(b) {
				t.Fatalf("frame %q is not UTF-8", b)
			}
			if !strings.HasPrefix(b, "error: ") {
				sent = append(sent, b)
				again = frame.Append(again, frame.Headers, []byte(b))
			}
		}
		r := frame.NewReader(bytes.NewReader(again))
		r.SetFraming(frame.Headers)
		if diff := cmp.Diff(sent, all(r)); diff != "" {
			t.Fatalf("written and read again:\n%s", diff)
		}
	})
}
