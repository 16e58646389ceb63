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

// The clock of the machine may be set back between the start of a turn and its going on in another process.
func TestAnExecutionThatGoesOnHasNoMoreThanItsTimeWhateverTheClockShows(t *testing.T) {
	for name, since := range map[string]time.Duration{"started a while ago": 8 * time.Second, "started in an hour": -time.Hour, "started just now": 0} {
		synctest.Test(t, func(t *testing.T) {
			_, s := standalone()
			turn := newTurn(s, "t", nil, Selection{})
			turn.limits = &ExecutionLimits{Timeout: 10 * time.Second}
			began := time.Now()
			turn.expire(s.all.now().Add(-since))
			<-turn.ctx.Done()
			if got, want := time.Since(began), 10*time.Second-max(0, since); got.Round(time.Millisecond) != want {
				t.Errorf("%s: it ended after %v, want %v", name, got, want)
			}
			s.Close()
		})
	}
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
