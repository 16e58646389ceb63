package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Recovery says what is to become of executions whose process is gone (docs/protocol/portable-2026-09-02.md section 10).
type Recovery struct {
	Within time.Duration // an execution that had not started is started, if it was accepted so long ago at most
	// Request makes the request of an accepted execution again; false when its provider, or something it asked for, is not there any more.
	Request func(provider, input string, config json.RawMessage, capabilities []string) (ExecutionRequest, bool)
}

const (
	notStartedText  = "runtime stopped before the execution started"
	notFinishedText = "runtime stopped before the execution finished"
	cleanupText     = "runtime stopped during provider cleanup"
)

// RecoverExecutions closes or starts again every open execution that was accepted over the portable protocol and that no living process
// works on; those that are started are started in the order of their acceptance, over all sessions. Turns of editors are left alone.
// Sessions it cannot read are passed over with a line in the log; where that may pass, they are looked after again in a moment, until all is
// done or the runtime ends. From then on a session whose lease this process takes is looked after too: what another process left in line there
// is started.
func (ss *Sessions) RecoverExecutions(ctx context.Context, r Recovery) error {
	again, err := ss.recoverAll(ctx, &r)
	slices.SortStableFunc(again, func(a, b *renewal) int { return a.accepted.Compare(b.accepted) })
	startAll(ctx, again)
	if err != nil {
		return err
	}
	ss.AdoptExecutions(r)
	return nil
}

// AdoptExecutions looks after sessions whose lease this process takes from now on, and looks for none itself: what a process that is gone left
// in line there is started, and what it left open is closed.
func (ss *Sessions) AdoptExecutions(r Recovery) { ss.recovery.Store(&r) }

// recoverAll closes what is to be closed in all sessions and returns what is to be started, also with an error: it has to be.
func (ss *Sessions) recoverAll(ctx context.Context, r *Recovery) (again []*renewal, err error) {
	for page := ""; ; {
		metas, next, err := ss.cfg.Store.Sessions(ctx, Query{All: true, Limit: 200, Page: page})
		if err != nil {
			return again, ss.storeError(err)
		}
		for i := range metas {
			if metas[i].OwnerAlive {
				continue
			}
			some, err := ss.recoverSession(ctx, metas[i].ID, r)
			if err != nil {
				ss.cfg.Log.Warn("recover executions", "session", metas[i].ID, "err", err)
				ss.recoverLater(metas[i].ID, r, err)
			}
			again = append(again, some...)
		}
		if next == "" {
			return again, nil
		}
		page = next
	}
}

// renewal is an execution that had only been accepted and is started again. Until it is, its session keeps its lease for it.
type renewal struct {
	s        *Session
	turn     TurnID
	req      ExecutionRequest
	accepted time.Time
}

// startAll starts executions one after the other, so that they ask for their places in this order; each is handed over, whatever ctx says.
func startAll(ctx context.Context, again []*renewal) {
	for _, n := range again {
		_ = n.s.call(ctx, func(done func(error)) { n.start(); done(nil) })
	}
}

func (n *renewal) start() {
	n.s.exec.pending--
	if slices.ContainsFunc(n.s.orphaned(), func(t *OpenTurn) bool { return t.ID == n.turn }) { // else it was ended, or started, meanwhile
		n.s.enqueue(n.turn, &n.req)
	}
	n.s.settleDown()
}

// Pauses before a session is looked after again.
const (
	firstRecoverPause = 250 * time.Millisecond
	lastRecoverPause  = 30 * time.Second
)

// recoverLater looks after a session again in a moment, and again until that succeeds, unless err is one that will not pass, or means that it
// is another process's. Its goroutine ends with the runtime.
func (ss *Sessions) recoverLater(id SessionID, r *Recovery, err error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.stopping || ss.recovering[id] || !passes(err) {
		return
	}
	ss.recovering[id] = true
	ss.live.Add(1)
	go func() {
		defer ss.live.Done()
		for pause := firstRecoverPause; passes(err) && Pause(ss.ctx, pause) == nil; pause = min(2*pause, lastRecoverPause) {
			var again []*renewal
			again, err = ss.recoverSession(ss.ctx, id, r)
			startAll(ss.ctx, again)
			if err != nil {
				ss.cfg.Log.Warn("recover executions again", "session", id, "err", err)
			}
		}
		ss.mu.Lock()
		delete(ss.recovering, id)
		ss.mu.Unlock()
	}()
}

