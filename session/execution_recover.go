package session

import (
	"context"
	"encoding/json"
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
// works on. Turns of editors are left alone. Sessions it cannot read are passed over with a line in the log.
func (ss *Sessions) RecoverExecutions(ctx context.Context, r Recovery) error {
	page := ""
	for {
		metas, next, err := ss.cfg.Store.Sessions(ctx, Query{All: true, Limit: 200, Page: page})
		if err != nil {
			return ss.storeError(err)
		}
		for i := range metas {
			if metas[i].OwnerAlive {
				continue
			}
			if err := ss.recoverSession(ctx, metas[i].ID, r); err != nil {
				ss.cfg.Log.Warn("recover executions", "session", metas[i].ID, "err", err)
			}
		}
		if next == "" {
			return nil
		}
		page = next
	}
}

func (ss *Sessions) recoverSession(ctx context.Context, id SessionID, r Recovery) error {
	st, err := ss.load(ctx, id)
	if err != nil {
		return err
	}
	if len(st.Queued) == 0 && len(st.Parallel) == 0 && (st.Serial == nil || st.Serial.Surface != protocol.SurfacePortable || st.Serial.waiting()) {
		return nil
	}
	s, err := ss.Open(ctx, id)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.call(ctx, func(done func(error)) {
		s.exec.init()
		s.withLease(func(err error) {
			if err != nil {
				done(err)
				return
			}
			s.recoverOpen(r, done)
		})
	})
}

// recoverOpen works off the open executions of a session nobody else has. The lease is held.
func (s *Session) recoverOpen(r Recovery, done func(error)) {
	var ends []*ending
	if t := s.next.Serial; t != nil && s.lane.run == nil && t.Surface == protocol.SurfacePortable && !t.waiting() {
		ends = append(ends, lostEnding(t))
	}
	for id, t := range s.next.Parallel {
		if s.exec.runs[id] != nil {
			continue
		}
		if !t.Started && t.Cancel == nil && s.startAgain(t, r) {
			continue
		}
		ends = append(ends, lostEnding(t))
	}
	for _, t := range s.next.Queued {
		if s.exec.setups[t.ID] != nil {
			continue
		}
		if t.Cancel == nil && s.startAgain(t, r) {
			continue
		}
		ends = append(ends, lostEnding(t))
	}
	left := len(ends)
	if left == 0 {
		done(nil)
		return
	}
	for _, e := range ends {
		s.endAside(e, nil, func(err error) {
			if err != nil {
				s.log().Warn("close execution", "session", s.ID, "turn", e.turn, "err", err)
			}
			if left--; left == 0 {
				done(nil)
				s.nextPrompt()
			}
		})
	}
}

// startAgain starts an execution that had only been accepted; false when it is to be closed.
func (s *Session) startAgain(t *OpenTurn, r Recovery) bool {
	page, err := s.all.cfg.Store.ReadTurn(context.Background(), t.ID, 0, 1)
	if err != nil || len(page) == 0 || s.all.now().Sub(page[0].Time) > r.Within {
		return false
	}
	b, err := protocol.Decode(&page[0])
	acc, ok := b.(*protocol.TurnAccepted)
	if err != nil || !ok {
		return false
	}
	req, ok := r.Request(acc.More.Provider, acc.More.Input, acc.More.Config, acc.More.Capabilities)
	if !ok {
		return false
	}
	s.post(func() { s.enqueue(t.ID, &req) })
	return true
}

func lostEnding(t *OpenTurn) *ending {
	switch {
	case t.Cancel != nil:
		return &ending{turn: t.ID, kind: endCancelled, dead: true, cleanup: cleanupText}
	case !t.Started:
		return &ending{turn: t.ID, kind: endFailed, dead: true, failure: lostFailure(notStartedText)}
	}
	return &ending{turn: t.ID, kind: endFailed, dead: true, failure: lostFailure(notFinishedText)}
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
	ss.mu.Lock()
	all := make([]*Session, 0, len(ss.open))
	for _, s := range ss.open {
		all = append(all, s)
	}
	ss.mu.Unlock()
	for _, s := range all {
		works := false
		_ = s.call(ctx, func(done func(error)) {
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
		if works {
			return true
		}
	}
	return false
}
