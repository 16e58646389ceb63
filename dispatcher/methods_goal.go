package dispatcher

import (
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// The goal methods (docs/protocol/rind-v2.md section 4.9).

func goalGet(k *call, _ *rindv2.Target) {
	k.inspect(func(v *session.View) { k.OK(rindv2.GoalResult{Goal: v.Goal}) })
}

func goalSet(k *call, p *rindv2.GoalSetParams) {
	k.with(func(s *session.Session) { s.SetGoal(p.Objective, p.MaxTurns, k.c.legacy(), k.goal) })
}

func goalStatus(k *call, p *rindv2.GoalStatusParams) {
	k.with(func(s *session.Session) { s.SetGoalStatus(p.Status, k.c.legacy(), k.goal) })
}

func goalClear(k *call, _ *rindv2.Target) {
	k.with(func(s *session.Session) { s.ClearGoal(k.goal) })
}

// goal answers with the goal as it is now.
func (k *call) goal(g *protocol.Goal, err error) { k.Settle(rindv2.GoalResult{Goal: g}, err) }
