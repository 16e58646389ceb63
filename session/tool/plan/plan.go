// Package plan holds the tool update_plan, by which a model keeps and shows a plan of its work (docs/protocol/rind-v2.md section 9). The tool
// only says whether a plan is one: the session tells it, and keeps it, when the call is made. It owns no goroutine.
package plan

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

type updatePlan struct{}

// UpdatePlan is the tool update_plan.
func UpdatePlan() session.Tool { return updatePlan{} }

// Spec implements session.Tool.
func (updatePlan) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name: "update_plan", Kind: "think",
		Description: "Keep the plan of your work, which the person sees. Give the full list each time, finished steps too, in the order they are done; " +
			"at most one step is in_progress. Use it for work of several steps, and whenever a step begins, ends or is dropped.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"plan":{"type":"array","description":"all steps; an empty list takes the plan away","items":{"type":"object","properties":{` +
			`"step":{"type":"string","description":"what is done, in a few words"},` +
			`"status":{"type":"string","enum":["pending","in_progress","completed","cancelled"]}},` +
			`"required":["step","status"],"additionalProperties":false}}},` +
			`"required":["plan"],"additionalProperties":false}`),
	}
}

// Run implements session.Tool. Data is "Plan updated".
func (updatePlan) Run(ctx context.Context, call session.ToolCall, _ session.Progress) (session.ToolResult, error) {
	if ctx.Err() != nil {
		return session.ToolResult{}, context.Cause(ctx)
	}
	var args struct {
		Plan []protocol.PlanStep `json:"plan"`
	}
	if refused := call.Decode(&args); refused != nil {
		return *refused, nil
	}
	if args.Plan == nil {
		return session.InvalidArguments("update_plan", "plan is missing."), nil
	}
	busy := 0
	for i, s := range args.Plan {
		switch s.Status {
		case "in_progress":
			busy++
		case "pending", "completed", "cancelled":
		default:
			return session.InvalidArguments("update_plan", "step %d has the status %q; it is pending, in_progress, completed or cancelled.", i+1, protocol.Prefix(s.Status, 40)), nil
		}
		if strings.TrimSpace(s.Step) == "" {
			return session.InvalidArguments("update_plan", "step %d does not say what is done.", i+1), nil
		}
	}
	if busy > 1 {
		return session.InvalidArguments("update_plan", "%d steps are in_progress; at most one is. The plan stays as it was.", busy), nil
	}
	return session.ToolResult{Data: "Plan updated"}, nil
}
