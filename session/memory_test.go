package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// reader is a model that starts a task, reads what it wrote, and is done.
func reader() *model {
	m, calls := &model{}, 0
	m.play = func(_ context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
		calls++
		last := r.Messages[len(r.Messages)-1]
		chunks := []session.Chunk{text("done"), finish(session.FinishStop)}
		switch {
		case last.Role == session.RoleUser:
			chunks = append(callChunks(fmt.Sprintf("c%d", calls), "bg", `{"command":"x"}`), finish(session.FinishCalls))
		case last.ToolName == "bg":
			var res struct {
				Data struct {
					Task string `json:"task_id"`
				} `json:"data"`
			}
			_ = json.Unmarshal([]byte(last.Text), &res)
			chunks = append(callChunks(fmt.Sprintf("c%d", calls), "task_control", `{"action":"read","task_id":"`+res.Data.Task+`"}`), finish(session.FinishCalls))
		}
		for _, c := range chunks {
			if !yield(c, nil) {
				return
			}
		}
	}
	return m
}

func TestOfTasksThatAreForgottenNothingIsKept(t *testing.T) {
	const tasks, records = 260, 200
	synctest.Test(t, func(t *testing.T) {
		jobs := &testkit.Jobs{Started: make(chan *testkit.Job, 1), Notify: protocol.NotifyManual}
		h := policyHouse(t, memory.New(), reader(), allowing(), "", jobs)
		s := h.draft()
		for range tasks {
			h.prompt(s, "go")
			h.model.requests = nil
			job := <-jobs.Started
			job.Write("out\n")
			job.Finish(protocol.TaskCompleted, 0)
			synctest.Wait()
		}
		if readTo, named, owners := s.TaskTraces(); readTo > records || named > records || owners > records || named != owners || readTo == 0 {
			t.Errorf("after %d tasks: %d places of reading, %d names, %d owners", tasks, readTo, named, owners)
		}
		h.close()
	})
}
