package shell

import (
	"os"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// maxMarks bounds how often the streams of a tape take turns before its older part counts as one piece of standard output.
const maxMarks = 100_000

// tape is the text of both streams in the order in which it came, as a Job tells it: places in it are counted in bytes of text from its
// beginning on. It is in memory until there is a file, then in that up to a bound; where no file could be made its beginning stays in
// memory. Of what has no room there the newest is in memory. Guarded by its owner's lock.
type tape struct {
	head   []byte   // all of it so far, until there is a file; its beginning, where there is none
	file   *os.File // nil: none yet, or none any more
	path   string   // of the file; "" for none
	noFile bool     // it could not be made
	kept   int64    // bytes from the beginning on that are in the file, or in head
	full   bool     // they are not all, and grow no more
	late   []byte   // the newest bytes after kept, once it is full: the last keptTail, and up to as much before them
	total  int64
	marks  []mark
}

// mark says that from a place on the text is of a stream.
type mark uint64

func markOf(at int64, stream int) mark { return mark(uint64(at)<<1 | uint64(stream)) }

func (m mark) at() int64 { return int64(m >> 1) }

func (m mark) stream() int { return int(m & 1) }

// add appends text of a stream.
func (t *tape) add(stream int, text []byte) {
	if n := len(t.marks); n == 0 || t.marks[n-1].stream() != stream {
		if n >= maxMarks {
			t.marks = append(t.marks[:0], t.marks[n/2:]...)
			t.marks = slices.Insert(t.marks, 0, markOf(0, stdout))
		}
		t.marks = append(t.marks, markOf(t.total, stream))
	}
	t.total += int64(len(text))
	if !t.full {
		n := t.keep(text)
		t.kept += int64(n)
		if text = text[n:]; len(text) == 0 {
			return
		}
		t.end()
	}
	t.last(text)
}

// end says that nothing more has room where the beginning is.
func (t *tape) end() {
	t.full = true
	if t.file != nil {
		_, _ = t.file.WriteString(fileEnd)
	}
}

// last keeps the newest text.
func (t *tape) last(text []byte) {
	if len(text) > keptTail {
		text = text[len(text)-keptTail:]
		t.late = t.late[:0]
	}
	if len(t.late)+len(text) > 2*keptTail {
		t.late = append(t.late[:0], t.late[len(t.late)-keptTail:]...)
	}
	t.late = append(t.late, text...)
}

// keep puts text where the beginning is, and says how much of it has room there.
func (t *tape) keep(text []byte) int {
	if t.file == nil {
		n := len(text)
		if t.noFile {
			n = cutAt(text, keptHead-len(t.head))
		}
		t.head = append(t.head, text[:n]...)
		return n
	}
	n, err := t.file.Write(text[:cutAt(text, fileBytes-int(t.kept))])
	if err != nil {
		n = cutAt(text, n)
	}
	return n
}

// store makes the file, unless there is one or it could not be made before.
func (t *tape) store(create func() (*os.File, error)) {
	if t.path != "" || t.noFile {
		return
	}
	f, err := create()
	if err != nil {
		t.noFile = true
		return
	}
	t.file, t.path = f, f.Name()
	all := t.head
	t.head, t.kept = nil, 0
	n := t.keep(all)
	if t.kept = int64(n); n < len(all) {
		t.end()
		t.last(all[n:])
	}
}

// stop gives the file back. What it holds is still read.
func (t *tape) stop() {
	if t.file != nil && t.file.Close() != nil {
		t.full = true
	}
	t.file = nil
}

// lateAt is the place of the first byte of late.
func (t *tape) lateAt() int64 { return t.total - int64(len(t.late)) }

// gone reports whether some of the text is nowhere any more.
func (t *tape) gone() bool { return t.full && t.lateAt() > t.kept }

// cut is a piece of a tape that is about to be read.
type cut struct {
	from, to int64
	path     string // of the file it is in; "" where text is it
	text     []byte
	marks    []mark // of its pieces; the first is at from or before it
	after    int64  // where the next readable text begins, should this not be readable
}

// at finds the first text from a place on, at most n bytes.
func (t *tape) at(from int64, n int) cut {
	from = min(max(from, 0), t.total)
	c := cut{from: from, to: min(from+int64(n), t.kept), after: max(from, min(t.lateAt(), t.total))}
	switch {
	case from < t.kept && t.path != "":
		c.path = t.path
	case from < t.kept:
		c.text = slices.Clone(t.head[from:c.to])
	default:
		c.from = c.after
		c.to = min(c.from+int64(n), t.total)
		late := c.from - t.lateAt()
		c.text = slices.Clone(t.late[late : late+c.to-c.from])
	}
	first := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].at() > c.from })
	last := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].at() >= c.to })
	c.marks = slices.Clone(t.marks[max(first-1, 0):max(last, first)])
	return c
}

// load reads a piece from its file. What is not there is not read: somebody may have removed or shortened the file.
func (c *cut) load() {
	if c.path == "" || c.text != nil {
		return
	}
	f, err := os.Open(c.path)
	if err != nil {
		return
	}
	defer f.Close()
	text := make([]byte, c.to-c.from)
	n, _ := f.ReadAt(text, c.from)
	c.text = text[:n]
}

// divide gives each stream its part of the first most characters; start and next are the places where they begin and end.
func (c *cut) divide(most int) (parts [streams]string, start, next int64) {
	begin := 0
	for begin < len(c.text) && !utf8.RuneStart(c.text[begin]) { // the place is in the middle of a character
		begin++
	}
	end := begin
	for ; most > 0 && end < len(c.text); most-- {
		_, size := utf8.DecodeRune(c.text[end:])
		end += size
	}
	var text [streams][]byte
	for i, m := range c.marks {
		from, to := max(int(m.at()-c.from), begin), end
		if i+1 < len(c.marks) {
			to = min(int(c.marks[i+1].at()-c.from), end)
		}
		if from < to {
			text[m.stream()] = append(text[m.stream()], c.text[from:to]...)
		}
	}
	for i := range text {
		parts[i] = strings.ToValidUTF8(string(text[i]), replacement) // somebody may have written into the file
	}
	return parts, c.from + int64(begin), c.from + int64(end)
}

// cutAt is the most bytes of text, at most n, that end with a character.
func cutAt(text []byte, n int) int {
	if n >= len(text) {
		return len(text)
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return max(n, 0)
}
