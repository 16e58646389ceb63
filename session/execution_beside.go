package session

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Runner is a provider of the parallel lane (docs/protocol/portable-2026-09-02.md section 9). Safe for concurrent use.
type Runner interface {
	// Run answers one execution and returns its final output. ctx ends when the execution is cancelled; what Run does after the end
	// of its execution is dropped. The text of an error is the text of run.failed.
	Run(ctx context.Context, x *Execution) (final string, err error)
}

// CleanupRunner is a Runner with a cancel hook, called once for each execution that is cancelled, also when Run was never called.
type CleanupRunner interface {
	Runner
	Cancel(ctx context.Context, turn TurnID, reason *string) error
}

// ExecutionOptions bound the executions of a process.
type ExecutionOptions struct {
	Cleanup time.Duration // of a cancel hook; 0 is 10 s
	Running int           // executions at one time; 0 is no bound
	Figures bool          // count what Sessions.Figures tells
	Mask    func(text string) string
}

// SetExecutions sets the bounds of executions. Call it before any session is used.
func (ss *Sessions) SetExecutions(o ExecutionOptions) {
	ss.execution, ss.places.most = o, o.Running
	if o.Figures {
		ss.figures = newFigures()
	}
}

func (ss *Sessions) cleanup() time.Duration {
	if ss.execution.Cleanup > 0 {
		return ss.execution.Cleanup
	}
	return defaultCleanup
}

// besideRun is an execution of a parallel provider in this process. Its fields belong to the session's goroutine. It owns the goroutine of Run
// and that of the cancel hook; the first ends with Run, the second is left alone after the cleanup timeout.
type besideRun struct {
	s        *Session
	turn     TurnID
	req      *ExecutionRequest
	ctx      context.Context
	cancel   context.CancelCauseFunc
	message  string
	chars    int
	text     []byte
	ids      map[string]bool        // of artifacts
	answers  map[string]chan answer // open actions
	fault    *Failure               // the first thing the provider did that it must not
	ahead    int                    // bytes of events on their way to the disk
	unsaid   error                  // one of them could not be stored
	asked    bool                   // for a place of the process
	begun    bool                   // Run was called, or is about to be
	returned bool
	over     bool // its end was handed to the store
	ended    bool // its end is on disk
	hook     bool // cleanup has begun
	placed   bool // it holds a place of the process
}

func (s *Session) newBeside(turn TurnID, req *ExecutionRequest) *besideRun {
	run := &besideRun{s: s, turn: turn, req: req, message: s.all.cfg.IDs.Hex32(), ids: map[string]bool{}, answers: map[string]chan answer{}}
	run.ctx, run.cancel = context.WithCancelCause(context.Background())
	s.exec.runs[turn] = run
	return run
}

// besideLine puts an execution of a parallel provider in line and starts what has room.
func (s *Session) besideLine(turn TurnID, req *ExecutionRequest) {
	s.exec.line = append(s.exec.line, s.newBeside(turn, req))
	s.startBeside()
}

// startAtOnce takes the place of an execution that is not in the log yet, so that its acceptance and its start are one batch. nil: it has to
// stand in line.
func (s *Session) startAtOnce(turn TurnID, req *ExecutionRequest) *besideRun {
	x := &s.exec
	if req.Runner == nil || s.stopping || len(x.line) > 0 || x.beginning+x.asked >= maxBeside {
		return nil
	}
	for id, t := range s.next.Parallel {
		if !t.Started && s.exec.runs[id] == nil {
			return nil // it was accepted before, and is about to be put in line
		}
	}
	if !s.all.places.try() {
		return nil
	}
	run := s.newBeside(turn, req)
	run.begun, run.placed = true, true
	x.beginning++
	return run
}

// abandon gives back what startAtOnce took, because the acceptance is not in the log.
func (run *besideRun) abandon() {
	run.cancel(errTurnGone)
	run.leave()
	run.ended, run.returned = true, true
	run.free()
}

// startBeside starts as many executions as there is room for: in this session, and in the process.
func (s *Session) startBeside() {
	x := &s.exec
	for _, run := range slices.Clone(x.line) {
		if run.asked {
			continue
		}
		if x.beginning+x.asked >= maxBeside || s.stopping {
			return
		}
		run.asked = true
		x.asked++
		if s.takePlace(run.placeTaken) {
			run.placeTaken()
		}
	}
}

// placeTaken starts an execution in the place that was taken for it, unless it does not stand in line any more.
func (run *besideRun) placeTaken() {
	s := run.s
	s.exec.asked--
	i := slices.Index(s.exec.line, run)
	if i < 0 || s.stopping {
		s.all.places.give()
		s.startBeside()
		return
	}
	s.exec.line = slices.Delete(s.exec.line, i, i+1)
	run.begun, run.placed = true, true
	s.exec.beginning++
	run.start()
}

// opening are the facts an execution begins with.
func (run *besideRun) opening() []line {
	s := run.s
	msg, started := s.said(run.req.Input, Selection{Provider: run.req.Provider})
	return lines(run.turn, msg, started)
}

func (run *besideRun) start() {
	run.s.append(run.opening(), func(_ Seq, err error) {
		if err != nil { // it has not begun: its end is what can still be tried
			run.returned = true
			run.end(&ending{turn: run.turn, kind: endFailed, failure: executionFault(messageOf(err))}, nil)
			return
		}
		go run.work()
	})
}

