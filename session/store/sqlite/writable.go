package sqlite

import (
	"context"
	"time"
)

// A probe writes about as much as the start of an execution does: a disk that takes less is full for all that anybody wants to store. One that
// went well is believed for a while, for the sake of disks that are, or say that they are, always short of room.
const (
	probeBytes   = 80 << 10
	probeTrusted = time.Minute
)

// probed is what is known of whether the file takes writes.
type probed struct {
	failures int       // writes that the file did not take
	past     int       // those of before the last probe that went well
	well     time.Time // when that was
}

// failed counts a write that the file did not take, whoever asked for it.
func (s *Store) failed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probed.failures++
}

// Writable implements session.Log. Where the last write went well and there is room nothing is asked but the file system. Otherwise it is tried:
// a disk that was full, or seems to be, may take more, and only a write tells.
func (s *Store) Writable(ctx context.Context) error {
	if _, err := s.db(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	why, known := s.readOnly, s.probed
	s.mu.Unlock()
	if why != nil {
		return why
	}
	if err := s.moved(); err != nil {
		return err
	}
	if known.failures == known.past && (!diskFull(s.path) || !known.well.IsZero() && time.Since(known.well) < probeTrusted) {
		return nil
	}
	if err := s.alone(ctx, func(w *writer) error { return w.probe(ctx) }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probed.past, s.probed.well = known.failures, time.Now()
	return nil
}

// probe writes pages to the log and takes them back. They get there at once because the cache is made too small for them; what is not committed, the
// next write goes over, and has the room that the probe got. It is no commit of ours: nobody who watches is woken.
func (w *writer) probe(ctx context.Context) error {
	err := w.script("PRAGMA cache_size = 1")
	if err == nil {
		_, err = retry(ctx, func() (nothing, error) { return nothing{}, w.exec("BEGIN IMMEDIATE") })
	}
	if err == nil {
		err = w.exec("INSERT INTO meta (name, value) VALUES ('probe', zeroblob(?))", probeBytes)
		if back := w.exec("ROLLBACK"); err == nil {
			err = back
		}
	}
	if err == nil {
		err = w.script(cacheSize)
	}
	if err != nil {
		w.close() // as behind every write that failed
		return err
	}
	w.dirty = true
	return nil
}
