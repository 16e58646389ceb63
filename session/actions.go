package session

import (
	"context"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// answer is what a person said to an action.
type answer struct {
	text    string // of a question
	allowed bool   // of an approval
	option  string // of an approval: id of what was chosen, "" for none
}

// DefaultOptions are the answers to an approval (docs/protocol/rind-v2.md section 7.7).
func DefaultOptions() []protocol.Option {
	return []protocol.Option{
		{ID: "allow_once", Label: "Allow once", Kind: "allow_once"},
		{ID: "allow_always", Label: "Allow always", Kind: "allow_always"},
		{ID: "reject_once", Label: "Reject once", Kind: "reject_once"},
		{ID: "reject_always", Label: "Reject always", Kind: "reject_always"},
	}
}

// RequestApproval asks for consent to a call and waits for it; an approval that is open from before a restart is waited for under
// its old id. An error is the cause of the turn's end.
func (t *Turn) RequestApproval(a *protocol.ApprovalRequested) (bool, error) {
	got, err := t.await(a.ToolCallID, func(open *OpenTurn) (string, protocol.Body) {
		a.ActionID = t.s.all.cfg.IDs.Hex32()
		a.More.QuestionEventID = t.s.all.cfg.IDs.Hex32()
		if len(a.Options) == 0 {
			a.Options = DefaultOptions()
		}
		return a.ActionID, a
	})
	return got.allowed, err
}

// AskUser puts a question to the user and waits for the answer, like RequestApproval.
func (t *Turn) AskUser(callID, question string, options []protocol.Choice) (string, error) {
	got, err := t.await(callID, func(*OpenTurn) (string, protocol.Body) {
		q := &protocol.UserQuestionRequested{ToolCallID: callID, Question: question, Options: options}
		q.More.ActionID = t.s.all.cfg.IDs.Hex32()
		return q.More.ActionID, q
	})
	return got.text, err
}

// await appends an action unless one is open or answered for the call, and waits for its answer.
func (t *Turn) await(callID string, request func(*OpenTurn) (string, protocol.Body)) (answer, error) {
	ch := make(chan answer, 1)
	err := t.do(func(done func(error)) {
		open := t.s.next.turn(t.ID)
		if open == nil || open.Cancel != nil {
			done(errCancelled)
			return
		}
		for _, a := range open.Actions {
			if a.CallID == callID {
				t.answers[a.ID] = ch
				done(nil)
				return
			}
		}
		if c := open.call(callID); c != nil && c.Answer != nil { // answered before the process ended
			ch <- answer{text: *c.Answer}
			done(nil)
			return
		}
		id, body := request(open)
		t.answers[id] = ch
		t.gather.flush()
		t.s.append(lines(t.ID, body), func(_ Seq, err error) { done(err) })
	})
	if err != nil {
		return answer{}, err
	}
	defer t.standAside()()
	select {
	case a := <-ch:
		return a, nil
	case <-t.ctx.Done():
		return answer{}, context.Cause(t.ctx)
	}
}

// findAction returns the open turn and action that match.
func (s *Session) findAction(match func(*Action) bool) (*OpenTurn, *Action) {
	turns := []*OpenTurn{}
	if s.next.Serial != nil {
		turns = append(turns, s.next.Serial)
	}
	for _, t := range s.next.Parallel {
		turns = append(turns, t)
	}
	for _, t := range turns {
		for _, a := range t.Actions {
			if match(a) {
				return t, a
			}
		}
	}
	return nil, nil
}

// ResolveApproval answers an approval. done runs once the answer is on disk. ActionNotFound, ActionAlreadyResolved; an unknown
// option is InvalidRequest and leaves the action open.
func (s *Session) ResolveApproval(action, option string, done func(error)) {
	if !s.post(func() { s.resolveApproval(action, option, done) }) {
		done(protocol.Errorf(protocol.ActionNotFound, "No pending action: %s", action))
	}
}

func (s *Session) resolveApproval(action, option string, done func(error)) {
	open, a := s.findAction(func(a *Action) bool { return a.ID == action && !a.Question })
	if a == nil || s.answered[action] {
		if s.answered[action] || s.resolvedBefore(action) {
			done(protocol.Errorf(protocol.ActionAlreadyResolved, "Action already resolved: %s", action))
			return
		}
		done(protocol.Errorf(protocol.ActionNotFound, "No pending action: %s", action))
		return
	}
	var chosen *protocol.Option
	for i := range a.Approval.Options {
		if a.Approval.Options[i].ID == option {
			chosen = &a.Approval.Options[i]
		}
	}
	if chosen == nil && option == "" && rejection(a.Approval.Options) == "" {
		chosen = &protocol.Option{} // a hosted agent's request that cannot be refused is closed
	}
	if chosen == nil {
		done(protocol.Errorf(protocol.InvalidRequest, "Unknown option_id: %s", option))
		return
	}
	allowed := strings.HasPrefix(chosen.Kind, "allow")
	b := &protocol.ApprovalResolved{ActionID: action, ToolCallID: a.CallID, OptionID: option, Outcome: protocol.OutcomeRejected, By: protocol.ByClient}
	switch {
	case allowed:
		b.Outcome = protocol.OutcomeAllowed
	case option == "":
		b.Outcome = protocol.OutcomeCancelled
	}
	s.answered[action] = true
	settled := done
	done = func(err error) {
		delete(s.answered, action) // it is in the log now, open still, or somebody else's
		settled(err)
	}
	resolve := func() {
		if open, a = s.findAction(func(a *Action) bool { return a.ID == action && !a.Question }); a == nil {
			done(protocol.Errorf(protocol.ActionAlreadyResolved, "Action already resolved: %s", action))
			return
		}
		s.resolve(open, a, b, answer{allowed: allowed, option: option}, letter{Op: "approval", Action: action, Option: option}, done)
	}
	if !strings.HasSuffix(chosen.Kind, "_always") || a.Approval.More.Rule == nil || s.all.cfg.Policy == nil {
		resolve()
		return
	}
	// The rule is down before the answer is, so that no crash leaves an answer without it; the store is not waited for here.
	rule, workspace := a.Approval.More.Rule, s.next.Workspace
	go func() {
		if err := s.all.cfg.Policy.Remember(context.Background(), workspace, rule, allowed); err != nil {
			s.log().Warn("remember consent", "session", s.ID, "err", err)
		}
		if !s.post(resolve) {
			settled(protocol.Errorf(protocol.ActionNotFound, "No pending action: %s", action))
		}
	}()
}

// resolvedBefore looks for an approval's answer in the log.
func (s *Session) resolvedBefore(action string) bool {
	if s.draft || len(action) != 32 {
		return false
	}
	for before := Seq(0); ; {
		page, err := s.all.cfg.Store.ReadBack(context.Background(), s.ID, before, 256, protocol.ViewDurable)
		if err != nil {
			return false
		}
		for i := range page {
			if page[i].Kind != protocol.KindApprovalResolved {
				continue
			}
			if b, err := protocol.Decode(&page[i]); err == nil && b.(*protocol.ApprovalResolved).ActionID == action {
				return true
			}
		}
		if len(page) < 256 {
			return false
		}
		before = page[len(page)-1].Seq
	}
}

// AnswerQuestion answers the question of a tool call; for older clients also an approval, by the label of an option. A label
// that is none rejects once. QuestionNotFound when nothing is asked.
func (s *Session) AnswerQuestion(callID, text string, done func(error)) {
	none := protocol.Errorf(protocol.QuestionNotFound, "No pending user question.")
	if !s.post(func() {
		open, a := s.findAction(func(a *Action) bool { return a.CallID == callID })
		switch {
		case a == nil:
			done(none)
		case !a.Question:
			option := rejection(a.Approval.Options)
			for _, o := range a.Approval.Options {
				if strings.EqualFold(strings.TrimSpace(text), o.Label) {
					option = o.ID
				}
			}
			s.resolveApproval(a.ID, option, done)
		default:
			b := &protocol.UserQuestionAnswered{ToolCallID: callID, Answer: strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))}
			b.More.ActionID, b.More.By = a.ID, protocol.ByClient
			s.resolve(open, a, b, answer{text: b.Answer}, letter{Op: "question", Action: callID, Answer: text}, done)
		}
	}) {
		done(none)
	}
}

