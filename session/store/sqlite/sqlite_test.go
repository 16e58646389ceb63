package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		path := filepath.Join(t.TempDir(), "sessions", "rind.db")
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
