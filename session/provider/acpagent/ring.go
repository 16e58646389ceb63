package acpagent

import (
	"bytes"
	"sync"
	"unicode/utf8"
)

// ring keeps the newest bytes written to it: of a child's standard error, of a terminal's output. Safe for concurrent use.
type ring struct {
	max int

	mu    sync.Mutex // guards what follows
	data  []byte
	total int64 // bytes written to it
}

// Write implements io.Writer. It never fails: a process whose output is not taken would hang.
func (r *ring) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total += int64(len(b))
	r.data = append(r.data, b[max(0, len(b)-r.max):]...)
	if over := len(r.data) - r.max; over > r.max { // moved seldom
		r.data = append(r.data[:0], r.data[over:]...)
	}
	return len(b), nil
}

// tail is the newest text, at most n bytes, from a character on. cut says that there was more before it; over, that nothing comes behind it:
// until then the beginning of a character is left for the next time.
func (r *ring) tail(n int, over bool) (text string, cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, r.max)
	rest := r.data[max(0, len(r.data)-r.max):] // what is before that may be none of what came before it
	lost := r.total > int64(len(rest))
	if !over {
		rest = rest[:len(rest)-unfinished(rest)]
	}
	lost = lost || len(rest) > n
	rest = rest[max(0, len(rest)-n):]
	if lost {
		rest = whole(rest)
	}
	valid := bytes.ToValidUTF8(rest, []byte("\uFFFD"))
	if len(valid) > n { // what stands for a byte that is no text takes three
		return string(whole(valid[len(valid)-n:])), true
	}
	return string(valid), lost
}

// whole is b from the beginning of a character on, where b is text.
func whole(b []byte) []byte {
	for range utf8.UTFMax - 1 {
		if len(b) > 0 && !utf8.RuneStart(b[0]) {
			b = b[1:]
		}
	}
	return b
}

// unfinished is how many bytes at the end of b are the beginning of a character.
func unfinished(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		if end := b[len(b)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return n
		}
	}
	return 0
}