// resolve stores an answer and hands it to whoever waits: the running turn, or a new attempt at one whose process is gone. When
// another process runs the turn, the answer goes there as a letter.
func (s *Session) resolve(open *OpenTurn, a *Action, b protocol.Body, got answer, l letter, done func(error)) {
	turn, id := open.ID, a.ID
	if run := s.lane.run; run != nil && run.ID == turn {
		s.append(lines(turn, b), func(_ Seq, err error) {
			if ch := run.answers[id]; err == nil && ch != nil {
				delete(run.answers, id)
				ch <- got
			}
			done(err)
		})
		return
	}
	if s.resolveBeside(turn, id, b, got, done) {
		return
	}
	s.withLease(func(err error) {
		if err != nil {
			if protocol.KindOf(err) == protocol.SessionBusy {
				s.sendLetter(l, done)
				return
			}
			done(err)
			return
		}
		now := s.next.turn(turn)
		if now != nil && now.Parallel { // its provider is gone, and cannot wait
			done(protocol.Errorf(protocol.ActionNotFound, "No pending action: %s", id))
			return
		}
		if now == nil || now.action(id) == nil {
			if a.Question {
				done(protocol.Errorf(protocol.QuestionNotFound, "No pending user question."))
			} else {
				done(protocol.Errorf(protocol.ActionAlreadyResolved, "Action already resolved: %s", id))
			}
			return
		}
		waits := now.waiting()
		s.append(lines(turn, b), func(_ Seq, err error) {
			done(err)
			if now := s.next.turn(turn); err == nil && waits && now != nil {
				s.revive(now)
			}
		})
	})
}
