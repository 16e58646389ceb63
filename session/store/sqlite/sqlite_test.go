package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/store/storetest"
)

func TestStore(t *testing.T) {
	suite(t, func(t *testing.T) string { return filepath.Join(t.TempDir(), "sessions", "rind.db") })
}

// A file that an earlier version made keeps the indexes it has.
func TestStoreInAFileOfTheFirstVersion(t *testing.T) {
	suite(t, func(t *testing.T) string {
		path := filledCopy(t, golden(t), nil)
		query(t, path, "DELETE FROM entries; DELETE FROM turns; DELETE FROM sessions; DELETE FROM keys; DELETE FROM letters; DELETE FROM samples")
		return path
	})
}

func suite(t *testing.T, file func(t *testing.T) (path string)) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		path := file(t)
		return func(t *testing.T, instance string) session.Store {
			s, err := sqlite.Open(path, sqlite.Options{Instance: instance})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
	})
}
