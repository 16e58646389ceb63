package session

import (
	"context"
	"errors"

	"github.com/rind-dev/rind/protocol"
)

// ErrUnstored says that the end of a turn could not be stored: the next process that works in its session closes it.
var ErrUnstored = errors.New("the end of a turn could not be stored")

// Shutdown ends all work: running turns are cancelled, waiting ones are left as they are, and every goroutine is ended. It
// returns when all is written, with ErrUnstored when that cannot be, or with ctx's error. The store stays open.
func (ss *Sessions) Shutdown(ctx context.Context) error {
	ss.mu.Lock()
	ss.stopping = true
	ss.mu.Unlock()
	all := ss.opened() // none comes any more
	ss.places.close()  // each session hears of the end by itself: one that is cancelled must not let another's execution start
	if ss.cfg.OnEnd != nil {
		ss.cfg.OnEnd()
	}
	for _, s := range all {
		s.post(s.shutdown)
	}
	ss.cancel()
	done := make(chan struct{})
	go func() {
		ss.live.Wait()
		close(done)
	}()
	select {
	case <-done:
		if ss.unstored.Load() {
			return ErrUnstored
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// shutdown lets go of everything; the goroutine ends once the turn has written its end.
func (s *Session) shutdown() {
	s.stopping = true
	s.refs = 0
	for _, p := range s.lane.line {
		p.withdraw(stopShutdown)
	}
	s.lane.line = nil
	if s.unsettled != nil { // left to the next process
		s.unsettled = nil
		s.all.unstored.Store(true)
	}
	if t := s.lane.run; t != nil && t.left {
		s.vacate(t)
	} else if t != nil {
		t.stop()
	}
	s.stopExecutions()
	for _, t := range s.jobs.live {
		s.endJob(t, protocol.ReasonShutdown)
	}
	s.jobs.release(func(*taskWait) bool { return true })
	if s.lane.run == nil {
		s.endScope(Outcome{Outcome: OutcomeCancelled, Stop: stopShutdown, Reason: protocol.ReasonShutdown})
	}
	s.settleDown()
}
