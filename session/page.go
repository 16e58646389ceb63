package session

// Page is memory to read a page of entries into. What was read is good until it is read into again. The zero value is ready. Where a method of
// Log takes one, nil reads into memory of its own, which is never used again.
type Page struct {
	entries []Entry
	piece   []byte // where bytes of entries lie: one piece that holds all of them, once it is known how many they are
	free    []byte // what is left of it
	used    int    // bytes since Begin
}

const (
	smallPiece = 16 << 10
	// largePage is how many bytes of entries a page keeps; what needed more is not kept.
	largePage = 1 << 20
)

// Begin returns room for about limit entries: what was read before is no more. A store calls it, and then Bytes.
func (p *Page) Begin(limit int) []Entry {
	if p.entries == nil {
		p.entries = make([]Entry, 0, min(limit, 256))
		p.piece = make([]byte, min(limit*512, smallPiece))
	}
	if p.used > len(p.piece) || len(p.piece) > largePage {
		p.piece = make([]byte, max(smallPiece, min(p.used, largePage)))
	}
	p.free, p.used = p.piece, 0
	clear(p.entries) // they would hold on to memory that is kept no more
	return p.entries[:0]
}

// Bytes returns room for n bytes of an entry: a page lies in few pieces of memory, rather than in one for each of its members.
func (p *Page) Bytes(n int) []byte {
	p.used += n
	if n > len(p.free) {
		p.free = make([]byte, max(len(p.piece), n))
	}
	b := p.free[:n:n]
	p.free = p.free[n:]
	return b
}

// End keeps what became of the slice of Begin, to be used again.
func (p *Page) End(entries []Entry) { p.entries = entries }
