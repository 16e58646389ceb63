package main

import (
	"encoding/json"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// notices holds what a log says of the ends of tasks, and of goals, against what the model was told and what was counted.
type notices struct {
	ended     map[string]session.Seq // tasks whose end the model is to be told of
	told      map[string]int
	newest    session.Seq // message of a person: it takes along what is still to be told
	goal      *protocol.Goal
	started   int // turns of the goal
	goalTurns int // of all goals
}

// take reads the next entry of the log.
func (n *notices) take(t *testing.T, e *session.Entry) {
	switch b, _ := protocol.Decode(e); b := b.(type) {
	case *protocol.TaskUpdated:
		var rec protocol.Task
		if err := json.Unmarshal(b.Task, &rec); err != nil {
			t.Error(err)
		}
		if _, before := n.ended[rec.TaskID]; !before && !rec.Live() && rec.Notify == protocol.NotifyOnExit && rec.Status != protocol.TaskCancelled {
			n.ended[rec.TaskID] = e.Seq
		}
	case *protocol.UserMessage:
		for _, id := range b.More.Tasks {
			n.told[id]++
		}
		if b.More.Origin == protocol.OriginUser {
			n.newest = e.Seq
		}
	case *protocol.GoalUpdated:
		if b.Goal != nil && b.Goal.TurnsUsed == 0 {
			n.started = 0
		}
		n.goal = b.Goal
	case *protocol.TurnStarted:
		if b.Origin != protocol.OriginGoal {
			return
		}
		n.started++
		n.goalTurns++
		if n.goal == nil || n.goal.TurnsUsed < n.started || n.goal.TurnsUsed > n.goal.MaxTurns {
			t.Errorf("entry %d starts turn %d of a goal that counts %+v", e.Seq, n.started, n.goal)
		}
	}
}

// check looks at the end of the log whether everything was told once.
func (n *notices) check(t *testing.T) {
	for id, times := range n.told {
		if times != 1 {
			t.Errorf("the model was told %d times that task %s ended", times, id)
		}
		if n.ended[id] == 0 {
			t.Errorf("the model was told of the end of task %s, of which the log says nothing", id)
		}
	}
	for id, at := range n.ended {
		if at < n.newest && n.told[id] == 0 {
			t.Errorf("task %s ended in entry %d, and the model was not told with entry %d", id, at, n.newest)
		}
	}
}
