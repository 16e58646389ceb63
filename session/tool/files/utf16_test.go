package files

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"testing/iotest"
	"unicode/utf16"
)

// The oracle is utf16.Decode, which has all units at once.
func FuzzUTF16ReaderDecodesWhatTheStandardLibraryDoes(f *testing.F) {
	for _, s := range []string{"", "a\x00", "\x3c\xd8\x80\xdd", "\x00\xd8", "\x00\xd8\x00\xd8\x00\xdc", "\x00\xdc\x00", "\x00\x00\x00\x00", "\x00\xd8\x00\x00"} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, little bool) {
		order := binary.ByteOrder(binary.BigEndian)
		if little {
			order = binary.LittleEndian
		}
		var units []uint16
		for i := 0; i+1 < len(data); i += 2 {
			units = append(units, order.Uint16(data[i:]))
		}
		want := string(utf16.Decode(units))
		if len(data)%2 == 1 {
			if n := len(units); n > 0 && utf16.IsSurrogate(rune(units[n-1])) {
				t.Skip("half a unit behind half a pair is one or two wrong characters")
			}
			want += "\uFFFD"
		}
		r := &utf16Reader{in: bufio.NewReader(bytes.NewReader(data)), order: order}
		got, err := io.ReadAll(iotest.OneByteReader(r))
		if err != nil || string(got) != want {
			t.Fatalf("%x: %q, %v, want %q", data, got, err, want)
		}
	})
}
