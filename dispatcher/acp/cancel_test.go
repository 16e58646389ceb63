package acp_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/internal/peers"
)

// stopping has a turn for each place where a cancel can strike.
const stopping = `{"turns":[{"match":"about to be replaced","steps":[{"hang":true}]},{"match":"silent","steps":[{"hang":true}]},{"match":"text","steps":[{"text":"Half of "},{"hang":true}]},
{"match":"tool","steps":[{"call":{"id":"s1","name":"stay","arguments":{}}},{"finish":"tool_calls"}]},
{"match":"consent","steps":[{"call":{"id":"c1","name":"touch","arguments":{}}},{"finish":"tool_calls"}]},
{"match":"question","steps":[{"call":{"id":"q1","name":"ask_user_question","arguments":{}}},{"finish":"tool_calls"}]},
{"match":"wait","steps":[{"fail":{"fault":"rate","status":429,"retryAfterMs":60000}},{"text":"too late"}]},
{"match":"next","steps":[{"text":"The next."}]},{"match":"before","steps":[{"text":"Before."}]}]}`

// H040: wherever a cancel strikes, its prompt says cancelled and the next one is served.
func TestTheNextPromptIsServedWhereverACancelStruck(t *testing.T) {
	for _, at := range []string{"silent", "text", "tool", "consent", "question", "wait", "/compact"} {
		t.Run(strings.Trim(at, "/"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := launch(t, peers.NewWorld(), "i1", stopping)
				c := p.start(`{}`)
				id := c.fresh()
				c.call("session/prompt", prompting(id, "before"))
				ask := c.ask("session/prompt", prompting(id, at))
				synctest.Wait()
				time.Sleep(10 * time.Millisecond)
				began := time.Now()
				c.tell("session/cancel", named(id))
				h, told := c.answer(ask)
				if stopOf(h) != "cancelled" || time.Since(began) > 2*time.Second {
					t.Errorf("after %v: %s", time.Since(began), h.raw)
				}
				for call, status := range calls(told) {
					if status != "failed" {
						t.Errorf("call %s is left %s", call, status)
					}
				}
				if h, told := c.call("session/prompt", prompting(id, "next")); stopOf(h) != "end_turn" || said(told, "agent_message_chunk") != "The next." {
					t.Errorf("the next: %s, told %q", h.raw, said(told, "agent_message_chunk"))
				}
				if p.touched.Load() != 0 {
					t.Error("what was asked for has run")
				}
				p.end()
			})
		})
	}
}

// H052: ten prompts for one session in one write, and one for another session.
func TestPromptsOfOneWriteRunInOrderAndHoldNoOtherSessionUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := ""
		for i := range 11 {
			turns += fmt.Sprintf(`{"match":"number %d.","steps":[{"text":"answer ","chunk":3,"delayMs":50},{"text":"%d"}]},`, i, i)
		}
		p := launch(t, peers.NewWorld(), "i1", `{"turns":[`+strings.TrimSuffix(turns, ",")+`]}`)
		c := p.start(`{}`)
		one, other := c.fresh(), c.fresh()
		lines := ""
		for i := range 11 {
			id := one
			if i == 10 {
				id = other
			}
			lines += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":%s}`+"\n", 100+i, prompting(id, fmt.Sprintf("number %d.", i)))
		}
		c.send(strings.TrimSuffix(lines, "\n"))
		var order []string
		told := map[string]string{}
		for len(order) < 11 {
			h, passed := c.until("answers", func(h *heard) bool { return h.Method == "" })
			for _, l := range passed {
				told[l.Params.SessionID] += said([]*heard{l}, "agent_message_chunk")
			}
			switch {
			case string(h.ID) == "109" && h.Error == nil: // one runs, eight wait
				t.Errorf("the ninth that would wait: %s", h.raw)
			case string(h.ID) != "109" && stopOf(h) != "end_turn":
				t.Errorf("%s", h.raw)
			}
			order = append(order, string(h.ID))
		}
		if got, want := strings.Join(order, " "), "109 100 110 101 102 103 104 105 106 107 108"; got != want && got != strings.Replace(want, "100 110", "110 100", 1) {
			t.Errorf("answered in the order %s", got)
		}
		want := ""
		for i := range 9 {
			want += fmt.Sprintf("answer %d", i)
		}
		if told[one] != want || told[other] != "answer 10" {
			t.Errorf("told %q and %q", told[one], told[other])
		}
		p.end()
	})
}

// H035: every whole number is answered with the version there is, so that the client can decide; anything else is a mistake.
func TestEveryVersionIsAnsweredOrRefused(t *testing.T) {
	for version, good := range map[string]bool{
		"1": true, "0": true, "-1": true, "2": true, "9999": true, "18446744073709551616": true, `"1"`: false, `"2024-11-05"`: false, "1.5": false, "null": false, "true": false, "{}": false, "": false,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := launch(t, peers.NewWorld(), "i1", touching)
			c := p.connect()
			params := `{"protocolVersion":` + version + `,"clientCapabilities":{}}`
			if version == "" {
				params = `{"clientCapabilities":{}}`
			}
			if good {
				if h, _ := c.call("initialize", params); !strings.Contains(h.raw, `"protocolVersion":1,`) {
					t.Errorf("%s: %s", version, h.raw)
				}
			} else {
				c.refused(-32602, "initialize", params)
				c.call("initialize", `{"protocolVersion":1}`)
			}
			c.fresh()
			p.end()
		})
	}
}

// H036: the answer that names a session comes before anything is told of it, and what is told of it comes.
func TestNothingOfASessionIsToldBeforeTheAnswerThatNamesIt(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		for range 100 {
			id := c.fresh() // fails where something came before
			c.until("the commands", func(h *heard) bool {
				return h.Params.SessionID == id && h.Params.Update.SessionUpdate == "available_commands_update"
			})
		}
	})
}
