package acp_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/internal/peers"
)

func TestAClientThatDoesNotReadIsToldAllOfItAfterwards(t *testing.T) {
	text := strings.Repeat("abcdé😀", 4000)
	play := `{"turns":[{"match":"go","steps":[{"text":"` + text + `","chunk":20,"delayMs":26}]},{"match":"more","steps":[{"text":"And more."}]}]}`
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "i1", play)
		c := p.start(`{}`)
		id := c.fresh()
		first, second := c.ask("session/prompt", prompting(id, "go")), c.ask("session/prompt", prompting(id, "more"))
		c.until("first chunk", func(h *heard) bool { return h.Params.Update.SessionUpdate == "agent_message_chunk" })
		from := c.at
		c.Deafen()
		time.Sleep(5 * time.Minute) // of the bubble: both turns end meanwhile
		c.Hear()
		_, one := c.answer(first)
		_, two := c.answer(second)
		got := c.Got()[from-1].Params.Update.text() + said(one, "agent_message_chunk")
		if got != text || said(two, "agent_message_chunk") != "And more." {
			t.Errorf("%d bytes of %d, then %q", len(got), len(text), said(two, "agent_message_chunk"))
		}
		if n := len(one); n > 300 {
			t.Errorf("%d lines for what lies far behind", n)
		}
		p.end()
	})
}

func TestInputThatNeverReachedTheModelIsNamedInTheAnswer(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		ask := c.ask("session/prompt", prompting(id, "long"))
		c.until("first chunk", func(h *heard) bool { return h.Params.Update.SessionUpdate == "agent_message_chunk" })
		h, _ := c.call("_rind/session/follow_up", prompting(id, "and this"))
		input := h.raw[strings.Index(h.raw, `"inputId":"`)+len(`"inputId":"`):][:32]
		c.tell("session/cancel", named(id))
		if h, _ := c.answer(ask); !strings.Contains(h.raw, `"rind/dropped":["`+input+`"]`) {
			t.Errorf("%s names no %s", h.raw, input)
		}
		ask = c.ask("session/prompt", prompting(id, "long"))
		c.until("first chunk", func(h *heard) bool { return h.Params.Update.SessionUpdate == "agent_message_chunk" })
		c.call("_rind/session/follow_up", prompting(id, "next"))
		_, told := c.answer(ask)
		if said(told, "user_message_chunk") != "next" || !strings.Contains(said(told, "agent_message_chunk"), "The next.") {
			t.Errorf("told %q, %q", said(told, "user_message_chunk"), said(told, "agent_message_chunk"))
		}
	})
}

// TestBeyondTheBoundsOfAQueueEveryInputIsAnsweredAlike: too long by itself, together with what waits, or one too many.
func TestBeyondTheBoundsOfAQueueEveryInputIsAnsweredAlike(t *testing.T) {
	for _, method := range []string{"_rind/session/steer", "_rind/session/follow_up"} {
		bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
			id := c.fresh()
			ask := c.ask("session/prompt", prompting(id, "long"))
			c.until("first chunk", func(h *heard) bool { return h.Params.Update.SessionUpdate == "agent_message_chunk" })
			long := strings.Repeat("é", 7996)
			c.refused(-32050, method, prompting(id, long+"12345"))
			c.call(method, prompting(id, long))
			c.refused(-32050, method, prompting(id, "12345"))
			for range 3 {
				c.call(method, prompting(id, "1"))
			}
			c.refused(-32050, method, prompting(id, "1"))
			c.tell("session/cancel", named(id))
			c.answer(ask)
		})
	}
}
