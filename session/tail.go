package session

import "sync"

// tailBytes bounds the newest entries kept in memory per session; older ones are read from the store.
const tailBytes = 1 << 20

// tail is the newest part of a log, for followers that keep up. Safe for concurrent use; its lock is never held over I/O.
type tail struct {
	mu      sync.Mutex
	entries []Entry // contiguous up to head
	bytes   int
	head    Seq
}

// reset says that the log ends at head and nothing of it is in memory.
func (t *tail) reset(head Seq) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries, t.bytes, t.head = nil, 0, head
}

// add appends entries that were acknowledged.
func (t *tail) add(es []Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries = append(t.entries, es...)
	for i := range es {
		t.bytes += es[i].Size()
		t.head = es[i].Seq
	}
	if t.bytes <= tailBytes {
		return
	}
	drop := 0
	for t.bytes > tailBytes/2 && drop < len(t.entries)-1 { // some at once, so that the copy below is rare
		t.bytes -= t.entries[drop].Size()
		drop++
	}
	if drop > 0 { // a new array, so that dropped entries can be freed, with room for what comes before the next one
		left := t.entries[drop:]
		t.entries = append(make([]Entry, 0, 2*len(left)+len(left)/4), left...)
	}
}

// after returns up to limit entries behind seq and the head; ok is false when they are older than the tail.
func (t *tail) after(seq Seq, limit int) (es []Entry, head Seq, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if seq >= t.head {
		return nil, t.head, true
	}
	if len(t.entries) == 0 || t.entries[0].Seq > seq+1 {
		return nil, t.head, false
	}
	i := int(seq + 1 - t.entries[0].Seq)
	es = t.entries[i:min(i+limit, len(t.entries))]
	return es[:len(es):len(es)], t.head, true
}
