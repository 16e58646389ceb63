package session

import "testing"

// N14, N25: as the runtime ends, sessions hear of it one after the other. What one of them cancels leaves a place, in which nothing of another
// may start.
func TestAPlaceThatIsLeftAsTheRuntimeEndsGoesToNobody(t *testing.T) {
	for _, most := range []int{0, 1} {
		p := &places{most: most}
		started := 0
		start := func() { started++ }
		if !p.take(start) {
			t.Fatal("there is no place to begin with")
		}
		if most > 0 && p.take(start) {
			t.Fatal("there are two places")
		}
		p.close()
		p.give()
		if p.take(start) || p.try() || started > 0 {
			t.Errorf("at most %d: a place was given out, %d started", most, started)
		}
	}
}