// passes reports whether what failed with err may succeed when it is tried again here.
func passes(err error) bool {
	if e, ok := errors.AsType[*protocol.Error](err); ok && e.Kind != protocol.PersistenceError {
		return false // gone, another process's, or the runtime ends
	}
	for _, lasting := range []error{ErrNotFound, ErrBusy, ErrCorrupt, ErrNewer, ErrClosed, context.Canceled} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	return err != nil
}

func (ss *Sessions) recoverSession(ctx context.Context, id SessionID, r *Recovery) (again []*renewal, err error) {
	st, err := ss.load(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(st.Queued) == 0 && len(st.Parallel) == 0 && (st.Serial == nil || st.Serial.Surface != protocol.SurfacePortable || st.Serial.waiting()) {
		return nil, nil
	}
	s, err := ss.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	// Waited for to the end: what is found is to be started.
	err = s.call(context.WithoutCancel(ctx), func(done func(error)) {
		s.withLease(func(err error) {
			if err != nil {
				done(err)
				return
			}
			s.orphans(r, func(lost []*ending, started []*renewal, unread error) {
				if t := s.next.Serial; t != nil && s.lane.free() && t.Surface == protocol.SurfacePortable && !t.waiting() {
					lost = append([]*ending{lostEnding(t, notStartedText)}, lost...)
				}
				again = started
				s.endAll(lost, func(unended error) { done(cmp.Or(unread, unended)) })
			})
		})
	})
	return again, err
}

// orphaned lists the executions that no process works on, in the order of their acceptance.
func (s *Session) orphaned() []*OpenTurn {
	var open []*OpenTurn
	for id, t := range s.next.Parallel {
		if s.exec.runs[id] == nil {
			open = append(open, t)
		}
	}
	for _, t := range s.next.Queued {
		if s.exec.setups[t.ID] == nil && (s.lane.starting == nil || s.lane.starting.req.exec != t.ID) {
			open = append(open, t)
		}
	}
	slices.SortFunc(open, func(a, b *OpenTurn) int { return cmp.Compare(a.Accepted, b.Accepted) })
	return open
}

// orphans tells then of the executions that no process works on, in the order of their acceptance: those that are to be closed, and those that
// are to be started. One that cannot be read now, which unread says, is neither. The lease is held.
func (s *Session) orphans(r *Recovery, then func(ends []*ending, again []*renewal, unread error)) {
	var turns []TurnID
	for _, t := range s.orphaned() {
		if !t.Started && t.Cancel == nil {
			turns = append(turns, t.ID)
		}
	}
	fetch(s, func(ctx context.Context, store Store) (found map[TurnID]acceptedAt, unread error) {
		found = map[TurnID]acceptedAt{}
		for _, turn := range turns {
			a, err := readAcceptance(ctx, store, turn)
			if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrCorrupt) {
				unread = fmt.Errorf("acceptance of %s: %w", turn, err)
				continue
			}
			found[turn] = a
		}
		return found, unread
	}, func(found map[TurnID]acceptedAt, unread error) {
		var ends []*ending
		var again []*renewal
		for _, t := range s.orphaned() {
			if t.Started || t.Cancel != nil {
				ends = append(ends, lostEnding(t, ""))
				continue
			}
			a, read := found[t.ID]
			if !read {
				continue // or it was accepted since
			}
			n, why := s.renew(t.ID, a, r)
			if n == nil {
				ends = append(ends, lostEnding(t, why))
				continue
			}
			s.exec.pending++
			again = append(again, n)
		}
		then(ends, again, unread)
	})
}

