package sqlite

import (
	"context"
	"errors"
	"os"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/rind-dev/rind/session"
)

// watchEvery is how often other processes' commits are looked for.
const watchEvery = 100 * time.Millisecond

// Watch implements session.Log. What is committed once it has returned rings; so do letters that were open before. Its goroutine ends
// with ctx or the store.
func (s *Store) Watch(ctx context.Context) (<-chan session.SessionID, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, session.ErrClosed
	}
	s.watchers.Add(1)
	s.mu.Unlock()
	v := &watcher{s: s}
	ids, err := v.changed(ctx)
	if err != nil && !errors.Is(err, session.ErrLocked) {
		v.close()
		s.watchers.Done()
		return nil, err
	}
	v.began = true // one that could not look rings for every session once it can
	out := make(chan session.SessionID)
	go func() {
		defer s.watchers.Done()
		defer close(out)
		defer v.close()
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			for _, id := range ids {
				select {
				case out <- id:
				case <-ctx.Done():
					return
				case <-s.life.Done():
					return
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			case <-s.life.Done():
				return
			}
			if ids, err = v.changed(ctx); err != nil {
				ids = nil // looked for again at the next tick
			}
		}
	}()
	return out, nil
}

// watcher finds sessions that changed since it last looked. It never makes the file: nobody else can have written before it is there.
type watcher struct {
	s       *Store
	conn    *connection
	version int64 // of the file, when it last looked
	touched int64 // newest place in the order of activity it saw
	letter  int64 // newest letter it saw
	deleted int64 // sessions that had been deleted
	looked  bool
	once    bool // the connection sees the file as it was when it was opened
	began   bool // what is new now happened after the call of Watch
}

func (v *watcher) close() {
	if v.conn != nil {
		v.conn.close()
	}
	v.conn = nil
}

func (v *watcher) changed(ctx context.Context) ([]session.SessionID, error) {
	if v.conn == nil {
		if err := v.open(ctx); err != nil || v.conn == nil {
			return nil, err
		}
	}
	ids, err := retry(ctx, func() ([]session.SessionID, error) {
		var version int64
		if err := v.conn.row("PRAGMA data_version").Scan(&version); err != nil {
			return nil, v.s.locked(err)
		}
		if v.looked && version == v.version && !v.once {
			return nil, nil
		}
		ids, err := v.news()
		if err == nil {
			v.version, v.looked = version, true
		}
		return ids, v.s.locked(err)
	})
	if v.once {
		v.close()
	}
	return ids, v.s.fault("watch", err)
}

// open connects when there is a file.
func (v *watcher) open(ctx context.Context) error {
	v.s.mu.Lock()
	known := v.s.read != nil
	v.s.mu.Unlock()
	if !known {
		if info, err := os.Stat(v.s.path); errors.Is(err, os.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			return nil
		}
	}
	if _, err := v.s.db(ctx); err != nil {
		return err
	}
	v.s.mu.Lock()
	m := v.s.mode
	v.s.mu.Unlock()
	conn, err := retry(ctx, func() (*connection, error) {
		c, err := v.s.connect(m)
		return c, v.s.locked(err)
	})
	if err != nil {
		return v.s.fault("watch", err)
	}
	v.conn, v.once = conn, m == immutable
	return nil
}

// news lists the sessions touched, and those with a letter, since the last look, and "" when one was deleted. Before Watch has returned, only
// open letters are news.
func (v *watcher) news() ([]session.SessionID, error) {
	seen := map[string]bool{}
	var ids []session.SessionID
	touched, letter := v.touched, v.letter
	err := v.conn.each(func(st *sqlite.Stmt) error {
		var id string
		var t, l int64
		if err := scan(st, &id, &t, &l); err != nil {
			return err
		}
		touched, letter = max(touched, t), max(letter, l)
		if (v.began || l > 0) && !seen[id] {
			seen[id] = true
			ids = append(ids, session.SessionID(id))
		}
		return nil
	}, `SELECT session, touched, 0 FROM sessions WHERE touched > ?1
		UNION ALL SELECT s.session, 0, l.id FROM letters l JOIN sessions s ON s.id = l.session WHERE l.id > ?2 OR l.outcome IS NULL`, v.touched, v.letter)
	if err != nil {
		return nil, err
	}
	var deleted int64
	if err := v.conn.row("SELECT ifnull((SELECT value FROM meta WHERE name = '" + deletions + "'), 0)").Scan(&deleted); err != nil {
		return nil, err
	}
	if v.began && deleted != v.deleted {
		ids = append(ids, "")
	}
	v.touched, v.letter, v.deleted = touched, letter, deleted
	return ids, nil
}
