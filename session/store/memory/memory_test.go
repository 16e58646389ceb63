package memory_test

import (
	"testing"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
	"github.com/rind-dev/rind/session/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Opener {
		b := memory.NewBacking()
		return func(t *testing.T, instance string) session.Store {
			s := b.Open(instance)
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
	})
}
