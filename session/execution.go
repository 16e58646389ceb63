package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Bounds of executions (docs/protocol/portable-2026-09-02.md sections 1 and 6).
const (
	maxBeside       = 64   // executions of parallel providers at one time, per session
	maxInLine       = 1000 // executions that wait for their lane, per session
	defaultCleanup  = 10 * time.Second
	portableKeys    = "portable" // scope of idempotency keys
	executionFailed = "Provider failed"
)

// ExecutionRequest asks for an execution: a turn accepted over the portable protocol.
type ExecutionRequest struct {
	Provider     string
	Input        string
	Config       json.RawMessage // an object
	Capabilities []string        // unique, sorted
	Key          string          // idempotency key, "" for none
	Digest       string          // fingerprint of the request, with Key
	// Runner answers it beside the serial lane. nil: a turn of the session's agent, in line with the prompts of editors.
	Runner Runner
	// Hosted is what its turn is set to, whatever the session is: to a provider that hosts an agent, which takes no configuration. nil for none.
	Hosted *Selection
}

// Accepted is an execution that is on disk.
type Accepted struct {
	Turn     TurnID
	Seq      Seq // of the acceptance; 0 for a replay, like Time
	Time     time.Time
	Replayed bool // by an earlier request with the same key
}

// executions is what a session knows of its executions beside the state. It belongs to the session's goroutine.
type executions struct {
	runs      map[TurnID]*besideRun        // of parallel providers, in this process
	line      []*besideRun                 // those of runs that have not started
	begun     int                          // of runs that have started and keep their lane
	asked     int                          // of those in line: how many wait for a place of the process
	placed    bool                         // the next execution of the serial lane has its place
	asking    bool                         // it has asked for one
	accepting map[string]*acceptance       // by key, not on disk yet
	setups    map[TurnID]*ExecutionRequest // of serial executions that have not started
	pending   int                          // acceptances on their way to the log
	adoption  door                         // shut while it is being found out what a dead process left in line: that comes first
}

type acceptance struct {
	digest string
	done   []func(Accepted, error)
}

func newExecutions() executions {
	return executions{runs: map[TurnID]*besideRun{}, accepting: map[string]*acceptance{}, setups: map[TurnID]*ExecutionRequest{}}
}

func (x *executions) busy() bool { return len(x.runs) > 0 || x.pending > 0 }

// open reports whether one has no end yet. A provider that has not come back from one that ended does not count.
func (x *executions) open() bool {
	for _, run := range x.runs {
		if run.stage != stageEnded {
			return true
		}
	}
	return x.pending > 0
}

// Keep makes a draft a session for good, with the metadata of its conversation, and returns once it is on disk.
func (s *Session) Keep(ctx context.Context, metadata json.RawMessage) error {
	return s.call(ctx, func(done func(error)) {
		s.next.Metadata, s.shown.Metadata = metadata, metadata
		s.withLease(func(err error) {
			if err != nil {
				done(err)
				return
			}
			s.append(s.opening(), func(_ Seq, err error) { done(err) })
		})
	})
}

func (s *Session) execute(req *ExecutionRequest, done func(Accepted, error)) {
	s.door.enter(func() { s.admitExecution(req, done) })
}

// admitExecution looks the execution's idempotency key up, and accepts an execution that is new.
func (s *Session) admitExecution(req *ExecutionRequest, done func(Accepted, error)) {
	first := s.exec.accepting[req.Key]
	switch {
	case s.gone.Load():
		done(Accepted{}, errGone(s.ID))
	case req.Key == "" || first == nil && s.draft.Load():
		s.takeExecution(req, done)
	case first == nil:
		s.door.shut = true
		s.replayed(req, func(a Accepted, err error) {
			if errors.Is(err, ErrNotFound) {
				s.takeExecution(req, done)
			} else {
				done(a, err)
			}
			s.door.open()
		})
	case first.digest != req.Digest:
		done(Accepted{}, errKeyConflict())
	default:
		first.done = append(first.done, func(a Accepted, err error) {
			a.Replayed = err == nil
			done(a, err)
		})
	}
}

