package session

import (
	"github.com/rind-dev/rind/protocol"
)

func (s *Session) scopeOpen() bool {
	open := func(p *Prompt) bool { return p != nil && p.req.Scope && !p.ended }
	for _, p := range s.queue {
		if open(p) {
			return true
		}
	}
	return s.scoped != nil || open(s.starting) || s.run != nil && open(s.run.prompt)
}

// scopeBusy reports whether something of a request scope is still to come.
func (s *Session) scopeBusy(scope string) bool {
	for _, t := range s.next.Tasks {
		rec := &t.Task
		if rec.RequestID != scope || rec.Notify != protocol.NotifyOnExit {
			continue
		}
		if rec.Live() && s.jobs[rec.TaskID] != nil || !rec.Live() && !t.Told && rec.Status != protocol.TaskCancelled && s.noticing {
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
	s.scoped, s.scopeLast = p, o
	return true
}

// scopeWent goes on with the open scope after a continuation turn ended.
func (s *Session) scopeWent(o Outcome) {
	if s.scoped == nil {
		return
	}
	if o.Outcome != OutcomeCompleted {
		s.endScope(o)
		return
	}
	s.scopeLast.Answer, s.scopeLast.Seq = o.Answer, o.Seq
	s.checkScope()
}

// checkScope answers the open scope once nothing of it is to come.
func (s *Session) checkScope() {
	if s.scoped != nil && s.run == nil && s.starting == nil && !s.scopeBusy(s.scoped.scope) {
		s.endScope(s.scopeLast)
	}
}

func (s *Session) endScope(o Outcome) {
	p := s.scoped
	s.scoped = nil
	if p != nil {
		o.Turn = s.scopeLast.Turn
		p.finish(o, nil)
	}
}
