package acp_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/internal/peers"
)

// What a turn that waits is worth after its process is gone: the key of its prompt and continue wait for its end, which any answer brings; another
// prompt, or a cancel, closes it.
func TestAWaitingTurnOutlivesItsProcessForWhoeverAsksForIt(t *testing.T) {
	for _, next := range []string{"key", "continue", "prompt", "cancel", "other content"} {
		t.Run(next, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := peers.NewWorld()
				p := launch(t, w, "i1", touching)
				c := p.start(`{}`)
				id := c.fresh()
				c.ask("session/prompt", keyed(prompting(id, "edit"), "k1"))
				c.permission()
				p.kill()
				p = launch(t, w, "i2", touching)
				c = p.start(`{}`)
				c.call("session/load", loading(id))
				req, _ := c.permission()
				switch next {
				case "key", "continue":
					ask := ""
					if next == "key" {
						ask = c.ask("session/prompt", keyed(prompting(id, "edit"), "k1"))
					} else {
						ask = c.ask("_rind/session/continue", named(id))
					}
					synctest.Wait()
					if got := c.heardSince(c.at); strings.Contains(got, "stopReason") {
						t.Errorf("answered before the turn went on: %s", got)
					}
					c.choose(req, "allow_once")
					if h, told := c.answer(ask); stopOf(h) != "end_turn" || p.touched.Load() != 1 || said(told, "agent_message_chunk") != "All done." || strings.Contains(h.raw, "replayed") {
						t.Errorf("%s, touched %d", h.raw, p.touched.Load())
					}
				case "prompt":
					h, told := c.call("session/prompt", prompting(id, "next"))
					if stopOf(h) != "end_turn" || said(told, "agent_message_chunk") != "The next." || calls(told)["c1"] != "failed" || p.touched.Load() != 0 {
						t.Errorf("%s, %v", h.raw, calls(told))
					}
				case "cancel":
					c.tell("session/cancel", named(id))
					c.until("the call is closed", func(h *heard) bool { return h.Params.Update.ToolCallID == "c1" && h.Params.Update.Status == "failed" })
					c.refused(-32052, "_rind/session/continue", named(id))
				default:
					c.refused(-32051, "session/prompt", keyed(prompting(id, "next"), "k1"))
				}
				p.end()
			})
		})
	}
}

// A prompt that never began uses up no key, and leaves no words: withdrawn in line, or refused.
func TestAPromptThatNeverBeganLeavesItsKeyFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peers.NewWorld()
		p := launch(t, w, "i1", touching)
		c := p.start(`{}`)
		id := c.fresh()
		c.ask("session/prompt", prompting(id, "stay"))
		waits := c.ask("session/prompt", keyed(prompting(id, "long"), "k1"))
		c.until("the call runs", func(h *heard) bool { return h.Params.Update.Status == "in_progress" })
		c.tell("$/cancel_request", `{"requestId":`+waits+`}`)
		if h, _ := c.answer(waits); stopOf(h) != "cancelled" {
			t.Errorf("withdrawn: %s", h.raw)
		}
		for range 8 {
			c.ask("session/prompt", prompting(id, "long"))
		}
		c.refused(-32050, "session/prompt", keyed(prompting(id, "long"), "k2"))
		p.end() // what stands in line is withdrawn with its connection

		p = launch(t, w, "i2", touching)
		c = p.start(`{}`)
		if _, replay := c.call("session/load", loading(id)); said(replay, "user_message_chunk") != "stay" {
			t.Errorf("the log holds %q", said(replay, "user_message_chunk"))
		}
		for _, key := range []string{"k1", "k2"} {
			if h, told := c.call("session/prompt", keyed(prompting(id, "next"), key)); stopOf(h) != "end_turn" || said(told, "agent_message_chunk") != "The next." {
				t.Errorf("%s: %s", key, h.raw)
			}
		}
		p.end()
	})
}

// A client that loads again is asked again under the same call; the dialog from before is void. Behind a cursor a load tells what is missing before
// its answer.
func TestALoadAsksAgainAndTellsWhatFollowsItsCursor(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, p *process, c *client) {
		id := c.fresh()
		h, _ := c.call("session/prompt", prompting(id, "next"))
		cursor := between(h.raw, `"rind/cursor":"`, `"`)
		ask := c.ask("session/prompt", prompting(id, "edit"))
		first, _ := c.permission()
		_, replay := c.call("session/load", after(loading(id), cursor))
		if said(replay, "user_message_chunk") != "edit" || said(replay, "agent_message_chunk") != "I will edit." || calls(replay)["c1"] != "pending" {
			t.Errorf("behind the cursor:\n%s", raws(replay))
		}
		again, passed := c.permission()
		if !strings.Contains(raws(append(replay, passed...)), `"$/cancel_request","params":{"requestId":`+string(first.ID)+`}`) {
			t.Errorf("the first is not withdrawn:\n%s", raws(append(replay, passed...)))
		}
		if a, b := between(first.raw, `"options":`, "]"), between(again.raw, `"options":`, "]"); a != b || again.Params.ToolCall.ToolCallID != "c1" || string(again.ID) == string(first.ID) {
			t.Errorf("asked %s, then %s", first.raw, again.raw)
		}
		c.choose(first, "allow_once") // void
		synctest.Wait()
		if p.touched.Load() != 0 {
			t.Error("a dialog that was withdrawn was answered")
		}
		c.choose(again, "allow_once")
		if h, _ := c.answer(ask); stopOf(h) != "end_turn" || p.touched.Load() != 1 {
			t.Errorf("%s, touched %d", h.raw, p.touched.Load())
		}
	})
}
