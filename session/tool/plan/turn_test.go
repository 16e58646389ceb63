package plan_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/store/memory"
	"github.com/rind-dev/rind/session/tool/plan"
)

// scripted is the one model there is.
type scripted struct{ *script.Script }

func (scripted) Default() session.Selection {
	return session.Selection{Provider: "script", Model: "m", Mode: "ask"}
}

func (m scripted) Select(context.Context, session.Selection) (session.Selected, error) {
	return session.Selected{Model: m, Info: session.ModelInfo{Provider: "script", ID: "m"}}, nil
}

func (scripted) List(context.Context, bool) ([]session.ModelInfo, string, error) { return nil, "", nil }

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
				model := scripted{script.Must(`{"turns":[{"steps":[` + string(call) + `]},{"steps":[{"text":"Done."}]}]}`)}
				loop, err := session.NewLoop(session.Loop{Models: model, Tools: []session.Tool{plan.UpdatePlan()}})
				if err != nil {
					t.Fatal(err)
				}
				store := memory.New()
				all := session.NewSessions(session.Config{Store: store, Agent: loop, Models: model, Now: time.Now})
				s, err := all.Draft(t.Context(), session.DraftOptions{Workspace: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				s.Prompt(session.PromptRequest{Input: "go"}, func(_ session.Outcome, err error) { done <- err })
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				entries, err := store.Read(t.Context(), s.ID, 0, 1<<20, protocol.ViewAll)
				if err != nil {
					t.Fatal(err)
				}
				plans, status := 0, ""
				for i := range entries {
					b, err := protocol.Decode(&entries[i])
					if err != nil {
						t.Fatal(err)
					}
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
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				if err := all.Shutdown(ctx); err != nil {
					t.Error(err)
				}
				_ = store.Close()
			})
		})
	}
}