// adopt starts what another process that is gone left in line here, and closes what it left open, once those who waited for the lease had
// their turn: one of them may have come to cancel or to answer it. The lease was just taken.
func (s *Session) adopt() {
	r := s.all.recovery.Load()
	if r == nil || len(s.orphaned()) == 0 {
		return
	}
	s.exec.pending++
	s.exec.adoption.shut = true
	s.orphans(r, func(ends []*ending, again []*renewal, unread error) {
		for _, n := range again {
			n.start()
		}
		s.exec.adoption.open()
		s.endAll(ends, func(unended error) {
			if err := cmp.Or(unread, unended); err != nil {
				s.log().Warn("adopt executions", "session", s.ID, "err", err)
				s.all.recoverLater(s.ID, r, err)
			}
			s.exec.pending--
			s.settleDown()
		})
	})
}

// endAll closes turns that no goroutine of this process works on; done gets an error of one that could not be closed. The lease is held.
func (s *Session) endAll(ends []*ending, done func(unended error)) {
	var unended error
	left := len(ends)
	if left == 0 {
		done(nil)
		return
	}
	for _, e := range ends {
		s.endAside(e, func(err error) {
			if err != nil {
				unended = fmt.Errorf("end of %s: %w", e.turn, err)
			}
			if left--; left == 0 {
				done(unended)
				s.nextPrompt()
			}
		})
	}
}

// acceptedAt is the acceptance of an execution; a zero one was not found.
type acceptedAt struct {
	*protocol.TurnAccepted
	time time.Time
}

// readAcceptance reads with what an execution was accepted.
func readAcceptance(ctx context.Context, store Log, turn TurnID) (acceptedAt, error) {
	page, err := store.ReadTurn(ctx, turn, 0, 1, nil)
	if err != nil {
		return acceptedAt{}, err
	}
	if len(page) == 0 {
		return acceptedAt{}, fmt.Errorf("%w: acceptance of %s", ErrNotFound, turn)
	}
	b, err := protocol.Decode(&page[0])
	acc, ok := b.(*protocol.TurnAccepted)
	if err != nil || !ok {
		return acceptedAt{}, fmt.Errorf("%w: acceptance of %s", ErrCorrupt, turn)
	}
	return acceptedAt{acc, page[0].Time}, nil
}

// renew makes the request of an execution that had only been accepted again; nil, and why not, when it is to be closed.
func (s *Session) renew(turn TurnID, a acceptedAt, r *Recovery) (*renewal, string) {
	if a.TurnAccepted == nil || s.all.now().Sub(a.time) > r.Within {
		return nil, notStartedText
	}
	req, ok := r.Request(a.More.Provider, a.More.Input, a.More.Config, a.More.Capabilities)
	if !ok {
		return nil, "provider " + protocol.Prefix(a.More.Provider, 200) + " is not available after restart"
	}
	return &renewal{s: s, turn: turn, req: req, accepted: a.time}, ""
}

// lostEnding is the end of a turn whose process is gone; why is told of one that had not started.
func lostEnding(t *OpenTurn, why string) *ending {
	e := &ending{turn: t.ID, kind: endFailed, dead: true}
	switch {
	case t.Cancel != nil:
		e.kind, e.cleanup = endCancelled, cleanupText
	case !t.Started:
		e.failure = lostFailure(why)
	default:
		e.failure = lostFailure(notFinishedText)
	}
	return e
}

func lostFailure(text string) *Failure {
	return &Failure{Type: protocol.FailTurn, Status: "failed", Source: "runtime", Message: text, Stop: stopRuntime}
}

// WaitExecutions returns once no turn runs in this process, or when ctx ends. Waiting turns do not count.
func (ss *Sessions) WaitExecutions(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if !ss.working(ctx) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (ss *Sessions) working(ctx context.Context) bool {
	for _, s := range ss.opened() {
		works := false
		err := s.call(ctx, func(done func(error)) {
			for id := range s.exec.runs {
				if t := s.next.Parallel[id]; t != nil && (t.Started || t.Cancel != nil) && len(t.Actions) == 0 {
					works = true
				}
			}
			if t := s.next.Serial; s.lane.run != nil && t != nil && !t.waiting() {
				works = true
			}
			done(nil)
		})
		if err == nil && works { // with an error it may still be written
			return true
		}
	}
	return false
}
