package acp_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/session"
)

const touching = `{"turns":[{"match":"edit","steps":[{"text":"I will edit.","chunk":4,"delayMs":30},{"call":{"id":"c1","name":"touch","arguments":{}}},{"finish":"tool_calls"},{"text":"All done."}]},
{"match":"long","steps":[{"text":"one two three four five six seven","chunk":4,"delayMs":100}]},{"match":"next","steps":[{"text":"The next."}]},
{"match":"colour","steps":[{"call":{"id":"q1","name":"ask_user_question","arguments":{}}},{"finish":"tool_calls"},{"text":"Thanks."}]},
{"match":"stay","steps":[{"call":{"id":"s1","name":"stay","arguments":{}}},{"finish":"tool_calls"},{"text":"Never."}]},
{"match":"where","steps":[{"call":{"id":"w1","name":"where","arguments":{}}},{"finish":"tool_calls"},{"text":"There."}]},
{"match":"fail","steps":[{"text":"Half"},{"fail":{"fault":"rejected","status":400,"message":"no such thing"}}]},
{"match":"cut","steps":[{"text":"Too lo"},{"finish":"length"}]}]}`

// bubble runs f with one process and one client.
func bubble(t *testing.T, caps string, f func(t *testing.T, p *process, c *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "i1", touching)
		f(t, p, p.start(caps))
		p.end()
	})
}

func TestAPromptIsAnsweredBehindEverythingOfItsTurn(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, p *process, c *client) {
		id := c.fresh()
		ask := c.ask("session/prompt", prompting(id, "edit"))
		req, before := c.permission()
		if req.Params.ToolCall.ToolCallID != "c1" || calls(before)["c1"] != "pending" {
			t.Errorf("asked for %s before it was announced: %v", req.raw, calls(before))
		}
		if got := said(before, "agent_message_chunk"); got != "I will edit." {
			t.Errorf("said %q", got)
		}
		if got := said(before, "user_message_chunk"); got != "" {
			t.Errorf("the client was told its own words: %q", got)
		}
		c.choose(req, "allow_once")
		done, after := c.answer(ask)
		if stopOf(done) != "end_turn" || calls(after)["c1"] != "completed" || said(after, "agent_message_chunk") != "All done." || p.touched.Load() != 1 {
			t.Errorf("%s; calls %v, touched %d", done.raw, calls(after), p.touched.Load())
		}
		diff := false
		for _, h := range after {
			diff = diff || strings.Contains(h.raw, `{"type":"diff","path":"/w/a.txt","oldText":"old","newText":"new"}`)
		}
		if !diff || !strings.Contains(done.raw, `"rind/cursor"`) {
			t.Errorf("no diff or no cursor in\n%s", c.heardSince(0))
		}
	})
}

func TestARejectedCallFailsAndTheTurnGoesOn(t *testing.T) {
	for name, reply := range map[string]string{
		"rejected":       `"result":{"outcome":{"outcome":"selected","optionId":"reject_once"}}`,
		"unknown option": `"result":{"outcome":{"outcome":"selected","optionId":"nonsense"}}`,
		"malformed":      `"result":7`,
		"an error":       `"error":{"code":-32603,"message":"no dialog"}`,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, `{}`, func(t *testing.T, p *process, c *client) {
				id := c.fresh()
				ask := c.ask("session/prompt", prompting(id, "edit"))
				req, _ := c.permission()
				c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, req.ID, reply))
				done, after := c.answer(ask)
				if stopOf(done) != "end_turn" || calls(after)["c1"] != "failed" || p.touched.Load() != 0 {
					t.Errorf("%s; calls %v, touched %d", done.raw, calls(after), p.touched.Load())
				}
			})
		})
	}
}

func TestCancelEndsEveryPromptReadBeforeItAndNoneAfter(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		c.tell("session/cancel", named(id)) // idle: nothing
		first, second := c.ask("session/prompt", prompting(id, "long")), c.ask("session/prompt", prompting(id, "edit"))
		c.until("first chunk", func(h *heard) bool { return h.Params.Update.SessionUpdate == "agent_message_chunk" })
		c.tell("session/cancel", named(id))
		third := c.ask("session/prompt", prompting(id, "next"))
		stops := map[string]string{}
		for len(stops) < 3 {
			h, _ := c.until("answers", func(h *heard) bool { return h.Method == "" })
			stops[string(h.ID)] = stopOf(h)
		}
		if stops[first] != "cancelled" || stops[second] != "cancelled" || stops[third] != "end_turn" {
			t.Errorf("stop reasons %v", stops)
		}
	})
}

