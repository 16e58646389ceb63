package shell

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// Bounds of a command's output.
const (
	keptHead  = 64 << 10 // bytes of a stream's beginning, and of its end, held in memory
	keptTail  = 64 << 10
	fileBytes = 32 << 20 // of the file
	shownText = 20_000   // bytes of both streams, as JSON, in a result (docs/protocol/rind-v2.md section 9: 25 KiB with all the rest)
	shownLine = 1800     // lines of both
)

// fileEnd is the last line of a file that does not hold all.
const fileEnd = "\n[… the rest of the output was not kept …]\n"

const (
	stdout = iota
	stderr
	streams
)

// output is what a command writes. Its file holds both streams in the order in which they came; it is made once they are more than a result
// shows. Safe for concurrent use; a writer waits for the file at most, never for a reader.
type output struct {
	create func() (*os.File, error)

	mu      sync.Mutex // held while the file is written: it is bounded, and the memory of the system takes it
	streams [streams]stream
	early   []byte // all so far, until it goes to the file
	need    int    // bytes it takes as JSON
	lines   int    // newlines of both
	file    *os.File
	path    string // of the file; "" for none
	written int64
	cut     bool // the file does not hold all
	noFile  bool
	closed  bool
}

// stream is one of the two.
type stream struct {
	cleaner cleaner
	buf     []byte // of cleaning
	head    []byte
	tail    []byte // of what comes after head: the last keptTail bytes, and up to as much before them
	raw     int64  // bytes the command wrote
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
		s.raw += int64(len(p))
		s.buf = s.cleaner.clean(s.buf[:0], p)
		w.o.add(s, s.buf)
	}
	return len(p), nil
}

func (o *output) add(s *stream, text []byte) {
	if len(text) == 0 {
		return
	}
	n := bytes.Count(text, []byte{'\n'})
	s.lines += int64(n)
	o.lines += n
	s.add(text)
	switch {
	case o.noFile || o.cut:
		return
	case o.file != nil:
		o.write(text)
		return
	}
	if o.need += escapedLen(text); o.need <= shownText && o.lines < shownLine { // all of it is shown
		o.early = append(o.early, text...)
		return
	}
	f, err := o.create()
	if err != nil {
		o.noFile, o.early = true, nil
		return
	}
	o.file, o.path = f, f.Name()
	o.write(o.early)
	o.early = nil
	o.write(text)
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

// write appends to the file, up to its bound.
func (o *output) write(text []byte) {
	if left := fileBytes - o.written; int64(len(text)) > left {
		text = text[:left]
		o.cut = true
	}
	n, err := o.file.Write(text)
	o.written += int64(n)
	if err != nil {
		o.cut = true
	}
	if o.cut {
		_, _ = o.file.WriteString(fileEnd)
	}
}

// close ends the output: what is written from now on is dropped.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	for i := range o.streams {
		s := &o.streams[i]
		o.add(s, s.cleaner.flush(nil))
	}
	o.closed = true
	if o.file != nil && o.file.Close() != nil {
		o.cut = true
	}
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
	v := shown{path: filepath.ToSlash(o.path), incomplete: o.cut}
	var need, lines [streams]int
	for i := range o.streams {
		s := &o.streams[i]
		v.bytes += s.raw
		v.lines += s.lines
		if s.total > 0 && s.last != '\n' {
			v.lines++
		}
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