// takeExecution accepts a new execution.
func (s *Session) takeExecution(req *ExecutionRequest, done func(Accepted, error)) {
	switch {
	case s.gone.Load():
		done(Accepted{}, errGone(s.ID))
		return
	case s.stopping:
		done(Accepted{}, errStopping())
		return
	case s.inLine() >= maxInLine:
		done(Accepted{}, protocol.Errorf(protocol.Overloaded, "Too many executions are queued"))
		return
	}
	acc := &acceptance{digest: req.Digest, done: []func(Accepted, error){done}}
	if req.Key != "" {
		s.exec.accepting[req.Key] = acc
	}
	s.exec.pending++
	s.withLeaseOrParked(s.acceptor(req, acc))
}

// acceptor accepts an execution with the lease, or answers why there is none.
func (s *Session) acceptor(req *ExecutionRequest, acc *acceptance) func(error) {
	return func(err error) {
		if err != nil {
			s.accepted(req, acc, Accepted{}, err)
			return
		}
		s.accept(req, acc)
	}
}

func errKeyConflict() error {
	return protocol.Errorf(protocol.IdempotencyConflict, "Idempotency key was already used for a different request")
}

// replayed looks for the execution a key was used for before; ErrNotFound when it is new.
func (s *Session) replayed(req *ExecutionRequest, then func(Accepted, error)) {
	fetch(s, func(ctx context.Context, store Store) (Key, error) {
		return store.Key(ctx, s.ID, portableKeys, req.Key)
	}, func(k Key, err error) {
		switch {
		case err != nil:
			then(Accepted{}, err)
		case k.Digest != req.Digest:
			then(Accepted{}, errKeyConflict())
		default:
			then(Accepted{Turn: k.Turn, Replayed: true}, nil)
		}
	})
}

// inLine counts the executions that wait for their lane.
func (s *Session) inLine() int { return len(s.next.Queued) + len(s.exec.line) + s.exec.pending }

// accept appends the acceptance and puts the execution in its line; one of a parallel provider that finds room starts with it. The lease is
// held or parked.
func (s *Session) accept(req *ExecutionRequest, acc *acceptance) {
	turn := TurnID(s.all.cfg.IDs.Hex32())
	b := &protocol.TurnAccepted{}
	b.More.Provider, b.More.Surface, b.More.Parallel = req.Provider, protocol.SurfacePortable, req.Runner != nil
	b.More.Input, b.More.Config, b.More.Capabilities, b.More.Key = req.Input, req.Config, req.Capabilities, req.Key
	var keys []Key
	if req.Key != "" {
		keys = []Key{{Surface: portableKeys, Key: req.Key, Digest: req.Digest, Turn: turn}}
	}
	ls := append(s.opening(), lines(turn, b)...)
	first := len(ls) - 1
	run := s.startAtOnce(turn, req)
	if run != nil {
		ls = append(ls, run.opening()...)
	}
	var sent *flight
	sent = s.appendKeyed(ls, keys, func(_ Seq, err error) {
		if err != nil && run != nil { // it never was
			run.provider = returned
			run.over(errTurnGone)
		}
		if errors.Is(err, errRetaken) {
			s.withLease(s.acceptor(req, acc))
			return
		}
		if errors.Is(err, ErrKeyUsed) { // another process was first
			s.replayed(req, func(a Accepted, err error) { s.accepted(req, acc, a, err) })
			return
		}
		if err != nil {
			s.accepted(req, acc, Accepted{}, err)
			return
		}
		if run == nil { // before the answer: whoever is answered may ask for the next one, which stands behind it
			s.exec.adoption.enter(func() { s.enqueue(turn, req) })
		} else {
			go run.work()
		}
		e := &sent.entries[first]
		s.accepted(req, acc, Accepted{Turn: turn, Seq: e.Seq, Time: e.Time}, nil)
	})
}

func (s *Session) accepted(req *ExecutionRequest, acc *acceptance, a Accepted, err error) {
	s.exec.pending--
	if req.Key != "" && s.exec.accepting[req.Key] == acc {
		delete(s.exec.accepting, req.Key)
	}
	for _, f := range acc.done {
		f(a, err)
	}
	s.settleDown()
}

// enqueue puts an accepted execution in the line of its lane.
func (s *Session) enqueue(turn TurnID, req *ExecutionRequest) {
	if s.stopping { // it is in line in the log
		return
	}
	if req.Runner != nil {
		s.besideLine(turn, req)
		return
	}
	s.exec.setups[turn] = req
	p := &Prompt{s: s, req: PromptRequest{Input: req.Input, Surface: protocol.SurfacePortable, exec: turn}, done: []func(Outcome, error){func(_ Outcome, err error) {
		if err != nil && s.next.turn(turn) != nil {
			s.log().Warn("execution did not start", "session", s.ID, "turn", turn, "err", err)
		}
	}}}
	s.lane.join(p)
	if !s.lane.free() || len(s.lane.line) > 1 {
		s.hurryAside()
		return
	}
	s.nextPrompt()
}

