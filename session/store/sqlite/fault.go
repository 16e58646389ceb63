package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/rind-dev/rind/session"
)

// busyLimit is how long another process may keep the file locked before a call gives up. Tests shorten it.
var busyLimit = 5 * time.Second

func isBusy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == sqlite3.SQLITE_BUSY || e.Code()&0xff == sqlite3.SQLITE_LOCKED || e.Code() == sqlite3.SQLITE_PROTOCOL)
}

// retry runs f until the file is not locked by another process, for at most 5 s. SQLite's own handler starves writers of several
// processes under synchronous=FULL, so it is off.
func retry[T any](ctx context.Context, f func() (T, error)) (T, error) {
	deadline := time.Now().Add(busyLimit)
	for {
		v, err := f()
		switch {
		case ctx.Err() != nil && err != nil:
			return v, context.Cause(ctx) // SQLite calls it interrupted
		case err == nil || !isBusy(err) || time.Now().After(deadline):
			return v, err
		}
		jitter()
	}
}

// jitter waits 100-500 µs, so that processes that collide do not collide again.
func jitter() { time.Sleep(time.Duration(100+rand.IntN(400)) * time.Microsecond) }

// fault says what went wrong with the file, in one line with what to do, wrapping the port's error.
func (s *Store) fault(doing string, err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{
		session.ErrNotFound, session.ErrExists, session.ErrBusy, session.ErrFenced, session.ErrGap, session.ErrFull, session.ErrReadOnly,
		session.ErrCorrupt, session.ErrNewer, session.ErrKeyUsed, session.ErrClosed, session.ErrLocked,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
			return fmt.Errorf("%w: %s stayed locked for %s", session.ErrLocked, s.path, busyLimit)
		case sqlite3.SQLITE_FULL:
			return fmt.Errorf("%w: %s: free some space and try again", session.ErrFull, s.path)
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
			return fmt.Errorf("%w: %s: check its permissions and those of its folder", session.ErrReadOnly, s.path)
		case sqlite3.SQLITE_NOTADB: // nothing of it can be read
			return fmt.Errorf("%w: %s: move the file away to begin with an empty one; it was left as it is", session.ErrCorrupt, s.path)
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT:
			return fmt.Errorf("%w: %s: run 'rind doctor'; the file was left as it is", session.ErrCorrupt, s.path)
		case sqlite3.SQLITE_IOERR:
			// A write that failed without a word for it is a quota or a limit of the process; other failures beside a full disk are its doing too.
			if c := e.Code(); c == sqlite3.SQLITE_IOERR_WRITE || c == sqlite3.SQLITE_IOERR_SHMSIZE || diskFull(s.path) {
				return fmt.Errorf("%w: %s: free some space and try again", session.ErrFull, s.path)
			}
			return fmt.Errorf("%w: %s: input/output error (%d): check the disk", session.ErrReadOnly, s.path, e.Code())
		}
	}
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: %s: free some space and try again", session.ErrFull, s.path)
	}
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: %s: check its permissions", session.ErrReadOnly, s.path)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
