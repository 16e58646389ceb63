package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Statuses of a goal (docs/protocol/rind-v2.md section 4.9).
const (
	GoalActive   = "active"
	GoalPaused   = "paused"
	GoalBlocked  = "blocked"
	GoalComplete = "complete"
	GoalSpent    = "budget_exhausted"
)

// Turns of a goal that failed: the next one waits, and the third in a row blocks the goal.
const (
	goalFailures = 3
	goalDelay    = 5 * time.Second
	goalDelayMax = 60 * time.Second
)

// SetGoal gives the session a goal. A legacy client starts its turns itself, for others this process does. done runs once it is on
// disk. TurnActive while a turn runs.
func (s *Session) SetGoal(objective string, maxTurns int, legacy bool, done func(*protocol.Goal, error)) {
	s.goalCall(done, func() {
		if s.lane.busy() {
			done(nil, protocol.Errorf(protocol.TurnActive, "Cannot replace a goal while a turn is active."))
			return
		}
		s.changeGoal(legacy, func(*protocol.Goal) (*protocol.Goal, error) {
			return &protocol.Goal{Objective: objective, Status: GoalActive, MaxTurns: maxTurns}, nil
		}, done)
	})
}

// SetGoalStatus activates the goal, counting its turns anew, or pauses it, which cancels the running turn. InvalidRequest without a goal.
func (s *Session) SetGoalStatus(status string, legacy bool, done func(*protocol.Goal, error)) {
	s.goalCall(done, func() {
		s.changeGoal(legacy, func(g *protocol.Goal) (*protocol.Goal, error) {
			switch {
			case g == nil, status == GoalPaused && g.Status != GoalActive && g.Status != GoalPaused:
				return nil, protocol.Errorf(protocol.InvalidRequest, "No active goal exists.")
			case status == GoalActive:
				g.TurnsUsed = 0
			}
			g.Status = status
			return g, nil
		}, func(g *protocol.Goal, err error) {
			if err == nil && status == GoalPaused {
				s.cancelForGoal(protocol.ReasonGoalPaused)
			}
			done(g, err)
		})
	})
}

// ClearGoal takes the goal away and cancels the running turn. Clearing none is no error.
func (s *Session) ClearGoal(done func(*protocol.Goal, error)) {
	s.goalCall(done, func() {
		if s.next.Goal == nil {
			done(nil, nil)
			return
		}
		s.changeGoal(false, func(*protocol.Goal) (*protocol.Goal, error) { return nil, nil }, func(g *protocol.Goal, err error) {
			if err == nil {
				s.cancelForGoal(protocol.ReasonGoalCleared)
			}
			done(g, err)
		})
	})
}

func (s *Session) goalCall(done func(*protocol.Goal, error), f func()) {
	if !s.post(f) {
		done(nil, errGone(s.ID))
	}
}

// changeGoal stores what change makes of a copy of the goal.
func (s *Session) changeGoal(legacy bool, change func(*protocol.Goal) (*protocol.Goal, error), done func(*protocol.Goal, error)) {
	s.withLease(func(err error) {
		var g *protocol.Goal
		if err == nil {
			g, err = change(copyGoal(s.next.Goal))
		}
		if err != nil {
			done(nil, err)
			s.settleDown()
			return
		}
		if g != nil && g.Status == GoalActive {
			s.driving, s.goalAfter = true, time.Time{}
		}
		s.append(append(s.opening(), lines("", goalUpdated(g, legacy))...), func(_ Seq, err error) {
			done(copyGoal(g), err)
			s.nextPrompt()
		})
	})
}

func copyGoal(g *protocol.Goal) *protocol.Goal {
	if g == nil {
		return nil
	}
	c := *g
	return &c
}

func goalUpdated(g *protocol.Goal, legacy bool) *protocol.GoalUpdated {
	b := &protocol.GoalUpdated{Goal: copyGoal(g)}
	b.More.Legacy = legacy && g != nil
	return b
}

// cancelForGoal cancels the running turn because its goal was paused or cleared.
func (s *Session) cancelForGoal(reason string) {
	if !s.lane.free() {
		s.cancel(CancelRequest{Reason: reason, Surface: "rind"}, func(error) {})
	}
}

// activeGoal is the goal while it is active.
func (st *State) activeGoal() *protocol.Goal {
	if st.Goal != nil && st.Goal.Status == GoalActive {
		return st.Goal
	}
	return nil
}

// goalDue reports whether this process is to start goal turns. It does so for a goal that was set, activated or worked on here: opening a
// session starts nothing.
func (s *Session) goalDue() bool {
	return s.driving && !s.stopping && !s.gone.Load() && s.next.activeGoal() != nil && !s.next.GoalLegacy && s.next.Serial == nil
}

// drive starts the next goal turn when one is due; false when nothing was started and nothing will be.
func (s *Session) drive() bool {
	if !s.goalDue() {
		return false
	}
	if due := s.goalAfter; due.After(s.all.cfg.Now()) {
		s.after(min(due.Sub(s.all.cfg.Now()), goalDelayMax), func() {
			if s.goalAfter.Equal(due) { // waited for, whatever the clock shows now
				s.goalAfter = time.Time{}
			}
			s.nextPrompt()
		})
		return true
	}
	p := &Prompt{s: s, req: PromptRequest{goal: true}, done: []func(Outcome, error){func(o Outcome, err error) {
		if err != nil { // it could not even start
			s.driving = false
			s.log().Warn("goal turn", "session", s.ID, "err", err)
		}
	}}}
	s.begin(p)
	return true
}

