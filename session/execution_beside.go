package session

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// besideRun is an execution of a parallel provider in this process. Its fields belong to the session's goroutine. It owns the goroutine of Run
// and that of the cancel hook; the first ends with Run, the second is left alone after the cleanup timeout.
type besideRun struct {
	s        *Session
	turn     TurnID
	req      *ExecutionRequest
	ctx      context.Context
	cancel   context.CancelCauseFunc
	stage    stage
	before   stage // the one that cancelling came from
	provider providerState
	placed   bool   // it holds a place of the process
	waits    bool   // to start again: its start could not be stored
	late     func() // finishes with what the provider returned while the execution was being cancelled; nil for none

	message string
	chars   int
	text    []byte
	ids     map[string]bool        // of artifacts
	answers map[string]chan answer // open actions
	fault   *Failure               // the first thing the provider did that it must not
	say     saying                 // text that is not on the disk yet
	unsaid  error                  // something that was told could not be stored
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
	if req.Runner == nil || s.stopping || len(x.line) > 0 || x.begun+x.asked >= maxBeside {
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
	run.begin()
	return run
}

// begin takes the execution out of the line, into the place that was taken for it.
func (run *besideRun) begin() {
	run.stage.enter(stageRunning)
	run.provider, run.placed = working, true
	run.leaveLine()
	run.s.exec.begun++
}

func (run *besideRun) leaveLine() {
	x := &run.s.exec
	if i := slices.Index(x.line, run); i >= 0 {
		x.line = slices.Delete(x.line, i, i+1)
	}
}

// startBeside starts as many executions as there is room for: in this session, and in the process.
func (s *Session) startBeside() {
	x := &s.exec
	for _, run := range slices.Clone(x.line) {
		if run.stage != stageInLine {
			continue
		}
		if x.begun+x.asked >= maxBeside || s.stopping {
			return
		}
		run.stage.enter(stageAsking)
		x.asked++
		if s.takePlace(run.placeTaken) {
			run.placeTaken()
		}
	}
}

// placeTaken starts an execution in the place that was taken for it, unless it does not wait any more.
func (run *besideRun) placeTaken() {
	s := run.s
	s.exec.asked--
	if run.stage == stageAsking && !s.stopping {
		run.begin()
		run.start()
		return
	}
	if run.before == stageAsking { // its cancel may come to nothing: it asks again then
		run.before = stageInLine
	}
	s.all.places.give()
	s.startBeside()
}

// opening are the facts an execution begins with.
func (run *besideRun) opening() []line {
	s := run.s
	msg, started := s.said(run.req.Input, Selection{Provider: run.req.Provider})
	return lines(run.turn, msg, started)
}

func (run *besideRun) start() {
	run.s.append(run.opening(), func(_ Seq, err error) {
		switch {
		case err == nil:
			go run.work()
		case passes(err) && !run.s.stopping:
			run.s.log().Warn("execution did not start", "session", run.s.ID, "turn", run.turn, "err", err)
			run.startAgain()
		default: // it has not begun: its end is what can still be tried
			run.provider = returned
			run.end(&ending{turn: run.turn, kind: endFailed, failure: executionFault(messageOf(err))}, nil)
		}
	})
}

// startAgain starts the execution in a second, in the place it holds: it was accepted, and is not given up for what passes. Meanwhile it may be
// cancelled, or a process that got the lease may have gone on with it.
func (run *besideRun) startAgain() {
	s := run.s
	run.waits = true
	s.after(time.Second, func() {
		switch {
		case s.exec.runs[run.turn] != run: // left to the next process
		case run.stage == stageCancelling: // which may come to nothing
			run.startAgain()
		case run.stage != stageRunning:
			run.provider = returned
			run.free()
		default:
			s.withLease(run.startHeld)
		}
	})
}

// startHeld goes on with startAgain, with the lease or why it could not be had.
func (run *besideRun) startHeld(err error) {
	s := run.s
	open := s.next.turn(run.turn)
	switch {
	case s.gone.Load() || err == nil && open == nil:
		run.provider = returned
		run.over(errTurnGone)
	case err != nil || run.stage != stageRunning:
		run.startAgain()
	case open.Started: // by a process that is gone
		run.provider = returned
		run.end(lostEnding(open, ""), nil)
	default:
		run.waits = false
		run.start()
	}
}

// execution is what the provider is given. Safe on any goroutine.
func (run *besideRun) execution() *Execution {
	return &Execution{Turn: run.turn, Session: run.s.ID, Input: run.req.Input, Config: run.req.Config, run: run}
}

// work calls the provider. It ends when that returns.
func (run *besideRun) work() {
	x := run.execution()
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

// finish takes what the provider returned. It counts while the execution runs: one that is being cancelled ends as that, whatever comes late.
func (run *besideRun) finish(final string, err error) {
	run.provider = returned
	open := run.s.next.turn(run.turn)
	if err == nil {
		err = run.unsaid
	}
	failed := func(f *Failure) { run.end(&ending{turn: run.turn, kind: endFailed, failure: f}, nil) }
	switch {
	case run.stage == stageCancelling:
		run.late = func() { run.finish(final, err) }
	case run.stage != stageRunning:
		run.free()
	case run.fault != nil:
		failed(run.fault)
	case err != nil:
		failed(executionFault(run.words(err)))
	case open != nil && len(open.Actions) > 0:
		failed(executionFault("Provider finished with an unresolved action"))
	default:
		run.end(nil, &final)
	}
}

// end ends the execution: with e, or as a success with final. Of several ends the first counts.
func (run *besideRun) end(e *ending, final *string) {
	if run.stage.enter(stageEnding) {
		run.say.refuse(errTurnGone)
		run.storeEnd(e, final)
	}
}

// storeEnd appends the end, every second until it is stored: nothing is told of it before.
func (run *besideRun) storeEnd(e *ending, final *string) {
	s := run.s
	again := func(err error) {
		if s.stopping { // left to the next process
			s.all.unstored.Store(true)
			run.over(errors.Join(errTurnGone, err))
			return
		}
		s.after(time.Second, func() { run.storeEnd(e, final) })
	}
	s.withLease(func(err error) {
		open := s.next.turn(run.turn)
		switch {
		case err != nil:
			again(err)
			return
		case open == nil: // another process has closed it
			run.over(errTurnGone)
			return
		}
		bodies := run.closing(open, e, final)
		s.append(lines(run.turn, bodies...), func(seq Seq, err error) {
			if err != nil {
				again(err)
				return
			}
			o := outcome(run.turn, bodies[len(bodies)-1])
			o.Seq = seq
			run.over(errors.New("execution has ended"))
			s.tellWatchers(o)
		})
	})
}

// closing lists the facts that end the execution.
func (run *besideRun) closing(open *OpenTurn, e *ending, final *string) []protocol.Body {
	if final == nil {
		return run.s.closing(open, e)
	}
	done := &protocol.TurnCompleted{DurationMS: max(0, run.s.all.now().Sub(open.StartedAt).Milliseconds())}
	done.More.StopReason, done.More.FinalOutput = stopEndTurn, final
	if run.chars == 0 {
		return []protocol.Body{done}
	}
	m := &protocol.AssistantMessageCompleted{Content: string(run.text), ContentChars: run.chars, MessageID: run.message}
	m.More.Parallel = true
	return []protocol.Body{m, done}
}

// over says that nothing of the execution is left to be stored here. Its lane is freed when its provider has come back, or after a while.
func (run *besideRun) over(cause error) {
	s := run.s
	run.stage.enter(stageEnded)
	run.leave()
	run.cancel(cause)
	if run.provider == working {
		s.after(s.all.cleanup(), func() {
			run.provider = returned
			run.free()
		})
	}
	run.free()
}

// free gives the lane back once the execution has ended and its provider does not work on it.
func (run *besideRun) free() {
	s := run.s
	if run.stage != stageEnded || run.provider == working || s.exec.runs[run.turn] != run {
		return
	}
	delete(s.exec.runs, run.turn)
	if run.provider != uncalled {
		s.exec.begun--
	}
	s.startBeside()
	s.settleDown()
}

// resolveBeside stores the answer to an action of a parallel provider that runs here; false when none does.
func (s *Session) resolveBeside(turn TurnID, action string, b protocol.Body, got answer, done func(error)) bool {
	run := s.exec.runs[turn]
	if run == nil {
		return false
	}
	if run.stage != stageRunning {
		done(errNoAction(action))
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
