package session_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

func TestAToolWhoseStartWasRecordedDoesNotBeginOnceItsTurnIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := false
		act := writeTool("act", func() string { ran = true; return "acted" })
		var got session.ToolResult
		m := answering()
		agent := agentFunc(func(ctx context.Context, turn *session.Turn) (string, error) {
			loop, err := session.NewLoop(session.Loop{Models: m, Tools: []session.Tool{act}})
			if err != nil {
				return "", err
			}
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			got, err = session.RunTool(ctx, loop, turn, act, session.ToolCall{ID: "c1", Name: "act", Arguments: json.RawMessage(`{}`)})
			return "end_turn", err
		})
		h := &house{t: t, store: memory.New(), model: m}
		h.all = session.NewSessions(session.Config{Store: h.store, Agent: agent, Models: m})
		h.prompt(h.draft(), "x")
		if ran || got.Status != protocol.ToolCancelled || got.ErrorType != protocol.ErrCancelled {
			t.Errorf("it ran: %v, its result is %+v", ran, got)
		}
		h.close()
	})
}
