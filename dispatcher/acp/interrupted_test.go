package acp_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/internal/peers"
)

// interrupted leaves a turn whose process died while a call ran, and returns a client of the next process that has loaded its session.
func interrupted(t *testing.T, key string) (*process, *client, string) {
	t.Helper()
	w := peers.NewWorld()
	p := launch(t, w, "i1", touching)
	c := p.start(`{}`)
	id := c.fresh()
	c.ask("session/prompt", keyed(prompting(id, "stay"), key))
	c.until("the call runs", func(h *heard) bool { return h.Params.Update.Status == "in_progress" })
	p.kill()
	p = launch(t, w, "i2", touching)
	c = p.start(`{}`)
	c.call("session/load", loading(id))
	return p, c, id
}

func keyed(params, key string) string {
	if key == "" {
		return params
	}
	return strings.Replace(params, `"sessionId"`, `"_meta":{"rind/idempotencyKey":"`+key+`"},"sessionId"`, 1)
}

func TestContinueGoesOnWithTheInterruptedTurnAndRunsNoCallTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, id := interrupted(t, "")
		h, told := c.call("_rind/session/continue", named(id))
		if stopOf(h) != "end_turn" || calls(told)["s1"] != "failed" || said(told, "agent_message_chunk") != "Never." {
			t.Errorf("%s\n%s", h.raw, c.heardSince(0))
		}
		c.refused(-32052, "_rind/session/continue", named(id))
		p.end()
	})
}

func TestTheKeyOfAnInterruptedTurnClosesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, id := interrupted(t, "k1")
		c.refused(-32051, "session/prompt", keyed(prompting(id, "next"), "k1"))
		h, _ := c.call("session/prompt", keyed(prompting(id, "stay"), "k1"))
		if stopOf(h) != "cancelled" || !strings.Contains(h.raw, `"rind/turn":{"status":"interrupted"`) {
			t.Errorf("%s", h.raw)
		}
		if h, _ := c.call("session/prompt", keyed(prompting(id, "next"), "k2")); stopOf(h) != "end_turn" {
			t.Errorf("%s", h.raw)
		}
		p.end()
	})
}

func TestCancelClosesAnInterruptedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, id := interrupted(t, "")
		c.tell("session/cancel", named(id))
		c.until("the call is closed", func(h *heard) bool { return h.Params.Update.ToolCallID == "s1" && h.Params.Update.Status == "failed" })
		c.call("session/list", `{}`)
		h, _ := c.call("session/load", loading(id))
		if strings.Contains(h.raw, "rind/turn") {
			t.Errorf("still open: %s", h.raw)
		}
		p.end()
	})
}

// A client that comes back with a cursor behind the call's announcement is told that the call is open no more.
func TestACallOfAnInterruptedTurnIsFailedAlsoForAClientThatKnowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, id := interrupted(t, "")
		cursor := ""
		for _, h := range c.Got() {
			if h.Params.Update.ToolCallID == "s1" && h.Params.Meta["rind/cursor"] != "" {
				cursor = h.Params.Meta["rind/cursor"]
			}
		}
		for _, method := range []string{"session/load", "session/resume"} {
			d := p.start(`{}`)
			d.call(method, after(loading(id), cursor))
			synctest.Wait()
			if got := calls(d.Got())["s1"]; got != "failed" {
				t.Errorf("%s: the call is left %q", method, got)
			}
		}
		p.end()
	})
}
