package session

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// standalone starts a session that is in no store.
func standalone() (*Sessions, *Session) {
	ss := NewSessions(Config{})
	s := ss.newSession("s", newState())
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.watching = true
	ss.start(s)
	return ss, s
}

// A turn that another process has closed goes on speaking for a while: nothing of it is stored, and it does not wait for that.
func TestWhatATurnSaysThatIsNotOpenAnyMoreHoldsItUpForNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := standalone()
		turn := newTurn(s, "gone", nil, Selection{})
		for range 64 {
			turn.Say("m", strings.Repeat("x", 64<<10))
		}
		time.Sleep(time.Second)
		turn.gather.mu.Lock()
		left := turn.gather.unacked
		turn.gather.mu.Unlock()
		if left != 0 {
			t.Errorf("%d bytes are still counted", left)
		}
		turn.cancel(nil)
		s.Close()
	})
}

// TaskTraces counts what is kept by task id beside the records: where the model stopped reading, and whose task it is.
func (s *Session) TaskTraces() (readTo, named, owners int) {
	done := make(chan struct{})
	s.post(func() {
		s.all.mu.Lock()
		readTo, named, owners = len(s.jobs.readTo), len(s.jobs.named), len(s.all.tasks)
		s.all.mu.Unlock()
		close(done)
	})
	<-done
	return readTo, named, owners
}