// work calls the provider. It ends when that returns.
func (run *besideRun) work() {
	x := &Execution{Turn: run.turn, Session: run.s.ID, Input: run.req.Input, Config: run.req.Config, run: run}
	final, err := func() (final string, err error) {
		defer func() {
			if r := recover(); r != nil {
				run.s.log().Error("panic in provider", "turn", run.turn, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
				err = runnerFault("Provider crashed")
			}
		}()
		return run.req.Runner.Run(run.ctx, x)
	}()
	run.s.post(func() { run.finish(final, err) })
}

// finish takes what the provider returned, unless the execution is being cancelled.
func (run *besideRun) finish(final string, err error) {
	run.returned = true
	open := run.s.next.turn(run.turn)
	if err == nil {
		err = run.unsaid
	}
	switch {
	case run.over || open == nil || open.Cancel != nil || run.hook:
	case run.fault != nil:
		run.end(&ending{turn: run.turn, kind: endFailed, failure: run.fault}, nil)
	case err != nil:
		run.end(&ending{turn: run.turn, kind: endFailed, failure: executionFault(run.words(err))}, nil)
	case len(open.Actions) > 0:
		run.end(&ending{turn: run.turn, kind: endFailed, failure: executionFault("Provider finished with an unresolved action")}, nil)
	default:
		run.end(nil, &final)
	}
	run.free()
}

// runnerFault is a failure whose text clients are shown as it is.
type runnerFault string

func (f runnerFault) Error() string { return string(f) }

// words is the text of a provider's error: one that fits a client.
func (run *besideRun) words(err error) string {
	text := err.Error()
	if mask := run.s.all.execution.Mask; mask != nil {
		text = mask(text)
	}
	if len(text) > 4096 {
		text = strings.ToValidUTF8(text[:4096], "")
	}
	if text == "" {
		return executionFailed
	}
	return text
}

// end appends the end of the execution: e, or success with final.
func (run *besideRun) end(e *ending, final *string) {
	s := run.s
	open := s.next.turn(run.turn)
	if open == nil || run.over {
		return
	}
	run.over = true
	var bodies []protocol.Body
	if final != nil {
		if run.chars > 0 {
			m := &protocol.AssistantMessageCompleted{Content: string(run.text), ContentChars: run.chars, MessageID: run.message}
			m.More.Parallel = true
			bodies = append(bodies, m)
		}
		done := &protocol.TurnCompleted{DurationMS: max(0, s.all.now().Sub(open.StartedAt).Milliseconds())}
		done.More.StopReason, done.More.FinalOutput = stopEndTurn, final
		bodies = append(bodies, done)
	} else {
		bodies = s.closing(open, e)
	}
	terminal := bodies[len(bodies)-1]
	s.append(lines(run.turn, bodies...), func(seq Seq, err error) {
		if err != nil { // it is told nothing until its end can be stored
			run.over = false
			if s.stopping {
				run.returned, run.ended = true, true
				run.leave()
				run.free()
				return
			}
			s.after(time.Second, func() { run.end(e, final) })
			return
		}
		run.ended = true
		run.leave()
		run.cancel(errors.New("execution has ended"))
		o := outcome(run.turn, terminal)
		o.Seq = seq
		s.tellWatchers(o)
		if !run.returned { // its lane is freed all the same after a while
			s.after(s.all.cleanup(), func() {
				run.returned = true
				run.free()
			})
		}
		run.free()
	})
}

// free gives the lane back once the end is on disk and the provider has returned.
func (run *besideRun) free() {
	s := run.s
	if !run.ended || !run.returned && run.begun || s.exec.runs[run.turn] != run {
		return
	}
	delete(s.exec.runs, run.turn)
	if run.begun {
		s.exec.beginning--
	}
	s.startBeside()
	s.settleDown()
}

// stop cancels the execution. done is called once the request is on disk.
func (run *besideRun) stop(r CancelRequest, done func(error)) {
	s := run.s
	open := s.next.turn(run.turn)
	if open == nil || run.over {
		done(errNoTurn())
		return
	}
	if open.Cancel != nil || run.hook {
		done(nil)
		return
	}
	run.hook = true
	if i := slices.Index(s.exec.line, run); i >= 0 {
		s.exec.line = slices.Delete(s.exec.line, i, i+1)
	}
	s.append(lines(run.turn, cancelBody(r)), func(_ Seq, err error) {
		done(err)
		if err != nil {
			run.hook = false
			return
		}
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
	late := "provider cleanup timed out after " + limit.String()
	result := make(chan string, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				s.log().Error("panic in cancel hook", "turn", run.turn, "panic", fmt.Sprint(p))
				result <- "Provider crashed"
			}
		}()
		switch err := hook.Cancel(ctx, run.turn, reason); {
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

// resolveBeside stores the answer to an action of a parallel provider that runs here; false when none does.
func (s *Session) resolveBeside(turn TurnID, action string, b protocol.Body, got answer, done func(error)) bool {
	run := s.exec.runs[turn]
	if run == nil {
		return false
	}
	if run.hook || run.over {
		done(protocol.Errorf(protocol.ActionNotFound, "No pending action: %s", action))
		return true
	}
	s.append(lines(turn, b), func(_ Seq, err error) {
		if ch := run.answers[action]; err == nil && ch != nil {
			delete(run.answers, action)
			run.hold()
			ch <- got
		}
		done(err)
	})
	return true
}

// stopExecutions cancels what runs beside the serial lane, because the runtime ends. What has not started stays in line in the log.
func (s *Session) stopExecutions() {
	for _, run := range s.exec.runs {
		if !run.begun {
			delete(s.exec.runs, run.turn)
			continue
		}
		run.stop(CancelRequest{Turn: run.turn, Reason: protocol.ReasonShutdown}, func(error) {})
	}
	s.exec.line = nil
}
