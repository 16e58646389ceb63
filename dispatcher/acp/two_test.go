package acp_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/session"
)

func TestTwoProcessesFollowAndAnswerOneSessionAndOnlyItsOwnerPrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peers.NewWorld()
		one, two := launch(t, w, "i1", touching), launch(t, w, "i2", touching)
		a, b := one.start(`{}`), two.start(`{}`)
		id := a.fresh()
		a.call("session/prompt", prompting(id, "next"))
		ask := a.ask("session/prompt", prompting(id, "edit"))
		a.permission()
		h, replay := b.call("session/load", loading(id))
		if strings.Contains(h.raw, "rind/turn") || said(replay, "user_message_chunk") != "nextedit" || calls(replay)["c1"] != "pending" {
			t.Errorf("loaded %s\n%s", h.raw, raws(replay))
		}
		req, _ := b.permission()
		for method, params := range map[string]string{
			"session/prompt": prompting(id, "next"), "_rind/session/continue": named(id), "_rind/session/steer": prompting(id, "x"), "session/delete": named(id),
			"session/set_mode": `{"sessionId":"` + id + `","modeId":"full"}`,
		} {
			if method == "session/delete" { // of a session that is open: it would be closed here first
				continue
			}
			h, _ := b.answer(b.ask(method, params))
			if h.Error == nil || h.Error.Code != -32050 {
				t.Errorf("%s while another process works: %s", method, h.raw)
			}
		}
		b.tell("session/cancel", named(id)) // not the other's prompt
		b.choose(req, "allow_once")
		_, live := b.until("the end, live", func(h *heard) bool { return h.Params.Update.text() == "All done." })
		if h, _ := a.answer(ask); stopOf(h) != "end_turn" || one.touched.Load() != 1 || two.touched.Load() != 0 || calls(live)["c1"] != "completed" {
			t.Errorf("%s; touched %d and %d; %v", h.raw, one.touched.Load(), two.touched.Load(), calls(live))
		}
		time.Sleep(time.Second)
		if h, told := b.call("session/prompt", prompting(id, "next")); stopOf(h) != "end_turn" || said(told, "agent_message_chunk") != "The next." {
			t.Errorf("once it is idle: %s", h.raw)
		}
		one.end()
		two.end()
	})
}

func TestACancelLeavesAnotherConnectionsPromptsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "i1", touching)
		a, b := p.start(`{}`), p.start(`{}`)
		id := a.fresh()
		first := a.ask("session/prompt", prompting(id, "long"))
		a.until("first chunk", func(h *heard) bool { return h.Params.Update.SessionUpdate == "agent_message_chunk" })
		b.call("session/load", loading(id))
		second := b.ask("session/prompt", prompting(id, "edit"))
		third := a.ask("session/prompt", prompting(id, "next"))
		b.tell("session/cancel", named(id))
		if h, _ := b.answer(second); stopOf(h) != "cancelled" {
			t.Errorf("its own: %s", h.raw)
		}
		for _, ask := range []string{first, third} {
			if h, _ := a.answer(ask); stopOf(h) != "end_turn" {
				t.Errorf("the other's %s: %s", ask, h.raw)
			}
		}
		p.end()
	})
}

func TestOpeningAnInterruptedTurnWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, id := interrupted(t, "")
		head := func() session.Seq {
			m, err := p.Store.Session(t.Context(), session.SessionID(id))
			if err != nil {
				t.Fatal(err)
			}
			return m.Head
		}
		before := head()
		c.call("session/load", loading(id))
		if h, _ := c.call("session/resume", loading(id)); !strings.Contains(h.raw, `"rind/turn":{"status":"interrupted"`) {
			t.Errorf("resume: %s", h.raw)
		}
		c.call("_rind/session/replay", named(id))
		if after := head(); after != before {
			t.Errorf("the head went from %d to %d", before, after)
		}
		p.end()
	})
}

func TestStopAndTheNextPromptInOneWrite(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		first := c.ask("session/prompt", prompting(id, "long"))
		c.until("first chunk", func(h *heard) bool { return h.Params.Update.SessionUpdate == "agent_message_chunk" })
		c.send(`{"jsonrpc":"2.0","method":"session/cancel","params":` + named(id) + `}` + "\n" + `{"jsonrpc":"2.0","id":900,"method":"session/prompt","params":` + prompting(id, "next") + `}`)
		if h, _ := c.answer(first); stopOf(h) != "cancelled" {
			t.Errorf("%s", h.raw)
		}
		if h, told := c.answer("900"); stopOf(h) != "end_turn" || said(told, "agent_message_chunk") != "The next." {
			t.Errorf("%s", h.raw)
		}
	})
}
