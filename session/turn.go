package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Agent answers whole turns: our own loop, or a hosted ACP agent.
type Agent interface {
	// Turn works t off and returns how it ended; t is already started in the log, and Turn writes no terminal. It runs on
	// a goroutine of its own and must come back soon after ctx ends; one that does not is left behind after the cleanup timeout, and what
	// it does from then on is dropped. A turn may have been begun by another process: what it left is in
	// t.Open. An error is a *Failure, or the cause of ctx, or a defect.
	Turn(ctx context.Context, t *Turn) (stop string, err error)
}

// Failure is the end of a turn that failed (docs/protocol/rind-v2.md section 5, turn_failed).
type Failure struct {
	Type    string // protocol.FailConfiguration …
	Status  string // rejected, failed, timed_out, unavailable
	Source  string // provider, tool, persistence, runtime
	Message string // one line for the user
	Stop    string // stop reason; "" takes the one that belongs to Type
	Cause   error  // for the log file
}

func (f *Failure) Error() string { return f.Type + ": " + f.Message }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

func (f *Failure) stop() string {
	if f.Stop != "" {
		return f.Stop
	}
	switch f.Type {
	case protocol.FailConfiguration:
		return stopConfiguration
	case protocol.FailPersistence:
		return stopPersistence
	case protocol.FailTruncated:
		return stopMaxTokens
	case protocol.FailFiltered:
		return stopFilter
	case protocol.FailCrashed, protocol.FailStalled:
		return stopProvider
	}
	switch f.Source {
	case "provider":
		return stopProvider
	case "tool":
		return stopTool
	}
	return stopRuntime
}

// ErrShutdown is the cause (context.Cause) with which a turn's context ends because the runtime does.
var ErrShutdown = errors.New("runtime is shutting down")

// Further causes with which a turn's context ends. errLeave lets go of a waiting turn without writing anything.
var (
	errCancelled = errors.New("turn was cancelled")
	errLeave     = errors.New("turn goes on waiting")
	errTurnGone  = errors.New("turn is not open any more")
)

// Turn is a running turn, as its agent sees it. Its methods may be called from the agent's goroutines; all of them pass through the
// session's goroutine, where order is decided. Launch starts the one goroutine it owns, which ends when the Agent returns.
type Turn struct {
	ID        TurnID
	Selection Selection // frozen when the turn starts

	s         *Session
	prompt    *Prompt
	ctx       context.Context
	cancel    context.CancelCauseFunc
	gather    gather
	transient []protocol.SystemMessage
	compacted json.RawMessage        // record of the newest compaction of this turn
	ending    bool                   // owned by the session's goroutine: no input is accepted any more
	answers   map[string]chan answer // owned by the session's goroutine: who waits for an action
	limits    *ExecutionLimits       // of an execution; nil for none
	wrong     error                  // the configuration of an execution cannot be used
	expiry    *time.Timer            // of an execution's timeout
	aside     agentFunc              // answers in the place of the agent; nil for none
	hurry     chan struct{}          // closed when somebody waits for the lane
	steered   func()                 // owned by the session's goroutine: rings for a hosted agent that takes steering; nil for others
	handed    map[string]bool        // owned by the session's goroutine: inputs that are with the hosted agent
	placed    atomic.Bool            // it holds a place of the process

	// Owned by the session's goroutine.
	over     bool        // its end is known
	left     bool        // it ended without its agent, which has not come back
	patience func() bool // stops the wait for an agent whose context has ended
}

func newTurn(s *Session, id TurnID, p *Prompt, sel Selection) *Turn {
	t := &Turn{ID: id, Selection: sel, s: s, prompt: p, answers: map[string]chan answer{}, hurry: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.gather.t = t
	if p != nil {
		p.turn = t
	}
	return t
}

// launch runs the agent.
func (t *Turn) launch() {
	go func() {
		stop, err := t.answer()
		t.s.post(func() { t.s.finish(t, stop, err) })
	}()
	t.patience = context.AfterFunc(t.ctx, func() {
		t.s.post(func() {
			if !t.over {
				t.patience = t.s.after(t.s.all.cleanup(), func() { t.s.leaveBehind(t) }).Stop
			}
		})
	})
}

// answer calls the agent; a panic in it fails the turn, not the process.
func (t *Turn) answer() (stop string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in turn: %v\n%s", r, debug.Stack())
		}
	}()
	if t.aside != nil {
		return t.aside(t.ctx, t)
	}
	if t.wrong != nil {
		return "", t.wrong
	}
	return t.s.all.cfg.Agent.Turn(t.ctx, t)
}

// drop lets go of a turn that never started.
func (t *Turn) drop(cause error) {
	t.cancel(cause)
	t.leavePlace()
	if t.expiry != nil {
		t.expiry.Stop()
	}
}

// stop ends the turn because the runtime ends; a waiting turn is only let go. Runs on the session's goroutine.
func (t *Turn) stop() {
	if o := t.s.next.turn(t.ID); o != nil && o.waiting() {
		t.cancel(errLeave)
		return
	}
	t.cancel(ErrShutdown)
}

// Session returns the id of the turn's session.
func (t *Turn) Session() SessionID { return t.s.ID }

// Workspace returns the folder of the turn's session.
func (t *Turn) Workspace() string { return t.s.workspace }

// Transient are the system messages that hold for this turn only.
func (t *Turn) Transient() []protocol.SystemMessage { return t.transient }

// do runs f on the session's goroutine and waits until it called done.
func (t *Turn) do(f func(done func(error))) error {
	ch := make(chan error, 1)
	if !t.s.post(func() { f(func(err error) { ch <- err }) }) {
		return errors.New("session ended under a turn")
	}
	return <-ch
}

