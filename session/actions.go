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

// findAction returns the open turn and action that match. Those of a turn that is being cancelled are dead, however long it takes to end.
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
			if t.Cancel == nil && match(a) {
				return t, a
			}
		}
	}
	return nil, nil
}

// answerOnce keeps further answers to an action away until done was called with what became of this one: it is in the log then, open still, or
// somebody else's.
func (s *Session) answerOnce(action string, done func(error)) func(error) {
	s.answering[action] = true
	return func(err error) {
		delete(s.answering, action)
		done(err)
	}
}

// unanswerable answers whoever answers an action that waits for no answer: ActionAlreadyResolved when it has one, in turn, or in any turn where
// that is not known (""); else missing.
func (s *Session) unanswerable(turn TurnID, action string, missing error, done func(error)) {
	switch {
	case s.answering[action]:
		done(errAnswered(action))
	case s.draft.Load() || len(action) != 32:
		done(missing)
	default:
		s.becameOf(turn, action, missing, done)
	}
}

func errAnswered(action string) error {
	return protocol.Errorf(protocol.ActionAlreadyResolved, "Action already resolved: %s", action)
}

// becameOf tells done what the log says of an action that is no longer open: ActionAlreadyResolved when it was answered, else missing.
func (s *Session) becameOf(turn TurnID, action string, missing error, done func(error)) {
	fetch(s, func(ctx context.Context, store Store) (bool, error) {
		return answeredBefore(ctx, store, s.ID, turn, action)
	}, func(answered bool, err error) {
		switch {
		case err != nil:
		case answered:
			err = errAnswered(action)
		default:
			err = missing
		}
		done(err)
	})
}

// answeredBefore looks for the answer to an action in the log of a turn, or of the whole session.
func answeredBefore(ctx context.Context, store Log, id SessionID, turn TurnID, action string) (bool, error) {
	entries := readBack(ctx, store, id, protocol.ViewDurable)
	if turn != "" {
		entries = readTurn(ctx, store, turn)
	}
	for e, err := range entries {
		if err != nil {
			return false, err
		}
		if e.Kind != protocol.KindApprovalResolved && e.Kind != protocol.KindUserQuestionAnswered {
			continue
		}
		switch b, _ := protocol.Decode(e); b := b.(type) {
		case *protocol.ApprovalResolved:
			if b.ActionID == action {
				return true, nil
			}
		case *protocol.UserQuestionAnswered:
			if b.More.ActionID == action {
				return true, nil
			}
		}
	}
	return false, nil
}

// ResolveApproval answers an approval. done runs once the answer is on disk. ActionNotFound, ActionAlreadyResolved; an unknown
// option is InvalidRequest and leaves the action open.
func (s *Session) ResolveApproval(action, option string, done func(error)) {
	if !s.post(func() { s.resolveApproval(action, option, done) }) {
		done(errNoAction(action))
	}
}

func errNoAction(action string) error {
	return protocol.Errorf(protocol.ActionNotFound, "No pending action: %s", action)
}

func (s *Session) resolveApproval(action, option string, done func(error)) {
	find := func() (*OpenTurn, *Action) {
		return s.findAction(func(a *Action) bool { return a.ID == action && !a.Question })
	}
	_, a := find()
	if a == nil || s.answering[action] {
		s.unanswerable("", action, errNoAction(action), done)
		return
	}
	chosen := chosenOption(a.Approval.Options, option)
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
	done = s.answerOnce(action, done)
	resolve := func() {
		open, a := find()
		if a == nil {
			s.becameOf("", action, errNoAction(action), done)
			return
		}
		s.resolve(open, a, b, answer{allowed: allowed, option: option}, letter{Op: "approval", Action: action, Option: option}, done)
	}
	rule := a.Approval.More.Rule
	if !strings.HasSuffix(chosen.Kind, "_always") || rule == nil || s.all.cfg.Policy == nil {
		resolve()
		return
	}
	// The rule is down before the answer is, so that no crash leaves an answer without it.
	workspace, policy := s.next.Workspace, s.all.cfg.Policy
	fetch(s, func(ctx context.Context, _ Store) (struct{}, error) {
		return struct{}{}, policy.Remember(context.WithoutCancel(ctx), workspace, rule, allowed)
	}, func(_ struct{}, err error) {
		if err != nil {
			s.log().Warn("remember consent", "session", s.ID, "err", err)
		}
		resolve()
	})
}

// chosenOption is the option an answer names; nil when there is none of that name. "" closes a request of a hosted agent that cannot be refused.
func chosenOption(options []protocol.Option, id string) *protocol.Option {
	for i := range options {
		if options[i].ID == id {
			return &options[i]
		}
	}
	if id == "" && protocol.Rejection(options) == "" {
		return &protocol.Option{}
	}
	return nil
}

// AnswerQuestion answers the question of a tool call; for older clients also an approval, by the label of an option. A label
// that is none rejects once. QuestionNotFound when nothing is asked.
func (s *Session) AnswerQuestion(callID, text string, done func(error)) {
	if !s.post(func() { s.answerQuestion(callID, text, done) }) {
		done(errNoQuestion())
	}
}

// putOff is what the model is told of a question that the person answers with the next prompt.
const putOff = "The question was shown to the person. Their answer, if they give one, is their next message."

// PutOffQuestion closes a question whose person was shown it and can answer by nothing but the next prompt: the turn ends behind its calls. For a
// hosted agent it is declined. Otherwise as AnswerQuestion.
func (s *Session) PutOffQuestion(callID string, done func(error)) {
	if !s.post(func() {
		open, a := s.findAction(func(a *Action) bool { return a.CallID == callID && a.Question })
		if a == nil || s.answering[a.ID] {
			done(errNoQuestion())
			return
		}
		b := &protocol.UserQuestionAnswered{ToolCallID: callID}
		b.More.ActionID, b.More.By = a.ID, protocol.ByClient
		if !open.Hosted && !open.Parallel {
			b.Answer, b.More.PutOff = putOff, true
		}
		s.resolve(open, a, b, answer{text: b.Answer}, letter{Op: "question", Action: callID, Answer: b.Answer}, s.answerOnce(a.ID, done))
	}) {
		done(errNoQuestion())
	}
}

func errNoQuestion() error {
	return protocol.Errorf(protocol.QuestionNotFound, "No pending user question.")
}

func (s *Session) answerQuestion(callID, text string, done func(error)) {
	open, a := s.findAction(func(a *Action) bool { return a.CallID == callID })
	switch {
	case a == nil || a.Question && s.answering[a.ID]:
		done(errNoQuestion())
	case a.Question:
		b := &protocol.UserQuestionAnswered{ToolCallID: callID, Answer: strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))}
		b.More.ActionID, b.More.By = a.ID, protocol.ByClient
		s.resolve(open, a, b, answer{text: b.Answer}, letter{Op: "question", Action: callID, Answer: text}, s.answerOnce(a.ID, done))
	default:
		option := protocol.Rejection(a.Approval.Options)
		for _, o := range a.Approval.Options {
			if strings.EqualFold(strings.TrimSpace(text), o.Label) {
				option = o.ID
			}
		}
		s.resolveApproval(a.ID, option, done)
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
			done(errNoAction(id))
			return
		}
		if now == nil || now.Cancel != nil || now.action(id) == nil {
			if a.Question {
				done(errNoQuestion())
			} else {
				s.becameOf(turn, id, errNoAction(id), done)
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
