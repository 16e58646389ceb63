package acp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/session"
)

// An execution of another surface asks here too. Its action has no call: one is announced for it before anything else is said of it, and closed with
// the answer, whenever and however a client comes to the session.
func TestTheActionOfAnExecutionIsAskedOfEveryClientAndItsCallAnnouncedAndClosed(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, p *process, live *client) {
		id := live.fresh()
		h, _ := live.call("session/prompt", prompting(id, "next"))
		before := between(h.raw, `"rind/cursor":"`, `"`)
		s, err := p.All.Open(t.Context(), session.SessionID(id))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		live.at = len(live.Got())
		x := s.SubmitExecution(session.ExecutionRequest{Provider: "mock", Input: "two words", Config: json.RawMessage(`{"prefix":"","delayMs":0,"requireApproval":true}`), Runner: session.Mock{}})
		if _, err := x(t.Context()); err != nil {
			t.Fatal(err)
		}
		clients := map[string]*client{"live": live}
		reqs := map[string]*heard{}
		announced := map[string]bool{}
		ask := func(name string, c *client) {
			req, passed := c.permission()
			clients[name], reqs[name] = c, req
			announced[name] = calls(passed)[req.Params.ToolCall.ToolCallID] == "pending"
		}
		ask("live", live)
		var head session.Seq
		_ = s.InspectNow(t.Context(), func(v *session.View) { head = v.Head })
		for name, open := range map[string][2]string{
			"load": {"session/load", loading(id)}, "resume": {"session/resume", loading(id)},
			"resume from before": {"session/resume", after(loading(id), before)}, "resume from its end": {"session/resume", after(loading(id), fmt.Sprint(head))},
			"load from its end": {"session/load", after(loading(id), fmt.Sprint(head))},
		} {
			c := p.start(`{}`)
			opening := c.ask(open[0], open[1])
			_, passed := c.answer(opening)
			ask(name, c)
			for _, l := range passed {
				announced[name] = announced[name] || l.Params.Update.SessionUpdate == "tool_call"
			}
		}
		live.choose(reqs["live"], "allow_once")
		for name, c := range clients {
			call := reqs[name].Params.ToolCall.ToolCallID
			if known := strings.HasSuffix(name, "its end"); announced[name] == known {
				t.Errorf("%s: announced %v", name, announced[name])
			}
			synctest.Wait()
			rest := c.Got()[c.at:]
			if calls(rest)[call] != "completed" {
				t.Errorf("%s: its call is left %q", name, calls(rest)[call])
			}
			withdrawn := false
			for _, l := range rest {
				withdrawn = withdrawn || l.Method == "$/cancel_request" && string(l.Params.RequestID) == string(reqs[name].ID)
			}
			if withdrawn == (name == "live") {
				t.Errorf("%s: withdrawn %v", name, withdrawn)
			}
		}
	})
}

// after gives the params of an opening a cursor.
func after(params, cursor string) string {
	return strings.Replace(params, `"mcpServers"`, fmt.Sprintf(`"_meta":{"rind/afterCursor":%q},"mcpServers"`, cursor), 1)
}
