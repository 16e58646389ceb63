package acpagent

import (
	"strings"
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

// tail is the newest text, at most n bytes, cut between characters. cut says that there was more before it.
func (r *ring) tail(n int) (text string, cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, r.max)
	rest := r.data[max(0, len(r.data)-n):]
	cut = r.total > int64(len(rest))
	for range utf8.UTFMax - 1 {
		if cut && len(rest) > 0 && !utf8.RuneStart(rest[0]) {
			rest = rest[1:]
		}
	}
	return strings.ToValidUTF8(string(rest), "\uFFFD"), cut
}