func TestCancelSettlesWhatIsAskedAndClosesCalls(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, p *process, c *client) {
		id := c.fresh()
		ask := c.ask("session/prompt", prompting(id, "edit"))
		req, _ := c.permission()
		c.tell("session/cancel", named(id))
		done, after := c.answer(ask)
		withdrawn := false
		for _, h := range after {
			withdrawn = withdrawn || h.Method == "$/cancel_request" && string(h.Params.RequestID) == string(req.ID)
		}
		if stopOf(done) != "cancelled" || calls(after)["c1"] != "failed" || !withdrawn || p.touched.Load() != 0 {
			t.Errorf("%s; calls %v, withdrawn %v", done.raw, calls(after), withdrawn)
		}
		c.choose(req, "allow_once") // too late
		if h, _ := c.call("session/prompt", prompting(id, "next")); stopOf(h) != "end_turn" {
			t.Errorf("next: %s", h.raw)
		}
	})
}

func TestACancelRequestEndsOnePromptByItsExactID(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		ask := c.ask("session/prompt", prompting(id, "long"))
		c.until("first chunk", func(h *heard) bool { return h.Params.Update.SessionUpdate == "agent_message_chunk" })
		c.tell("$/cancel_request", fmt.Sprintf(`{"requestId":%q}`, ask)) // a string is another id
		c.until("another chunk", func(h *heard) bool { return h.Params.Update.SessionUpdate == "agent_message_chunk" })
		c.tell("$/cancel_request", `{"requestId":`+ask+`}`)
		if h, _ := c.answer(ask); stopOf(h) != "cancelled" {
			t.Errorf("answered %s", h.raw)
		}
	})
}

func TestAFailedTurnIsAnErrorBehindItsLastUpdateAndATooLongOneIsNot(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		h, before := c.answer(c.ask("session/prompt", prompting(id, "fail")))
		if h.Error == nil || h.Error.Code != -32603 || said(before, "agent_message_chunk") != "Half" || said(before, "agent_thought_chunk") != "" {
			t.Errorf("%s behind %q", h.raw, said(before, "agent_message_chunk"))
		}
		if h, _ := c.answer(c.ask("session/prompt", prompting(id, "cut"))); stopOf(h) != "max_tokens" {
			t.Errorf("cut: %s", h.raw)
		}
	})
}

