package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// H100: a model that goes on for ever with ever new calls is stopped by their number, one that asks for a tool there is not by its repeats,
// and nobody is asked for consent to that.
func TestAModelWithoutAnEndIsStoppedAndTheSessionGoesOn(t *testing.T) {
	for _, c := range []struct {
		name, tool string
		args       func(n int) string
		requests   int
	}{
		{"ever new calls", "look", func(n int) string { return fmt.Sprintf(`{"path":"%d"}`, n) }, 500},
		{"an unknown tool", "no_such_tool", func(int) string { return `{}` }, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &model{}
			stop := false
			m.play = func(_ context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
				if stop {
					_ = yield(text("ok"), nil) && yield(finish(session.FinishStop), nil)
					return
				}
				for _, ch := range append(callChunks("", c.tool, c.args(len(m.requests))), finish(session.FinishCalls)) {
					if !yield(ch, nil) {
						return
					}
				}
			}
			bubble(t, m, []session.Tool{readTool("look", func() string { return "seen" })}, func(h *house) {
				s := h.draft()
				o := h.prompt(s, "x")
				if o.Fault == nil || o.Fault.Type != protocol.FailLimit || len(m.requests) != c.requests {
					t.Errorf("%+v after %d requests", o.Fault, len(m.requests))
				}
				for _, e := range h.entries(s.ID) {
					if e.Kind == protocol.KindApprovalRequested {
						t.Error("somebody was asked")
					}
				}
				stop = true
				if o := h.prompt(s, "go on"); o.Outcome != session.OutcomeCompleted {
					t.Errorf("afterwards: %+v", o.Fault)
				}
				checkHistory(t, m.requests[len(m.requests)-1].Messages)
			})
		})
	}
}

// An execution that names its own number of model requests has that bound alone, below and above the one that every turn has.
func TestAnExecutionsOwnStepsAreItsOnlyBound(t *testing.T) {
	for _, most := range []int{3, 600} {
		m := &model{}
		m.play = func(_ context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
			for _, ch := range append(callChunks("", "look", fmt.Sprintf(`{"path":"%d"}`, len(m.requests))), finish(session.FinishCalls)) {
				if !yield(ch, nil) {
					return
				}
			}
		}
		bubble(t, m, []session.Tool{readTool("look", func() string { return "seen" })}, func(h *house) {
			s := h.draft()
			config := json.RawMessage(fmt.Sprintf(`{"maxSteps":%d}`, most))
			turn := h.execute(s, session.ExecutionRequest{Provider: "agent", Input: "x", Config: config})
			synctest.Wait()
			end := ""
			for _, e := range h.entries(s.ID) {
				if e.Turn == turn && e.Kind == protocol.KindTurnFailed {
					end = string(e.Event) + string(e.More)
				}
			}
			if want := fmt.Sprintf("Execution exceeded maxSteps %d", most); !strings.Contains(end, want) || len(m.requests) != most {
				t.Errorf("of %d steps: %d requests, ended %s", most, len(m.requests), end)
			}
		})
	}
}