// goalInput is what the model is told in the person's place when the runtime, or a client without words, goes on with a goal.
func goalInput(g *protocol.Goal) string {
	return fmt.Sprintf("[Work on towards the goal: look at what was done so far and take the next step. Step %d of at most %d.]", min(g.TurnsUsed+1, g.MaxTurns), g.MaxTurns)
}

// goalText tells the model about the goal, beside the conversation: it is there also after a compaction.
func goalText(g *protocol.Goal) string {
	return "The person gave this conversation a goal:\n" + g.Objective + "\nWork towards it on your own. When it is reached, call update_goal with status " +
		"complete; when you cannot get on without the person, with status blocked, and say why."
}

// goalEnd is what the end of turn t makes of the goal, beside it in the same transaction.
func (s *Session) goalEnd(t *OpenTurn, e *ending) []line {
	g := copyGoal(s.next.activeGoal())
	if g == nil {
		return nil
	}
	ours := t.Origin == protocol.OriginGoal
	switch {
	case e.kind == endCancelled && (ours || t.Cancel != nil):
		g.Status = GoalPaused
	case ours && e.kind != endCompleted && s.next.GoalFailures+1 >= goalFailures:
		g.Status = GoalBlocked
	case ours && g.TurnsUsed >= g.MaxTurns:
		g.Status = GoalSpent
	default:
		if ours && e.kind != endCompleted {
			s.goalAfter = s.all.cfg.Now().Add(min(goalDelay<<s.next.GoalFailures, goalDelayMax))
		}
		return nil
	}
	return lines("", goalUpdated(g, s.next.GoalLegacy))
}

// goalStart counts a goal turn as it begins, so that one cut off by a crash counts as well.
func (s *Session) goalStart() []line {
	g := copyGoal(s.next.activeGoal())
	if g == nil {
		return nil
	}
	g.TurnsUsed++
	return lines("", goalUpdated(g, s.next.GoalLegacy))
}

// GoalStep is asked when a turn would end: whether it goes on towards the goal. A turn that a client started for a goal does, each answer
// without calls being a step that counts (docs/protocol/rind-v2.md section 7.6).
func (t *Turn) GoalStep() (again bool, err error) {
	err = t.do(func(done func(error)) {
		s := t.s
		open, g := s.next.turn(t.ID), copyGoal(s.next.activeGoal())
		drives := open != nil && open.Origin != protocol.OriginTask && open.Operation == protocol.OpPrompt && (s.next.GoalLegacy || t.prompt != nil && t.prompt.req.Goal)
		if open == nil || open.Cancel != nil || g == nil || !drives || len(open.Inputs) > 0 {
			done(nil)
			return
		}
		g.TurnsUsed++
		var ls []line
		if again = g.TurnsUsed < g.MaxTurns; again {
			ls = lines(t.ID, s.goalMessage(goalInput(g)))
		} else {
			g.Status = GoalSpent
		}
		s.append(append(lines("", goalUpdated(g, s.next.GoalLegacy)), ls...), func(_ Seq, err error) { done(err) })
	})
	return again && err == nil, err
}

// goalMessage is what the runtime says in the person's place.
func (s *Session) goalMessage(text string) *protocol.UserMessage {
	m := &protocol.UserMessage{}
	m.More.ID, m.More.Text, m.More.Origin = s.all.cfg.IDs.Hex32(), text, protocol.OriginGoal
	return m
}

// updateGoal is the tool update_goal, offered while a goal is active. It works on the session, not on the machine, and so belongs to the loop.
type updateGoal struct{}

const updateGoalName = "update_goal"

// Spec implements Tool.
func (updateGoal) Spec() ToolSpec {
	return ToolSpec{
		Name: updateGoalName, Kind: "think",
		Description: "Say that the goal of this conversation is reached (complete), or that you cannot get on without the person (blocked).",
		Schema: json.RawMessage(`{"type":"object","properties":{"status":{"type":"string","enum":["complete","blocked"]}},` +
			`"required":["status"],"additionalProperties":false}`),
	}
}

// Run implements Tool.
func (updateGoal) Run(_ context.Context, call ToolCall, out Progress) (ToolResult, error) {
	var args struct{ Status string }
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return ToolResult{}, err
	}
	p, ok := out.(*toolProgress)
	if !ok {
		return ToolResult{Status: protocol.ToolUnavailable, ErrorType: protocol.ErrToolNotFound, Error: "There is no goal here."}, nil
	}
	var now *protocol.Goal
	err := p.t.do(func(done func(error)) {
		g := copyGoal(p.t.s.next.activeGoal())
		if g == nil {
			done(nil)
			return
		}
		g.Status, now = args.Status, g
		p.t.s.append(lines("", goalUpdated(g, p.t.s.next.GoalLegacy)), func(_ Seq, err error) { done(err) })
	})
	if err != nil {
		return ToolResult{}, err
	}
	if now == nil {
		return ToolResult{Status: protocol.ToolRejected, ErrorType: protocol.ErrNotFound, Error: "There is no active goal."}, nil
	}
	return ToolResult{Data: struct {
		Objective string `json:"objective"`
		Status    string `json:"status"`
	}{now.Objective, now.Status}}, nil
}
