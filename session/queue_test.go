package session_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

func TestEachSamplingIsGivenOneInputSteeringFirstInTheOrderOfTheQueues(t *testing.T) {
	for _, way := range []string{"prompt", "compact"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := make(chan struct{})
				m := &model{}
				held := -1 // the request that is held
				m.play = func(_ context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
					if len(m.requests) == held {
						<-gate
						if way == "prompt" { // inputs come behind the results of its calls
							for _, c := range append(callChunks("c1", "look", `{}`), finish(session.FinishCalls)) {
								yield(c, nil)
							}
							return
						}
					}
					yield(text("ok"), nil)
					yield(finish(session.FinishStop), nil)
				}
				h := newHouse(t, memory.New(), m, readTool("look", func() string { return "seen" }))
				s := h.draft()
				h.prompt(s, "before")
				held = len(m.requests) + 1
				ch := make(chan ended, 1)
				if way == "compact" {
					s.Compact(func(o session.Outcome, err error) { ch <- ended{o, err} })
				} else {
					_, ch = ask(s, session.PromptRequest{Input: "x"})
				}
				synctest.Wait()
				res := make(chan session.InputResult, 1)
				answer := func(r session.InputResult, err error) {
					if err != nil {
						t.Error(err)
					}
					res <- r
				}
				for _, in := range []string{"f1", "s1", "f2", "s2"} {
					s.Enqueue(map[byte]string{'f': protocol.ModeFollowUp, 's': protocol.ModeSteering}[in[0]], in, "", answer)
					if r := <-res; in == "f2" {
						s.Promote(r.ID, answer)
						if moved := <-res; moved.ID != r.ID || moved.Mode != protocol.ModeSteering {
							t.Errorf("promoted %+v", moved)
						}
					}
				}
				close(gate)
				if o := <-ch; o.err != nil || o.Outcome.Outcome != session.OutcomeCompleted {
					t.Fatalf("outcome %+v", o)
				}
				var given []string
				for _, r := range m.requests[held:] {
					var said []string
					for i := len(r.Messages) - 1; i >= 0 && r.Messages[i].Role == session.RoleUser; i-- {
						said = append(said, r.Messages[i].Text)
					}
					given = append(given, strings.Join(said, "+"))
				}
				if got := strings.Join(given, " "); got != "s1 f2 s2 f1" {
					t.Errorf("the samplings behind the first were given %q", got)
				}
				if got := h.starts(s); got != "user user" {
					t.Errorf("turns %s", got)
				}
				checkLog(t, h)
				h.close()
			})
		})
	}
}