func TestAQuestionIsAFormWhereTheClientHasFormsElseAChoice(t *testing.T) {
	bubble(t, `{"elicitation":{"form":{}}}`, func(t *testing.T, _ *process, c *client) {
		ask := c.ask("session/prompt", prompting(c.fresh(), "colour"))
		form, _ := c.until("form", func(h *heard) bool { return h.Method == "elicitation/create" })
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"choice":"blue"}}}`, form.ID))
		if h, after := c.answer(ask); stopOf(h) != "end_turn" || !strings.Contains(fmt.Sprint(after[len(after)-1].raw, c.heardSince(0)), `blue`) || calls(after)["q1"] != "completed" {
			t.Errorf("%s", h.raw)
		}
	})
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		ask := c.ask("session/prompt", prompting(c.fresh(), "colour"))
		req, _ := c.permission()
		c.choose(req, "red")
		if h, after := c.answer(ask); stopOf(h) != "end_turn" || calls(after)["q1"] != "completed" {
			t.Errorf("%s %v", h.raw, calls(after))
		}
	})
}

func TestTheEndOfTheInputAnswersPromptsAndLeavesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peers.NewWorld()
		p := launch(t, w, "i1", touching)
		c := p.start(`{}`)
		long, waits := c.fresh(), c.fresh()
		a, b := c.ask("session/prompt", prompting(long, "long")), c.ask("session/prompt", prompting(waits, "edit"))
		first, _ := c.permission()
		p.end()
		stops := map[string]*heard{}
		for len(stops) < 2 {
			h, _ := c.until("answers", func(h *heard) bool { return h.Method == "" })
			stops[string(h.ID)] = h
		}
		if stopOf(stops[a]) != "cancelled" || stopOf(stops[b]) != "cancelled" || !strings.Contains(stops[b].raw, `"status":"waiting"`) {
			t.Errorf("answered\n%s\n%s", stops[a].raw, stops[b].raw)
		}

		p = launch(t, w, "i2", touching)
		c = p.start(`{}`)
		answer, _ := c.call("session/load", loading(waits))
		if !strings.Contains(answer.raw, `"rind/turn":{"status":"waiting"`) {
			t.Errorf("load: %s", answer.raw)
		}
		again, _ := c.permission()
		if again.Params.ToolCall.ToolCallID != first.Params.ToolCall.ToolCallID {
			t.Errorf("asked again for %s", again.raw)
		}
		c.choose(again, "allow_once")
		_, rest := c.until("the end of the call", func(h *heard) bool { return h.Params.Update.text() == "All done." })
		if calls(rest)["c1"] != "completed" || p.touched.Load() != 1 {
			t.Errorf("calls %v, touched %d", calls(rest), p.touched.Load())
		}
		p.end()
	})
}

// A dialog closed without an answer ends its turn where session/cancel of the connection would, and never a prompt behind that turn: a client that
// stops and sends the next prompt at once may close the dialog last.
func TestADialogThatIsClosedEndsNoTurnButItsOwn(t *testing.T) {
	closed := func(c *client, h *heard) { c.result(h, `{"outcome":{"outcome":"cancelled"}}`) }
	bubble(t, `{}`, func(t *testing.T, p *process, c *client) {
		id := c.fresh()
		ask, behind := c.ask("session/prompt", prompting(id, "edit")), c.ask("session/prompt", prompting(id, "next"))
		req, _ := c.permission()
		closed(c, req)
		if h, told := c.answer(ask); stopOf(h) != "cancelled" || calls(told)["c1"] != "failed" || p.touched.Load() != 0 {
			t.Errorf("its own: %s, %v", h.raw, calls(told))
		}
		if h, told := c.answer(behind); stopOf(h) != "end_turn" || said(told, "agent_message_chunk") != "The next." {
			t.Errorf("the one behind: %s", h.raw)
		}
	})
	bubble(t, `{}`, func(t *testing.T, p *process, a *client) {
		id := a.fresh()
		a.call("session/prompt", prompting(id, "next"))
		b := p.start(`{}`)
		b.call("session/load", loading(id))
		ask := a.ask("session/prompt", prompting(id, "edit"))
		mine, _ := a.permission()
		theirs, _ := b.permission()
		behind := b.ask("session/prompt", prompting(id, "next"))
		synctest.Wait()
		closed(b, theirs)
		synctest.Wait()
		a.choose(mine, "allow_once")
		if h, _ := a.answer(ask); stopOf(h) != "end_turn" || p.touched.Load() != 1 {
			t.Errorf("the other's: %s", h.raw)
		}
		if h, _ := b.answer(behind); stopOf(h) != "end_turn" {
			t.Errorf("its own, behind it: %s", h.raw)
		}
	})
}

const openly = `{"turns":[{"match":"open","steps":[{"call":{"id":"q1","name":"ask_open","arguments":{}}},{"finish":"tool_calls"},{"text":"Said on."}]},{"match":"green","steps":[{"text":"Green it is."}]}]}`

// A question without choices is a message to a client without forms: the turn ends with it, and the next prompt is the answer. Where somebody else
// can answer, it stays theirs.
func TestAnOpenQuestionToAClientWithoutFormsIsAnsweredByTheNextPrompt(t *testing.T) {
	const forms = `{"elicitation":{"form":{}}}`
	answered := func(c *client, id string) {
		c.T.Helper()
		if h, told := c.call("session/prompt", prompting(id, "green")); stopOf(h) != "end_turn" || said(told, "agent_message_chunk") != "Green it is." {
			c.T.Errorf("the answer: %s, told %q", h.raw, said(told, "agent_message_chunk"))
		}
	}
	t.Run("its own", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := launch(t, peers.NewWorld(), "i1", openly)
			c := p.start(`{}`)
			id := c.fresh()
			h, told := c.call("session/prompt", prompting(id, "open"))
			if stopOf(h) != "end_turn" || said(told, "agent_message_chunk") != "Which colour?\n" || calls(told)["q1"] != "completed" {
				t.Errorf("%s, told %q, calls %v", h.raw, said(told, "agent_message_chunk"), calls(told))
			}
			answered(c, id)
			p.end()
		})
	})
	t.Run("somebody else's", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := launch(t, peers.NewWorld(), "i1", openly)
			a, b := p.start(forms), p.start(`{}`)
			id := a.fresh()
			a.call("session/prompt", prompting(id, "green"))
			b.call("session/load", loading(id))
			ask := a.ask("session/prompt", prompting(id, "open"))
			form := a.asked("elicitation/create")
			synctest.Wait()
			a.result(form, `{"action":"accept","content":{"text":"of my own"}}`)
			if h, told := a.answer(ask); stopOf(h) != "end_turn" || said(told, "agent_message_chunk") != "Said on." || !strings.Contains(raws(told), "of my own") {
				t.Errorf("%s\n%s", h.raw, raws(told))
			}
			p.end()
		})
	})
	t.Run("of a process that is gone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := peers.NewWorld()
			p := launch(t, w, "i1", openly)
			c := p.start(forms)
			id := c.fresh()
			c.ask("session/prompt", prompting(id, "open"))
			c.asked("elicitation/create")
			p.kill()
			p = launch(t, w, "i2", openly)
			c = p.start(`{}`)
			if h, _ := c.call("session/load", loading(id)); !strings.Contains(h.raw, `"rind/turn":{"status":"waiting"`) {
				t.Errorf("load: %s", h.raw)
			}
			_, told := c.until("the end of the call", func(h *heard) bool { return h.Params.Update.Status == "completed" })
			if said(told, "agent_message_chunk") != "Which colour?\n" {
				t.Errorf("told %s", raws(told))
			}
			answered(c, id)
			p.end()
		})
	})
}

// docs/protocol/portable-2026-09-02.md section 12: a prompt is an execution of the agent. Its input is the texts, line by line; other parts are named.
func TestAPromptIsAnExecutionWhoseInputIsItsTexts(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, p *process, c *client) {
		id := c.fresh()
		c.call("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"next"},{"type":"resource_link","uri":"file:///w/f.txt","name":"f.txt"},{"type":"text","text":"and\nmore"},`+
			`{"type":"resource","resource":{"uri":"file:///w/g.md","text":"embedded"}}]}`, id))
		turns, err := p.Store.Turns(t.Context(), session.TurnQuery{Limit: 10})
		if err != nil || len(turns) != 1 {
			t.Fatalf("%d turns, %v", len(turns), err)
		}
		run, err := executions.New(executions.Config{Sessions: p.All}).Find(t.Context(), "exec_"+string(turns[0].Turn))
		if err != nil {
			t.Fatal(err)
		}
		x, err := run.Read(t.Context())
		if err != nil || x.Input != "next\nand\nmore" || x.ProviderID != "agent" || string(x.EffectiveConfig) != "{}" || len(x.Capabilities) != 0 || x.State != "succeeded" || *x.FinalOutput != "The next." {
			t.Errorf("%+v, %v", x, err)
		}
		part, err := run.Part(t.Context(), 0, 3, func([]byte) bool { return true })
		if err != nil || len(part.Events) != 3 || part.Events[0].Type != "run.queued" || part.Events[2].Type != "run.started" ||
			string(part.Events[1].Data) != `{"provider":"agent","method":"rind.prompt_parts","params":{"parts":[{"kind":"resource_link","name":"f.txt"},{"kind":"resource"}]}}` {
			t.Errorf("%+v, %v", part.Events, err)
		}
	})
}

