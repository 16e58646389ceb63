package shell

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"sync"
	"unicode/utf8"

	"github.com/rind-dev/rind/session"
)

// Bounds of a command's output.
const (
	keptHead  = 64 << 10 // bytes of a stream's beginning, and of its end, held in memory
	keptTail  = 64 << 10
	fileBytes = 32 << 20  // of the file
	readBytes = 256 << 10 // of what is read of it at once
	shownText = 20_000    // bytes of both streams, as JSON, in a result (docs/protocol/rind-v2.md section 9: 25 KiB with all the rest)
	shownLine = 1800      // lines of both
)

// fileEnd is the last line of a file that does not hold all.
const fileEnd = "\n[… the rest of the output was not kept …]\n"

const (
	stdout = iota
	stderr
	streams
)

// output is what a command writes. Its file is made once there is more than a result shows, or when it is asked for. Safe for concurrent
// use; a writer waits for the file at most, never for a reader.
type output struct {
	create func() (*os.File, error)

	mu      sync.Mutex // held while the file is written: it is bounded, and the memory of the system takes it
	streams [streams]stream
	tape    tape
	need    int // bytes all of it takes as JSON, until there is a file
	lines   int // newlines of both
	closed  bool
}

// stream is one of the two.
type stream struct {
	cleaner cleaner
	buf     []byte // of cleaning
	head    []byte
	tail    []byte // of what comes after head: the last keptTail bytes, and up to as much before them
	total   int64  // bytes of text
	lines   int64  // newlines
	last    byte
}

func newOutput(create func() (*os.File, error)) *output { return &output{create: create} }

func (o *output) writer(n int) io.Writer { return &streamWriter{o, n} }

type streamWriter struct {
	o *output
	n int
}

// Write never fails: what cannot be kept is dropped.
func (w *streamWriter) Write(p []byte) (int, error) {
	w.o.mu.Lock()
	defer w.o.mu.Unlock()
	if !w.o.closed {
		s := &w.o.streams[w.n]
		s.buf = s.cleaner.clean(s.buf[:0], p)
		w.o.add(w.n, s.buf)
	}
	return len(p), nil
}

func (o *output) add(stream int, text []byte) {
	if len(text) == 0 {
		return
	}
	n := bytes.Count(text, []byte{'\n'})
	o.lines += n
	s := &o.streams[stream]
	s.lines += int64(n)
	s.add(text)
	if o.tape.path == "" && !o.tape.noFile {
		if o.need += escapedLen(text); o.need > shownText || o.lines >= shownLine { // not all of it is shown
			o.tape.store(o.create)
		}
	}
	o.tape.add(stream, text)
}

// store makes the file, with all that was written so far.
func (o *output) store() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.tape.store(o.create)
	}
}

func (s *stream) add(text []byte) {
	s.total += int64(len(text))
	s.last = text[len(text)-1]
	if room := keptHead - len(s.head); room > 0 {
		n := min(room, len(text))
		s.head = append(s.head, text[:n]...)
		text = text[n:]
	}
	if len(text) > keptTail {
		text = text[len(text)-keptTail:]
	}
	if len(s.tail)+len(text) > 2*keptTail {
		s.tail = append(s.tail[:0], s.tail[len(s.tail)-keptTail:]...)
	}
	s.tail = append(s.tail, text...)
}

// close ends the output: what is written from now on is dropped.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	for i := range o.streams {
		o.add(i, o.streams[i].cleaner.flush(nil))
	}
	o.closed = true
	o.tape.stop()
}

// sum says how much text there is.
func (o *output) sum() session.JobSum {
	o.mu.Lock()
	defer o.mu.Unlock()
	v := session.JobSum{Bytes: o.tape.total, Path: filepath.ToSlash(o.tape.path), Incomplete: o.tape.full && (o.tape.path != "" || o.tape.gone())}
	for i := range o.streams {
		v.Lines += o.streams[i].countLines()
	}
	return v
}

// countLines counts an unfinished last line, too.
func (s *stream) countLines() int64 {
	if s.total > 0 && s.last != '\n' {
		return s.lines + 1
	}
	return s.lines
}

// read finds text from a place on; see session.Job.
func (o *output) read(from int64, characters int) (parts [streams]string, start, next int64) {
	n := min(max(characters, 0), readBytes/utf8.UTFMax)
	var c cut
	for range 2 {
		o.mu.Lock()
		c = o.tape.at(from, (n+1)*utf8.UTFMax) // one more: the place may be in the middle of a character
		o.mu.Unlock()
		if c.load(); len(c.text) > 0 || n == 0 {
			break
		}
		from = c.after
	}
	return c.divide(n)
}

// tails are the last characters of each stream.
func (o *output) tails(characters int) (parts [streams]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.streams {
		parts[i] = string(lastOf(o.streams[i].end(), characters))
	}
	return parts
}

// end is what is kept of the end of a stream.
func (s *stream) end() []byte {
	if s.total > int64(len(s.head)+len(s.tail)) {
		return s.tail
	}
	return append(s.head[:len(s.head):len(s.head)], s.tail...) // all of it is here
}

// lastOf is the end of text, at most some characters long.
func lastOf(text []byte, characters int) []byte {
	at := len(text)
	for ; characters > 0 && at > 0; characters-- {
		r, size := utf8.DecodeLastRune(text[:at])
		if r == utf8.RuneError && size == 1 { // it begins in the middle of a character
			break
		}
		at -= size
	}
	return text[at:]
}

// shown is what a result tells of the output.
type shown struct {
	text       [streams]string
	truncated  bool
	bytes      int64
	lines      int64
	path       string
	incomplete bool // the file does not hold all
	lossy      bool
}

// shown makes the text of a result: both streams whole where they fit, else their heads and tails.
func (o *output) shown() shown {
	o.mu.Lock()
	defer o.mu.Unlock()
	v := shown{path: filepath.ToSlash(o.tape.path), incomplete: o.tape.full}
	var need, lines [streams]int
	for i := range o.streams {
		s := &o.streams[i]
		v.bytes += s.total
		v.lines += s.countLines()
		v.lossy = v.lossy || s.cleaner.lossy
		need[i], lines[i] = shownText+1, int(min(s.lines, shownLine+1))
		if s.total <= shownText {
			need[i] = min(escapedLen(s.head), shownText+1)
		}
	}
	for i := range o.streams {
		other := 1 - i
		bytes, count := max(shownText/2, shownText-need[other]), max(shownLine/2, shownLine-lines[other])
		var cut bool
		v.text[i], cut = o.streams[i].show(bytes, count)
		v.truncated = v.truncated || cut
	}
	return v
}

func (v shown) meta() map[string]any {
	m := map[string]any{"truncated": v.truncated, "total_bytes": v.bytes, "total_lines": v.lines}
	if v.path != "" {
		m["output_path"] = v.path
		if v.incomplete {
			m["output_incomplete"] = true
		}
	}
	if v.lossy {
		m["lossy"] = true
	}
	return m
}
