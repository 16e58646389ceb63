package plan_test

import (
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/tool/plan"
	"github.com/rind-dev/rind/session/tool/tooltest"
)

func TestItKeepsThePromisesOfTools(t *testing.T) {
	tooltest.Run(t, plan.UpdatePlan(), tooltest.NewWorkspace(t))
}

func TestAPlanIsAListOfStepsOneOfThemInProgress(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{`{"plan":[]}`, ""},
		{`{"plan":[{"step":"look","status":"completed"},{"step":"edit","status":"in_progress"},{"step":"test","status":"pending"}]}`, ""},
		{`{"plan":[{"step":"look","status":"cancelled"}]}`, ""},
		{`{"plan":[{"step":"a","status":"in_progress"},{"step":"b","status":"in_progress"}]}`, "2 steps are in_progress"},
		{`{"plan":[{"step":"a","status":"pending"},{"step":"","status":"pending"}]}`, "step 2 does not say"},
		{`{"plan":[{"step":" \n","status":"pending"}]}`, "step 1 does not say"},
		{`{"plan":[{"step":"a","status":"done"}]}`, `the status "done"`},
		{`{"plan":[{"step":"a"}]}`, `the status ""`},
		{`{"plan":null}`, "plan is missing"},
		{`{}`, "plan is missing"},
		{`{"plan":"look, edit"}`, "plan"},
	} {
		res, err := plan.UpdatePlan().Run(t.Context(), session.ToolCall{Name: "update_plan", Arguments: []byte(c.args)}, nil)
		switch {
		case err != nil:
			t.Fatal(err)
		case c.says == "" && (res.ErrorType != "" || res.Data != "Plan updated"):
			t.Errorf("%s: %+v", c.args, res)
		case c.says != "" && (res.Status != protocol.ToolRejected || res.ErrorType != protocol.ErrInvalidArguments || !strings.Contains(res.Error, c.says)):
			t.Errorf("%s: %+v, want %q", c.args, res, c.says)
		}
	}
}
