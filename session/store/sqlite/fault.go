package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/rind-dev/rind/session"
)

// busyLimit is how long another process may keep the file locked before a call gives up. Tests shorten it.
var busyLimit = 5 * time.Second

func isBusy(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultProtocol:
		return true
	}
	return false
}

// isDamage tells what SQLite says of a page of the file that cannot be right.
func isDamage(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultCorrupt, sqlite.ResultFormat:
		return true
	}
	return false
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
	switch code := sqlite.ErrCode(err); code.ToPrimary() {
	case sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultProtocol:
		return fmt.Errorf("%w: %s stayed locked for %s", session.ErrLocked, s.path, busyLimit)
	case sqlite.ResultFull:
		return fmt.Errorf("%w: %s: free some space and try again", session.ErrFull, s.path)
	case sqlite.ResultReadOnly, sqlite.ResultCantOpen, sqlite.ResultPerm, sqlite.ResultAuth:
		return fmt.Errorf("%w: %s: check its permissions and those of its folder", session.ErrReadOnly, s.path)
	case sqlite.ResultNotADB: // nothing of it can be read
		return fmt.Errorf("%w: %s: move the file away to begin with an empty one; it was left as it is", session.ErrCorrupt, s.path)
	case sqlite.ResultCorrupt, sqlite.ResultFormat:
		return fmt.Errorf("%w: %s: run 'rind doctor'; the file was left as it is", session.ErrCorrupt, s.path)
	case sqlite.ResultIOErr:
		// A write that failed without a word for it is a quota or a limit of the process; other failures beside a full disk are its doing too.
		if code == sqlite.ResultIOErrWrite || code == sqlite.ResultIOErrSHMSize || diskFull(s.path) {
			return fmt.Errorf("%w: %s: free some space and try again", session.ErrFull, s.path)
		}
		return fmt.Errorf("%w: %s: input/output error (%d): check the disk", session.ErrReadOnly, s.path, int(code))
	}
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: %s: free some space and try again", session.ErrFull, s.path)
	}
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: %s: check its permissions", session.ErrReadOnly, s.path)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
