package session

import (
	"runtime"
	"testing"
	"weak"
)

// readInto reads entries of these sizes into a page, as a store does.
func readInto(p *Page, sizes ...int) []Entry {
	out := p.Begin(256)
	for i, n := range sizes {
		b := p.Bytes(n)
		for j := range b {
			b[j] = byte(i)
		}
		out = append(out, Entry{Event: b})
	}
	p.End(out)
	return out
}

// A large entry goes with the page it was of, also when all that follow are smaller.
func TestAPageThatIsReadIntoAgainKeepsNothingLarge(t *testing.T) {
	var p Page
	large := weak.Make(&readInto(&p, 10, 10, 10, 8<<20)[3].Event[0])
	readInto(&p, 10)
	runtime.GC()
	if large.Value() != nil {
		t.Error("8 MiB of an entry that nobody can read are kept")
	}
	runtime.KeepAlive(&p)
}

// Whatever their sizes, entries of a page share no byte.
func TestEntriesOfAPageShareNoByte(t *testing.T) {
	var p Page
	for _, sizes := range [][]int{
		{1, 2, 3},
		{16 << 10, 1, 16<<10 - 1, 1, 1},
		{9 << 10, 9 << 10, 9 << 10},
		{2 << 20, 1, 30},
		{1, 1, 1},
		{700 << 10, 700 << 10},
		{},
		{600 << 10, 600 << 10, 5},
		{3, 4},
	} {
		for i, e := range readInto(&p, sizes...) {
			if len(e.Event) != sizes[i] || cap(e.Event) != sizes[i] {
				t.Fatalf("%v: entry %d has %d bytes and room for %d", sizes, i, len(e.Event), cap(e.Event))
			}
			for _, b := range e.Event {
				if b != byte(i) {
					t.Fatalf("%v: entry %d holds a byte of entry %d", sizes, i, b)
				}
			}
		}
	}
}
