package plan_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/tool/plan"
)

// The session tells a plan before the tool runs, from the same arguments: what one takes for a plan the other has to, too.
func TestAPlanIsToldExactlyWhenTheToolTakesIt(t *testing.T) {
	for args, told := range map[string]bool{
		`{"plan":[]}`: true,
		`{"plan":[{"step":"a","status":"completed"},{"step":"b","status":"in_progress"},{"step":"c","status":"pending"}]}`: true,
		`{"plan":[{"step":"a","status":"cancelled"}]}`:                                                                     true,
		`{"plan":[{"step":"a","status":"in_progress"},{"step":"b","status":"in_progress"}]}`:                               false,
		`{"plan":[{"step":"","status":"pending"}]}`:                                                                        false,
		`{"plan":[{"step":"a","status":"done"}]}`:                                                                          false,
		`{"plan":[{"step":"a"}]}`:                                                                                          false,
		`{"plan":[{"step":1,"status":"pending"}]}`:                                                                         false,
		`{"plan":["a"]}`: false,
		`{"plan":null}`:  false,
		`{}`:             false,
	} {
		t.Run(args, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				call, _ := json.Marshal(map[string]any{"call": map[string]any{"id": "c1", "name": "update_plan", "arguments": json.RawMessage(args)}})
				play := script.Must(`{"turns":[{"steps":[` + string(call) + `]},{"steps":[{"text":"Done."}]}]}`)
				p := peers.NewWorld().Launch(t, "p", play, peers.Setting{Loop: func(*peers.Process) session.Loop {
					return session.Loop{Tools: []session.Tool{plan.UpdatePlan()}}
				}})
				defer p.End()
				plans, status := 0, ""
				for _, b := range p.Turn(t.TempDir()) {
					switch b := b.(type) {
					case *protocol.PlanUpdated:
						plans++
					case *protocol.ToolResult:
						status = b.Status
					}
				}
				if (plans == 1) != told || (status == protocol.ToolCompleted) != told {
					t.Errorf("%d plans are told, the call is %s", plans, status)
				}
			})
		})
	}
}
