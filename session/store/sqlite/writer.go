package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/rind-dev/rind/session"
)

// writer is the state of the writer goroutine.
type writer struct {
	*connection // nil until something is to be written
	s           *Store
	full        int // 1: synchronous is FULL, 0: NORMAL, -1: unknown
	ids         map[session.SessionID]int64
	turns       map[session.TurnID]int64
	nextID      int64
	touched     int64           // the order of activity is a counter, so that lists do not depend on a clock
	counted     bool            // the two above are those of the file, if nobody else has written
	seen        int64           // version of the file then
	dirty       bool            // the WAL may hold something
	bounded     time.Time       // when its size was last looked at
	streak      []session.Entry // room for those of a joined batch

	updates [withRow | withFold | withRelease | withRetake + 1]string // statements by shapeOf
}

// forget drops what was learned in a transaction that is no more.
func (w *writer) forget() {
	w.ids, w.turns, w.counted = map[session.SessionID]int64{}, map[session.TurnID]int64{}, false
}

// open gets the write connection, or makes sure that it leads to the file still.
func (w *writer) open() error {
	if w.connection != nil {
		return w.s.moved()
	}
	ctx := context.Background()
	w.s.mu.Lock()
	if _, err := w.s.opened(ctx); err != nil {
		return err
	}
	w.s.mu.Lock()
	why := w.s.readOnly
	w.s.mu.Unlock()
	if why != nil {
		return why
	}
	_, err := retry(ctx, func() (nothing, error) {
		w.close()
		c, err := w.s.connect(readWrite)
		if err != nil {
			return nothing{}, err
		}
		w.connection, w.full = c, -1
		return nothing{}, errors.Join(c.script("PRAGMA wal_autocheckpoint = 1000"), c.script("PRAGMA journal_size_limit = 4194304"))
	})
	if err != nil {
		w.close()
		return w.s.fault("open for writing", err)
	}
	w.forget()
	return nil
}

func (w *writer) close() {
	if w.connection != nil {
		w.connection.close()
	}
	w.connection = nil
}