// startExecution starts an accepted turn on the serial lane.
func (s *Session) startExecution(p *Prompt) {
	turn := p.req.exec
	if open := s.next.turn(turn); open == nil || open.Cancel != nil { // it was cancelled while it waited, if that can be stored
		s.settled(func(error) {
			if still := s.next.turn(turn); still != nil && still.Cancel == nil {
				s.startExecution(p)
				return
			}
			s.all.places.give()
			delete(s.exec.setups, turn)
			p.finish(Outcome{Turn: turn, Outcome: OutcomeCancelled, Stop: stopCancelled}, nil)
			s.startOver(nil)
			s.nextPrompt()
		})
		return
	}
	sel, limits, wrong := s.setup(s.exec.setups[turn])
	msg, started := s.said(p.req.Input, sel)
	t := newTurn(s, turn, p, sel)
	t.limits, t.wrong = limits, wrong
	t.hold()
	ls := append(s.notices(turn), lines(turn, msg, started)...)
	s.markHosted(sel, ls)
	s.append(ls, func(_ Seq, err error) {
		if err != nil {
			t.drop(err)
			s.notStarted(p, err)
			return
		}
		delete(s.exec.setups, turn)
		t.expire(s.all.now())
		s.startOver(t)
	})
}

// setup is what a serial execution is worked off with. wrong is what its configuration gets wrong: that fails the turn, not the request.
func (s *Session) setup(req *ExecutionRequest) (sel Selection, limits *ExecutionLimits, wrong error) {
	sel = s.next.Sel
	switch {
	case req == nil:
	case req.Hosted != nil:
		wrong = emptyConfig(req.Config)
		if sel.Provider != req.Hosted.Provider { // else what the session is set to holds
			sel.Provider, sel.Model, sel.Effort = req.Hosted.Provider, req.Hosted.Model, req.Hosted.Effort
		}
	default:
		limits, wrong = ReadLimits(req.Config)
		sel = limits.choose(sel)
		if provider, hosted := s.hosts(sel); hosted && wrong == nil {
			if key := limits.ofOurLoop(); key != "" {
				wrong = wrongConfig(key + ": " + HostedPrefix + provider + " answers here, which it does not bind")
			}
		}
	}
	return sel, limits, wrong
}

// ofOurLoop is the key of a limit that would not hold in a hosted agent, which has a loop of its own; "" for none.
func (l *ExecutionLimits) ofOurLoop() string {
	switch {
	case l.Steps > 0:
		return "maxSteps"
	case l.Tokens > 0:
		return "maxTokens"
	case l.Tools != nil:
		return "tools"
	}
	return ""
}

// wrongConfig fails an execution of the agent for a key of its configuration.
func wrongConfig(key string) error {
	return &Failure{Type: protocol.FailConfiguration, Status: "rejected", Source: "runtime", Message: "Invalid agent config: " + key}
}

// endAside closes a turn that no goroutine of this process works on. The lease is held.
func (s *Session) endAside(e *ending, done func(error)) {
	open := s.next.turn(e.turn)
	if open == nil {
		s.settled(func(error) { done(nil) })
		return
	}
	var bodies []protocol.Body
	if e.cancel != nil && open.Cancel == nil {
		bodies = append(bodies, e.cancel)
	}
	bodies = append(bodies, s.closing(open, e)...)
	terminal := bodies[len(bodies)-1]
	s.append(lines(e.turn, bodies...), func(seq Seq, err error) {
		if err == nil {
			o := outcome(e.turn, terminal)
			o.Seq = seq
			s.tellWatchers(o)
		}
		done(err)
	})
}

// OpenExecution is what a session knows of an execution that has no end.
type OpenExecution struct {
	Next       int64     // number of its next event
	Cancelling time.Time // since when; zero when no cancel is on record
}

// Execution tells of an execution that has no end; false when it has one, or is none of this session's.
func (v *View) Execution(turn TurnID) (OpenExecution, bool) {
	t := v.turn(turn)
	if t == nil || !t.Execution {
		return OpenExecution{}, false
	}
	x := OpenExecution{Next: t.NextPortable}
	if t.Cancel != nil {
		x.Cancelling = t.CancelAt
	}
	return x, true
}
