package acp_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/dispatcher/acp"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/session"
)

// TestAnOpeningOrClosingThatIsTakenBackLeavesNothingOpen: a session that nobody refers to any more ends; who opens it then gets another one.
func TestAnOpeningOrClosingThatIsTakenBackLeavesNothingOpen(t *testing.T) {
	for _, method := range []string{"session/load", "session/resume", "session/close"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s *session.Session
				let, looked := make(chan struct{}), 0
				hold := func() { s.Inspect(func(*session.View) { <-let }) } // so that the request is taken back before the session comes to it
				p := launchWith(t, peers.NewWorld(), "i1", `[{"text": "hello"}]`, acp.Config{Resolve: func(path string) (string, error) {
					if path == "/x" {
						if looked++; looked == 2 { // right before what opens the session is asked of it
							hold()
						}
					}
					return path, nil
				}})
				defer p.end()
				c := p.start(`{}`)
				id := c.fresh()
				c.call("session/prompt", prompting(id, "go"))
				var err error
				if s, err = p.All.Open(context.Background(), session.SessionID(id)); err != nil {
					t.Fatal(err)
				}
				if method != "session/close" {
					c.call("session/close", named(id))
				}
				if method == "session/close" {
					hold()
				}
				request := c.ask(method, fmt.Sprintf(`{"sessionId":%q,"cwd":"/w","mcpServers":[],"additionalDirectories":["/x"]}`, id))
				c.tell("$/cancel_request", fmt.Sprintf(`{"requestId":%s}`, request))
				if h, _ := c.answer(request); h.Error == nil || h.Error.Code != -32800 {
					t.Errorf("answered %s", h.raw)
				}
				close(let)
				synctest.Wait()
				if method != "session/close" {
					c.call("session/close", named(id))
				}
				s.Close()
				synctest.Wait()
				again, err := p.All.Open(context.Background(), session.SessionID(id))
				if err != nil {
					t.Fatal(err)
				}
				if again == s {
					t.Error("something still has it open")
				}
				again.Close()
			})
		})
	}
}
