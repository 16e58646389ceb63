package acp_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/dispatcher/acp"
	"github.com/rind-dev/rind/internal/peers"
)

func TestALineOverTheBoundIsRefusedAndSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launchWith(t, peers.NewWorld(), "i1", touching, acp.Config{MaxLine: 5000})
		c := p.start(`{}`)
		id := c.fresh()
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":77,"method":"session/prompt","params":%s}`, prompting(id, strings.Repeat("x", 5000))))
		h, _ := c.until("refusal", func(h *heard) bool { return h.Error != nil })
		if h.Error.Code != -32600 || string(h.ID) != "null" || !strings.Contains(h.Error.Message, "5000 bytes") {
			t.Errorf("%s", h.raw)
		}
		if h, _ := c.call("session/prompt", prompting(id, "next "+strings.Repeat("x", 4000))); stopOf(h) != "end_turn" {
			t.Errorf("%s", h.raw)
		}
		p.end()
	})
}

func TestTheDraftIsAnsweredWhereItIsServedAndAskedFor(t *testing.T) {
	for _, asked := range []struct {
		served  bool
		version int
		answer  string
	}{{false, 2, "1"}, {true, 2, "2"}, {true, 1, "1"}, {true, 3, "1"}} {
		synctest.Test(t, func(t *testing.T) {
			p := launchWith(t, peers.NewWorld(), "i1", touching, acp.Config{Draft: asked.served})
			c := p.connect()
			h, _ := c.call("initialize", fmt.Sprintf(`{"protocolVersion":%d}`, asked.version))
			if got := between(h.raw, `"protocolVersion":`, ","); got != asked.answer {
				t.Errorf("%+v: %s", asked, h.raw)
			}
			id := c.fresh()
			c.call("session/prompt", prompting(id, "next"))
			if asked.answer == "1" {
				c.call("session/set_mode", `{"sessionId":"`+id+`","modeId":"edit"}`)
				p.end()
				return
			}
			c.refused(-32601, "session/set_mode", `{"sessionId":"`+id+`","modeId":"edit"}`)
			from := func(replay string) string {
				return fmt.Sprintf(`{"sessionId":%q,"cwd":"/w","mcpServers":[],"replayFrom":%s}`, id, replay)
			}
			h, _ = c.call("session/resume", from(`{"type":"start"}`))
			if strings.Contains(h.raw, "modes") {
				t.Errorf("resume: %s", h.raw)
			}
			first, _ := c.until("the user's words", func(h *heard) bool { return h.Params.Update.SessionUpdate == "user_message_chunk" })
			c.call("session/resume", from(fmt.Sprintf(`{"type":"_rind_cursor","cursor":%q}`, first.Params.Meta["rind/cursor"])))
			c.until("the entry that is named", func(h *heard) bool { return h.raw == first.raw })
			for _, bad := range []string{`{"type":"end"}`, `{}`, `{"type":"_rind_cursor","cursor":"0"}`, `{"type":"_rind_cursor"}`} {
				c.refused(-32602, "session/resume", from(bad))
			}
			p.end()
		})
	}
}

// As long as no session is open, a client may say anew what it offers.
func TestASecondInitializeReplacesWhatTheFirstOffered(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		c.call("initialize", `{"protocolVersion":1,"clientCapabilities":{"elicitation":{"form":{}}}}`)
		ask := c.ask("session/prompt", prompting(c.fresh(), "colour"))
		c.result(c.asked("elicitation/create"), `{"action":"decline"}`)
		if h, _ := c.answer(ask); stopOf(h) != "end_turn" {
			t.Errorf("%s", h.raw)
		}
	})
}