// A turn whose answer the provider filtered is a refusal, and not in the context of what follows: it would be refused, too. The log keeps it.
func TestARefusedTurnIsLeftOutOfTheContextOfTheNext(t *testing.T) {
	const play = `{"turns":[{"match":"hello","steps":[{"text":"Hello."}]},{"match":"bad","steps":[{"call":{"name":"where","arguments":{}}},{"finish":"tool_calls"},{"text":"No."},{"finish":"content_filter"}]},
{"match":"check","steps":[{"expect":{"messages":3}},{"text":"Fine."}]},{"match":"more","steps":[{"expect":{"messages":5}},{"text":"Fine."}]}]}`
	synctest.Test(t, func(t *testing.T) {
		w := peers.NewWorld()
		p := launch(t, w, "i1", play)
		c := p.start(`{}`)
		id := c.fresh()
		for _, asked := range []struct{ words, stop string }{{"hello", "end_turn"}, {"bad", "refusal"}, {"check", "end_turn"}} {
			if h, _ := c.answer(c.ask("session/prompt", prompting(id, asked.words))); stopOf(h) != asked.stop {
				t.Errorf("%s: %s", asked.words, h.raw)
			}
		}
		p.end()
		p = launch(t, w, "i2", play)
		c = p.start(`{}`)
		if _, replay := c.call("session/load", loading(id)); said(replay, "user_message_chunk") != "hellobadcheck" {
			t.Errorf("the log tells %q", said(replay, "user_message_chunk"))
		}
		if h, _ := c.answer(c.ask("session/prompt", prompting(id, "more"))); stopOf(h) != "end_turn" {
			t.Errorf("in the next process: %s", h.raw)
		}
		p.end()
	})
}
