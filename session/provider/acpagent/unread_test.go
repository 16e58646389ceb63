package acpagent

import (
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// H062: a prompt that is larger than any pipe, for a child that does not read: a cancel settles it, the end of the process too, and
// sessions beside it are served.
func TestAChildThatStopsReadingHoldsUpNeitherCancelNorEnd(t *testing.T) {
	for _, modes := range []string{"unread", "unread,stubborn"} {
		t.Run(modes, func(t *testing.T) {
			t.Parallel()
			h := open(t, memory.New(), modes, func(c *Config) { c.times.cancel = 300 * time.Millisecond })
			s := h.draft("ask")
			ch := h.ask(s, strings.Repeat("word ", 1<<18))
			h.until(s, "a turn", func(v *session.View) bool { return v.Serial != nil })
			time.Sleep(100 * time.Millisecond) // until the pipe is full, most likely: the outcome is the same where it is not
			began := time.Now()
			s.Cancel(session.CancelRequest{}, func(error) {})
			if o := h.await(ch); o.Outcome != session.OutcomeCancelled || time.Since(began) > 20*time.Second {
				t.Errorf("%s after %v", o.Outcome, time.Since(began))
			}
			other := h.draft("ask")
			ch = h.ask(other, "hello")
			h.until(other, "a turn", func(v *session.View) bool { return v.Serial != nil })
			began = time.Now()
			h.close() // the child of other reads nothing either; checks that nothing is left
			if o := h.await(ch); o.Outcome != session.OutcomeCancelled || time.Since(began) > 20*time.Second {
				t.Errorf("at the end of the process: %s after %v", o.Outcome, time.Since(began))
			}
		})
	}
}
