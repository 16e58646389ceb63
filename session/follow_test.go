package session_test

import (
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// Whoever follows one of many executions is not woken by the others: with n of them that would be n² for nothing.
func TestWhoFollowsATurnIsRungForItsEntriesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, memory.NewBacking().Open("a"), answering())
		s := h.draft()
		h.prompt(s, "a turn before")
		g := &gated{let: make(chan struct{})}
		turn := h.execute(s, beside(g))
		synctest.Wait()
		ofTurn, ofAll, gone := 0, 0, 0
		h.view(s, func(v *session.View) {
			v.FollowTurn(turn, func() { ofTurn++ }, func() { gone++ })
			v.Follow(func() { ofAll++ }, nil, nil)
		})
		h.prompt(s, "of the serial lane")
		other := &gated{let: make(chan struct{})}
		close(other.let)
		h.execute(s, beside(other))
		synctest.Wait()
		if ofTurn != 0 || ofAll == 0 {
			t.Errorf("rung %d times for other turns; who follows all of them %d times", ofTurn, ofAll)
		}
		close(g.let)
		synctest.Wait()
		if ofTurn != 1 {
			t.Errorf("rung %d times for the end of its turn, which is one batch", ofTurn)
		}
		if err := h.all.Delete(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if gone != 1 {
			t.Errorf("told %d times that the session is gone", gone)
		}
		h.close()
	})
}
