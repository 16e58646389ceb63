package session

import (
	"context"
	"fmt"

	"github.com/rind-dev/rind/protocol"
)

// stop cancels the execution. done is called once the request is on disk.
func (run *besideRun) stop(r CancelRequest, done func(error)) {
	s := run.s
	if run.stage == stageCancelling {
		s.settled(done)
		return
	}
	before := run.stage
	if s.next.turn(run.turn) == nil || !run.stage.enter(stageCancelling) {
		done(errNoTurn())
		return
	}
	run.before = before
	s.append(lines(run.turn, cancelBody(r, false)), func(_ Seq, err error) {
		done(err)
		if err != nil {
			if run.stage.enter(run.before) && run.late != nil { // as if nobody had asked
				run.late()
			}
			if s.stopping { // its end is left to the next process
				run.cancel(ErrShutdown)
			}
			s.startBeside()
			return
		}
		run.leaveLine()
		run.hold()
		run.cancel(errCancelled)
		run.clean(r)
	})
}

// clean runs the provider's hook, bounded, and ends the execution.
func (run *besideRun) clean(r CancelRequest) {
	s := run.s
	end := func(text string) {
		run.end(&ending{turn: run.turn, kind: endCancelled, cleanup: text}, nil)
	}
	hook, ok := run.req.Runner.(CleanupRunner)
	if !ok {
		end("")
		return
	}
	limit := s.all.cleanup()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	var reason *string
	if r.Given {
		reason = &r.Reason
	}
	late := lateCleanup(limit)
	result := make(chan string, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				s.log().Error("panic in cancel hook", "turn", run.turn, "panic", fmt.Sprint(p))
				result <- "Provider crashed"
			}
		}()
		switch err := hook.Cancel(ctx, run.execution(), reason); {
		case ctx.Err() != nil: // it gave up because its time was over, whatever it says of that
			result <- late
		case err != nil:
			result <- run.words(err)
		default:
			result <- ""
		}
	}()
	go func() { // ends with the hook or its time
		defer cancel()
		text := ""
		select {
		case text = <-result:
		case <-ctx.Done():
			text = late
			select {
			case text = <-result: // it came in time, and this goroutine was late
			default:
			}
		}
		s.post(func() { end(text) })
	}()
}

// stopExecutions cancels what runs beside the serial lane, because the runtime ends. What has not started stays in line in the log.
func (s *Session) stopExecutions() {
	for _, run := range s.exec.runs {
		if run.provider == uncalled || run.waits {
			delete(s.exec.runs, run.turn)
			continue
		}
		run.stop(CancelRequest{Turn: run.turn, Reason: protocol.ReasonShutdown}, func(error) {})
	}
	s.exec.line = nil
}
