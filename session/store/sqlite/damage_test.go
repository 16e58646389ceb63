package sqlite_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/storetest"
)

const (
	healthy = session.SessionID("healthy")
	damaged = session.SessionID("damaged")
)

// twoSessions makes a closed file with 60 large entries in each of two sessions. The healthy one's are the last: behind a damaged page
// nothing can be appended.
func twoSessions(t *testing.T) string {
	t.Helper()
	path := filled(t)
	s := open(t, path)
	for _, id := range []session.SessionID{damaged, healthy} {
		l := storetest.Create(t, s, id)
		var b session.Batch
		for i := range session.Seq(60) {
			b.Entries = append(b.Entries, storetest.Entry(i+1, "", &protocol.SessionRenamed{Name: string(id), Title: strings.Repeat(string(id)+" ", 200)}))
		}
		if err := storetest.Append(s, l, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// readAround reads a log forward and back, past the entries that are named as not readable, and counts those that are.
func readAround(t *testing.T, s session.Log, id session.SessionID, head session.Seq) int {
	t.Helper()
	var found []session.Seq
	for at := session.Seq(0); at < head; {
		page, err := s.Read(t.Context(), id, at, 25, protocol.ViewAll)
		for i := range page {
			at = page[i].Seq
			found = append(found, at)
		}
		e, named := errors.AsType[*session.DamagedEntry](err)
		if named && e.Seq == at+1 {
			at = e.Seq
		} else if err != nil || len(page) == 0 {
			t.Fatalf("behind %d: %d entries, %v", at, len(page), err)
		}
	}
	n := 0
	for at := head + 1; at > 1; {
		page, err := s.ReadBack(t.Context(), id, at, 25, protocol.ViewAll)
		for i := range page {
			at = page[i].Seq
			if last := len(found) - 1; last < 0 || found[last] != at {
				t.Fatalf("entry %d is read back, but not forward", at)
			}
			found = found[:len(found)-1]
			n++
		}
		e, named := errors.AsType[*session.DamagedEntry](err)
		if named && e.Seq == at-1 {
			at = e.Seq
		} else if err != nil || len(page) == 0 {
			t.Fatalf("before %d: %d entries, %v", at, len(page), err)
		}
	}
	if len(found) > 0 {
		t.Fatalf("%v are not read back", found)
	}
	return n
}

func TestADamagedSessionHidesNoOther(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, path string)
		says   string
		left   int // readable entries of the damaged session
	}{
		{"noise over its pages", func(t *testing.T, path string) {
			b := read(t, path)
			word, pages := []byte(strings.Repeat(string(damaged)+" ", 20)), 0
			for at := 0; at+4096 <= len(b); at += 4096 {
				page := b[at : at+4096]
				if bytes.Contains(page, word) && !bytes.Contains(page, []byte(healthy)) {
					copy(page, bytes.Repeat([]byte{0xA5, 0x5A, 0x99}, 1366))
					pages++
				}
			}
			if pages < 10 {
				t.Fatalf("%d pages were found to be damaged", pages)
			}
			write(t, path, b)
		}, "of session damaged", 1},
		{"an event that is no JSON", func(t *testing.T, path string) {
			query(t, path, `UPDATE entries SET event = '{"broken' WHERE seq = 30 AND session = (SELECT id FROM sessions WHERE session = 'damaged')`)
		}, "entry 30 of session damaged", 59},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := twoSessions(t)
			c.damage(t, path)
			s := open(t, path)
			ctx := t.Context()
			_, err := s.Read(ctx, damaged, 0, 100, protocol.ViewAll)
			if !errors.Is(err, session.ErrCorrupt) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("damaged session: %v", err)
			}
			if n := readAround(t, s, damaged, 60); n < c.left {
				t.Errorf("around the damage %d entries can be read, want %d", n, c.left)
			}
			if es, err := s.Read(ctx, healthy, 0, 100, protocol.ViewAll); err != nil || len(es) != 60 {
				t.Errorf("healthy session: %d entries, %v", len(es), err)
			}
			if ms, _, err := s.Sessions(ctx, session.Query{Limit: 10, All: true}); err != nil || len(ms) != 3 {
				t.Errorf("list: %d, %v", len(ms), err)
			}
			l, err := s.Acquire(ctx, healthy)
			if err != nil {
				t.Fatal(err)
			}
			e := storetest.Entry(61, "", &protocol.SessionRenamed{Name: "n", Title: "n"})
			if err := storetest.Append(s, l, session.Batch{Entries: []session.Entry{e}}); err != nil {
				t.Errorf("append to the healthy session: %v", err)
			}
		})
	}
}

// TestATruncatedLogIsReadAsFarAsItGoes cuts the WAL of a process that died at odd lengths.
func TestATruncatedLogIsReadAsFarAsItGoes(t *testing.T) {
	from := filled(t)
	living := open(t, from)
	id := session.SessionID("20260102_101112_0000000a")
	l, err := living.Acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for seq := session.Seq(4); seq <= 20; seq++ {
		e := storetest.Entry(seq, "", &protocol.SessionRenamed{Name: "n", Title: strings.Repeat("t", 500)})
		if err := storetest.Append(living, l, session.Batch{Entries: []session.Entry{e}}); err != nil {
			t.Fatal(err)
		}
	}
	file, wal := read(t, from), read(t, from+"-wal")
	last := 0
	for cut := 0; cut <= len(wal); cut += 9001 {
		path := filledCopy(t, file, wal[:cut])
		s := open(t, path)
		es, err := s.Read(t.Context(), id, 0, 100, protocol.ViewAll)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		for i := range es {
			if es[i].Seq != session.Seq(i+1) {
				t.Fatalf("cut at %d: entry %d has Seq %d", cut, i, es[i].Seq)
			}
		}
		if len(es) < last || len(es) < 3 {
			t.Errorf("cut at %d: %d entries, a shorter log had %d", cut, len(es), last)
		}
		last = len(es)
		l, err := s.Acquire(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		e := storetest.Entry(l.Head+1, "", &protocol.SessionRenamed{Name: "n", Title: "n"})
		if err := storetest.Append(s, l, session.Batch{Entries: []session.Entry{e}}); err != nil {
			t.Errorf("cut at %d: append: %v", cut, err)
		}
		if h, err := s.Health(t.Context()); err != nil || h.Integrity != "ok" {
			t.Errorf("cut at %d: integrity %q, %v", cut, h.Integrity, err)
		}
		_ = s.Close()
	}
	if last < 15 {
		t.Errorf("the longest log gave %d entries", last)
	}
}