// View runs f on the session's goroutine with the turn as it stands in the log, everything handed over before included; f must
// not block and must not keep what it sees.
func (t *Turn) View(f func(st *State, open *OpenTurn, past *History)) error {
	return t.do(func(done func(error)) {
		t.gather.flush()
		t.s.settled(func(err error) {
			if err != nil {
				done(err)
				return
			}
			t.s.recallWhile(t.ctx, func(past *History, err error) {
				open := t.s.shown.turn(t.ID)
				switch {
				case err != nil:
				case open == nil:
					err = errTurnGone
				default:
					f(t.s.shown, open, past)
				}
				done(err)
			})
		})
	})
}

// Record appends facts in one transaction and returns once they are on disk. Text said before is written before. It fails with
// errCancelled when a cancel was recorded and the bodies start something (a tool, a sampling).
func (t *Turn) Record(bodies ...protocol.Body) error {
	return t.do(func(done func(error)) {
		if c := t.s.next.turn(t.ID); c == nil || c.Cancel != nil && starts(bodies) {
			done(errCancelled)
			return
		}
		t.gather.flush()
		t.s.append(lines(t.ID, bodies...), func(_ Seq, err error) { done(err) })
	})
}

func starts(bodies []protocol.Body) bool {
	for _, b := range bodies {
		switch b.(type) {
		case *protocol.ToolCallStarted, *protocol.ApprovalRequested, *protocol.UserQuestionRequested, *protocol.QueuedInputDelivered:
			return true
		}
	}
	return false
}

// Note appends small progress without waiting for the disk, in order with the text said before and after.
func (t *Turn) Note(bodies ...protocol.Body) { t.gather.note(bodies) }

// failure turns what an agent returned into the failure the turn ends with.
func (t *Turn) failure(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		if f.Cause != nil {
			t.s.log().Info("turn failed", "session", t.s.ID, "turn", t.ID, "type", f.Type, "cause", f.Cause, "behind", errors.Unwrap(f.Cause))
		}
		return f
	}
	if e, ok := errors.AsType[*protocol.Error](err); ok && (e.Kind == protocol.PersistenceError || e.Kind == protocol.SessionBusy) {
		return &Failure{Type: protocol.FailPersistence, Status: "failed", Source: "persistence", Message: e.Message}
	}
	e := t.s.all.internal(err)
	return &Failure{Type: protocol.FailInternal, Status: "failed", Source: "runtime", Message: e.Message}
}

// finish ends a turn whose agent has returned.
func (s *Session) finish(t *Turn, stop string, err error) {
	if t.left {
		s.vacate(t)
		return
	}
	s.conclude(t, stop, err, "", func(o Outcome) { s.turnOver(t, o) })
}

// leaveBehind ends a turn whose agent does not come back although its context has ended. The lane is kept for it a while longer.
func (s *Session) leaveBehind(t *Turn) {
	if t.over {
		return
	}
	limit := s.all.cleanup()
	s.log().Warn("agent does not come back", "session", s.ID, "turn", t.ID, "cause", context.Cause(t.ctx))
	t.left = true
	s.conclude(t, "", context.Cause(t.ctx), lateCleanup(limit), func(o Outcome) {
		s.turnTold(t, o)
		if s.stopping {
			s.vacate(t)
			return
		}
		s.after(limit, func() { s.vacate(t) })
	})
}

// lateCleanup is what is told of a cleanup that took too long.
func lateCleanup(limit time.Duration) string {
	return "provider cleanup timed out after " + limit.String()
}

// conclude writes the end of a turn: its agent has returned with stop and err, or is left behind, and cleanup says why. then runs once that is
// on disk, or cannot be stored.
func (s *Session) conclude(t *Turn, stop string, err error, cleanup string, then func(Outcome)) {
	t.over, t.ending = true, true
	t.patience()
	t.gather.close()
	if t.expiry != nil {
		t.expiry.Stop()
	}
	open := s.next.turn(t.ID)
	if open == nil { // the lease was lost and the new owner closed it
		then(Outcome{Turn: t.ID, Outcome: OutcomeFailed, Stop: stopRuntime, Fault: &TurnFault{Type: protocol.FailTurn, Message: interruptedText}})
		return
	}
	cause := context.Cause(t.ctx)
	e := &ending{turn: t.ID, cleanup: cleanup}
	switch {
	case open.Cancel != nil || errors.Is(cause, errCancelled):
		e.kind = endCancelled
		e.reason = protocol.ReasonUser
	case errors.Is(cause, errLeave) && open.waiting():
		t.cancel(errLeave)
		then(Outcome{Turn: t.ID, Outcome: OutcomeWaiting, Stop: stopShutdown})
		return
	case errors.Is(cause, ErrShutdown), errors.Is(cause, errLeave):
		e.kind, e.reason, e.stop = endCancelled, protocol.ReasonShutdown, stopShutdown
	case errors.Is(err, ErrAgentCancelled):
		e.kind, e.reason = endCancelled, reasonAgent
	case err != nil:
		e.kind, e.failure = endFailed, t.failure(err)
	default:
		e.kind, e.stop = endCompleted, stop
	}
	t.cancel(errors.New("turn has ended"))
	s.write(e, func(o Outcome, err error) {
		o.Record = t.compacted
		if err != nil { // not even the end could be stored: it is not told, the prompt is answered, the end is retried
			o = Outcome{Turn: t.ID, Outcome: OutcomeFailed, Stop: stopPersistence, Fault: &TurnFault{Type: protocol.FailPersistence, Message: messageOf(err)}}
			s.retryLater(e)
		}
		then(o)
	})
}

func messageOf(err error) string {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e.Message
	}
	return err.Error()
}
