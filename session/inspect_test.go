package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// What a caller looks at is its own again when InspectNow has returned, also when it did not wait for the session.
func TestAnInspectionThatWasNotWaitedForNeverRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, memory.New(), say())
		defer h.close()
		s := h.draft()
		held := make(chan struct{})
		s.Inspect(func(*session.View) { <-held })
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("client is gone")
		cancel(gone)
		ran := false
		if err := s.InspectNow(ctx, func(*session.View) { ran = true }); !errors.Is(err, gone) {
			t.Errorf("InspectNow = %v, want the cause of the context", err)
		}
		close(held)
		synctest.Wait()
		if ran {
			t.Error("it ran after InspectNow had returned")
		}
		h.view(s, func(*session.View) { ran = true })
		if !ran {
			t.Error("one that is waited for did not run")
		}
	})
}
