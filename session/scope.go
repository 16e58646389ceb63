package session

import (
	"context"

	"github.com/rind-dev/rind/protocol"
)

// requestScope is a request scope (docs/protocol/rind-v2.md section 4.3) whose turn is over while something of it is to come: background tasks
// whose ends the model is told of in further turns.
type requestScope struct {
	prompt *Prompt // not answered yet; nil: none is open
	last   Outcome // what it will be answered with
}

// enterScope names the request scope of a prompt that asks for one: recorded is the name its turn was begun under, by which its tasks know it; ""
// for none.
func (p *Prompt) enterScope(recorded string) {
	switch {
	case !p.req.Scope:
	case recorded != "":
		p.scope = recorded
	case p.scope == "":
		p.scope = p.s.all.cfg.IDs.Hex32()
	}
}

// readScope reads how the request scope ended whose first turn ended with o: as scopeWent saw it, with the continuation turns of its tasks.
func readScope(ctx context.Context, store Log, id SessionID, o Outcome) (Outcome, error) {
	if o.Scope == "" {
		return o, nil
	}
	of, answer := TurnID(""), ""
	for e, err := range readLog(ctx, store, id, o.Seq, protocol.ViewAll) {
		if err != nil {
			return Outcome{}, err
		}
		if o.Outcome != OutcomeCompleted {
			break
		}
		if e.Kind != protocol.KindTurnAccepted && (of == "" || e.Turn != of) {
			continue
		}
		switch b, _ := protocol.Decode(e); b := b.(type) { // one that is not readable says nothing
		case *protocol.TurnAccepted:
			if b.More.Scope == o.Scope {
				of, answer = e.Turn, ""
			}
		case *protocol.AssistantMessageCompleted:
			answer = b.Content
		case *protocol.TurnCompleted:
			o.Answer, o.Seq, of = answer, e.Seq, ""
		case *protocol.TurnFailed, *protocol.TurnCancelled:
			went := outcome(o.Turn, b)
			went.Scope, went.Answer, went.Seq, of = o.Scope, answer, e.Seq, ""
			o = went
		}
	}
	return o, nil
}

// scopeOpen reports whether the prompt of a request scope has no answer yet.
func (s *Session) scopeOpen() bool {
	open := func(p *Prompt) bool { return p != nil && p.req.Scope && !p.ended }
	for _, p := range s.lane.line {
		if open(p) {
			return true
		}
	}
	return s.scope.prompt != nil || open(s.lane.starting) || s.lane.run != nil && open(s.lane.run.prompt)
}

// scopeBusy reports whether something of a request scope is still to come.
func (s *Session) scopeBusy(scope string) bool {
	for _, t := range s.next.Tasks {
		rec := &t.Task
		if rec.RequestID != scope || rec.Notify != protocol.NotifyOnExit {
			continue
		}
		if rec.Live() && s.jobs.live[rec.TaskID] != nil || !rec.Live() && !t.Told && rec.Status != protocol.TaskCancelled && s.jobs.notice {
			return true
		}
	}
	return false
}

// hold keeps the answer of a scoped prompt back while something of its scope is to come.
func (s *Session) hold(p *Prompt, o Outcome) bool {
	if p.scope == "" || !p.req.Scope || o.Outcome != OutcomeCompleted || s.stopping || !s.scopeBusy(p.scope) {
		return false
	}
	s.scope.prompt, s.scope.last = p, o
	return true
}

// scopeWent goes on with the open scope after a continuation turn ended.
func (s *Session) scopeWent(o Outcome) {
	if s.scope.prompt == nil {
		return
	}
	if o.Outcome != OutcomeCompleted {
		s.endScope(o)
		return
	}
	s.scope.last.Answer, s.scope.last.Seq = o.Answer, o.Seq
	s.checkScope()
}

// checkScope answers the open scope once nothing of it is to come.
func (s *Session) checkScope() {
	if s.scope.prompt != nil && s.lane.free() && !s.scopeBusy(s.scope.prompt.scope) {
		s.endScope(s.scope.last)
	}
}

func (s *Session) endScope(o Outcome) {
	p := s.scope.prompt
	s.scope.prompt = nil
	if p != nil {
		o.Turn = s.scope.last.Turn
		p.finish(o, nil)
	}
}
