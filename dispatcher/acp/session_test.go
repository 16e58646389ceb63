package acp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

func TestLoadTellsTheWholeLogBeforeItsAnswerAsItWasToldLive(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		ask := c.ask("session/prompt", prompting(id, "edit"))
		req, live := c.permission()
		c.choose(req, "allow_once")
		_, more := c.answer(ask)
		live = append(live, more...)
		for range 2 { // it may be repeated
			_, replay := c.call("session/load", loading(id))
			if got, want := said(replay, "agent_message_chunk"), said(live, "agent_message_chunk"); got != want {
				t.Errorf("replayed %q, told %q", got, want)
			}
			if said(replay, "user_message_chunk") != "edit" || calls(replay)["c1"] != "completed" {
				t.Errorf("user %q, calls %v", said(replay, "user_message_chunk"), calls(replay))
			}
			c.until("commands", func(h *heard) bool { return h.Params.Update.SessionUpdate == "available_commands_update" })
		}
		c.refused(-32002, "session/load", loading("no-such"))
		c.refused(-32602, "session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":"/elsewhere","mcpServers":[]}`, id))
	})
}

func TestAnInterruptedTurnIsShownAsItIsAndClosedByTheNextPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peers.NewWorld()
		p := launch(t, w, "i1", touching)
		c := p.start(`{}`)
		id := c.fresh()
		c.ask("session/prompt", prompting(id, "stay"))
		c.until("the call runs", func(h *heard) bool { return h.Params.Update.Status == "in_progress" })
		p.kill()

		p = launch(t, w, "i2", touching)
		c = p.start(`{}`)
		answer, replay := c.call("session/load", loading(id))
		if calls(replay)["s1"] != "failed" || !strings.Contains(answer.raw, `"rind/turn":{"status":"interrupted"`) {
			t.Errorf("calls %v, %s", calls(replay), answer.raw)
		}
		done, told := c.call("session/prompt", prompting(id, "next"))
		if stopOf(done) != "end_turn" || said(told, "agent_message_chunk") != "The next." || !strings.Contains(said(told, "agent_thought_chunk"), "Turn failed") {
			t.Errorf("%s\n%s", done.raw, c.heardSince(0))
		}
		p.end()
	})
}

func TestResumeWithACursorTellsWhatIsMissingBehindItsAnswer(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		first, _ := c.call("session/prompt", prompting(id, "next"))
		var r struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
		_ = json.Unmarshal(first.Result, &r)
		cursor := string(r.Meta["rind/cursor"])
		c.call("session/prompt", prompting(id, "long"))
		_, before := c.call("session/resume", strings.Replace(loading(id), `"mcpServers"`, `"_meta":{"rind/afterCursor":`+cursor+`},"mcpServers"`, 1))
		if got := said(before, "agent_message_chunk"); got != "" {
			t.Errorf("history before the answer: %q", got)
		}
		_, after := c.call("session/set_mode", fmt.Sprintf(`{"sessionId":%q,"modeId":"read"}`, id))
		if said(after, "user_message_chunk") != "long" || said(after, "agent_message_chunk") != "one two three four five six seven" {
			t.Errorf("told %q and %q", said(after, "user_message_chunk"), said(after, "agent_message_chunk"))
		}
		_, none := c.call("session/resume", loading(id))
		if said(none, "agent_message_chunk") != "" {
			t.Errorf("resume told history")
		}
	})
}

func TestAModeIsSetOnceAndToldOnTheOtherSurface(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		for _, used := range []bool{false, true} { // a session that is not stored yet, and one that is
			if used {
				c.call("session/prompt", prompting(id, "next"))
			}
			kinds := func(lines []*heard) string {
				var out []string
				for _, h := range lines {
					if k := h.Params.Update.SessionUpdate; strings.HasSuffix(k, "mode_update") || strings.HasSuffix(k, "option_update") {
						out = append(out, k)
					}
				}
				return strings.Join(out, " ")
			}
			_, told := c.call("session/set_mode", fmt.Sprintf(`{"sessionId":%q,"modeId":"edit"}`, id))
			if got := kinds(told); got != "config_option_update" {
				t.Errorf("used %v: set_mode told %q", used, got)
			}
			h, told := c.call("session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":"mode","value":"full"}`, id))
			if got := kinds(told); got != "current_mode_update" || !strings.Contains(string(h.Result), `"currentValue":"full"`) {
				t.Errorf("used %v: set_config_option told %q, %s", used, got, h.raw)
			}
			h, told = c.call("session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":"model","value":"play/m-2"}`, id))
			if got := kinds(told); got != "" || !strings.Contains(string(h.Result), `"currentValue":"play/m-2"`) {
				t.Errorf("used %v: model told %q, %s", used, got, h.raw)
			}
			c.call("session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":"model","value":"play/m-1"}`, id))
			c.call("session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":"effort","value":"high"}`, id))
		}
		c.refused(-32602, "session/set_mode", fmt.Sprintf(`{"sessionId":%q,"modeId":"x"}`, id))
		c.refused(-32602, "session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":"x","value":"y"}`, id))
		c.refused(-32602, "session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":"model","value":"play/none"}`, id))
	})
}

func TestCloseAnswersTheOpenPromptFirstAndLetsGo(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		ask := c.ask("session/prompt", prompting(id, "long"))
		c.until("first chunk", func(h *heard) bool { return h.Params.Update.SessionUpdate == "agent_message_chunk" })
		closing := c.ask("session/close", named(id))
		if h, _ := c.answer(ask); stopOf(h) != "cancelled" {
			t.Errorf("prompt: %s", h.raw)
		}
		if h, _ := c.answer(closing); h.Error != nil || string(h.Result) != "{}" {
			t.Errorf("close: %s", h.raw)
		}
		c.refused(-32002, "session/prompt", prompting(id, "next"))
		c.refused(-32002, "session/close", named(id))
		c.call("session/load", loading(id))
		if h, _ := c.call("session/prompt", prompting(id, "next")); stopOf(h) != "end_turn" {
			t.Errorf("after load: %s", h.raw)
		}
	})
}

func TestListShowsUsedSessionsAndDeleteMayBeRepeated(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		unused, used := c.fresh(), c.fresh()
		c.call("session/prompt", prompting(used, "next"))
		h, _ := c.call("session/list", `{}`)
		if !strings.Contains(h.raw, used) || strings.Contains(h.raw, unused) || !strings.Contains(h.raw, `"cwd":"/w"`) {
			t.Errorf("list: %s", h.raw)
		}
		c.refused(-32602, "session/list", `{"cursor":"%%"}`)
		c.refused(-32602, "session/list", `{"cwd":"w"}`)
		for range 2 {
			c.call("session/delete", named(used))
		}
		c.call("session/delete", named("never"))
		if h, _ := c.call("session/list", `{}`); strings.Contains(h.raw, used) {
			t.Errorf("still listed: %s", h.raw)
		}
		c.refused(-32002, "session/prompt", prompting(used, "next"))
	})
}

func TestTwoConnectionsShareASessionAndTheFirstAnswerWins(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, p *process, a *client) {
		id := a.fresh()
		a.call("session/prompt", prompting(id, "next"))
		b := p.start(`{}`)
		b.call("session/load", loading(id))
		ask := a.ask("session/prompt", prompting(id, "edit"))
		mine, _ := a.permission()
		theirs, told := b.permission()
		if said(told, "user_message_chunk") != "edit" {
			t.Errorf("the other connection was told %q", said(told, "user_message_chunk"))
		}
		b.tell("session/cancel", named(id)) // does not touch the other's prompt
		b.choose(theirs, "allow_once")
		h, after := a.answer(ask)
		withdrawn := false
		for _, l := range after {
			withdrawn = withdrawn || l.Method == "$/cancel_request" && string(l.Params.RequestID) == string(mine.ID)
		}
		if stopOf(h) != "end_turn" || !withdrawn || p.touched.Load() != 1 {
			t.Errorf("%s, withdrawn %v, touched %d", h.raw, withdrawn, p.touched.Load())
		}
		a.choose(mine, "reject_once") // too late
		a.call("session/list", `{}`)
	})
}

func TestAKeyDoesTheWorkOnce(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		keyed := func(text string) string {
			return strings.Replace(prompting(id, text), `"sessionId"`, `"_meta":{"rind/idempotencyKey":"k1"},"sessionId"`, 1)
		}
		first, second := c.ask("session/prompt", keyed("long")), c.ask("session/prompt", keyed("long"))
		for _, ask := range []string{first, second} {
			if h, _ := c.answer(ask); stopOf(h) != "end_turn" {
				t.Errorf("%s", h.raw)
			}
		}
		h, told := c.call("session/prompt", keyed("long"))
		if !strings.Contains(h.raw, `"rind/replayed":true`) || said(told, "agent_message_chunk") != "" {
			t.Errorf("%s told %q", h.raw, said(told, "agent_message_chunk"))
		}
		c.refused(-32051, "session/prompt", keyed("next"))
	})
}

func TestReplayPagesJoinToTheFactsOfTheSession(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		ask := c.ask("session/prompt", prompting(id, "edit"))
		req, _ := c.permission()
		c.choose(req, "allow_once")
		c.answer(ask)
		_, whole := c.call("session/load", loading(id))
		want := said(whole, "agent_message_chunk")
		for _, limit := range []int{1, 3, 1000} {
			got, cursor := "", ""
			for n := 0; n < 100; n++ {
				params := fmt.Sprintf(`{"sessionId":%q,"limit":%d%s}`, id, limit, cursor)
				h, _ := c.call("_rind/session/replay", params)
				var page struct {
					Updates []struct{ Update update }
					Cursor  string
					HasMore bool
				}
				if err := json.Unmarshal(h.Result, &page); err != nil {
					t.Fatal(err)
				}
				for _, u := range page.Updates {
					if u.Update.SessionUpdate == "agent_message_chunk" {
						got += u.Update.text()
					}
				}
				cursor = fmt.Sprintf(`,"afterCursor":%q`, page.Cursor)
				if !page.HasMore {
					break
				}
			}
			if got != want {
				t.Errorf("limit %d: %q, want %q", limit, got, want)
			}
		}
		c.refused(-32602, "_rind/session/replay", fmt.Sprintf(`{"sessionId":%q,"afterCursor":"99999"}`, id))
		c.refused(-32602, "_rind/session/replay", fmt.Sprintf(`{"sessionId":%q,"afterCursor":"x"}`, id))
	})
}

// replayPage is an answer to _rind/session/replay.
type replayPage struct {
	Updates []struct {
		Update        update
		ProviderEvent json.RawMessage
	}
	Cursor, Head string
	HasMore      bool
}

// replayPages reads a session from its beginning, page by page.
func (c *client) replayPages(id, more string) (pages []replayPage, sizes []int) {
	c.T.Helper()
	cursor := ""
	for range 100 {
		h, _ := c.call("_rind/session/replay", fmt.Sprintf(`{"sessionId":%q%s%s}`, id, more, cursor))
		var page replayPage
		if err := json.Unmarshal(h.Result, &page); err != nil {
			c.T.Fatal(err)
		}
		pages, sizes = append(pages, page), append(sizes, len(h.raw))
		if !page.HasMore {
			return pages, sizes
		}
		cursor = fmt.Sprintf(`,"afterCursor":%q`, page.Cursor)
	}
	c.T.Fatal("the pages do not end")
	return nil, nil
}

// A page ends before 4 MiB; only a fact that is longer by itself is told whole, on a page of its own.
func TestAPageOfAReplayEndsAtItsBytes(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		want := ""
		for _, size := range []int{5 << 19, 5 << 19, 9 << 19} {
			text := "next " + strings.Repeat("x", size)
			want += text
			c.answer(c.ask("session/prompt", prompting(id, text))) // however its turn ends: the words are in the log
		}
		pages, sizes := c.replayPages(id, "")
		got, long := "", 0
		for i, page := range pages {
			for _, u := range page.Updates {
				if u.Update.SessionUpdate == "user_message_chunk" {
					got += u.Update.text()
				}
			}
			if sizes[i] > 4<<20+64<<10 {
				long++
			}
		}
		if got != want || long != 1 || len(pages) < 3 {
			t.Errorf("%d bytes of %d on pages of %d", len(got), len(want), sizes)
		}
	})
}

// Wherever a page ends, a change of a file is told with the result of its call.
func TestWhatAHostedAgentSaidBesideIsReplayedWhereItIsAskedForAndAPageSplitsNoChangeFromItsResult(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, p *process, c *client) {
		id := c.fresh()
		ask := c.ask("session/prompt", prompting(id, "edit"))
		req, _ := c.permission()
		c.choose(req, "allow_once")
		c.answer(ask)
		event := &protocol.ProviderEvent{}
		event.More.Data = json.RawMessage(`{"provider":"theirs","method":"session/update","params":{"big":12345678901234567890,"sessionUpdate":"from_the_future"}}`)
		p.All.Outside(session.SessionID(id), event)
		synctest.Wait()
		c.call("session/prompt", prompting(id, "next"))
		for more, want := range map[string]int{"": 0, `,"hosted":false`: 0, `,"hosted":true`: 1, `,"hosted":true,"limit":1`: 1, `,"limit":1`: 0} {
			pages, _ := c.replayPages(id, more)
			events, diffs, said := 0, 0, ""
			for _, page := range pages {
				for _, u := range page.Updates {
					if u.ProviderEvent != nil {
						events++
						if string(u.ProviderEvent) != string(event.More.Data) || said != "I will edit.All done." {
							t.Errorf("%s: %s behind %q", more, u.ProviderEvent, said)
						}
					}
					if u.Update.SessionUpdate == "agent_message_chunk" {
						said += u.Update.text()
					}
					if u.Update.Status == "completed" && strings.Contains(string(u.Update.Content), `"type":"diff"`) {
						diffs++
					}
				}
			}
			if events != want || diffs != 1 || said != "I will edit.All done.The next." {
				t.Errorf("%s: %d events, %d diffs, %q", more, events, diffs, said)
			}
		}
		c.refused(-32602, "_rind/session/replay", fmt.Sprintf(`{"sessionId":%q,"hosted":"yes"}`, id))
	})
}

func TestACommandRunsAsATurnThatSaysWhatItDid(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		h, told := c.call("session/prompt", prompting(id, "/status"))
		if stopOf(h) != "end_turn" || !strings.Contains(said(told, "agent_message_chunk"), "play/m-1") {
			t.Errorf("%s said %q", h.raw, said(told, "agent_message_chunk"))
		}
		h, told = c.call("session/prompt", prompting(id, "/rename a name"))
		named := false
		for _, l := range told {
			named = named || l.Params.Update.SessionUpdate == "session_info_update" && strings.Contains(l.raw, `"title":"a name"`)
		}
		if !named || stopOf(h) != "end_turn" {
			t.Errorf("rename told %s", h.raw)
		}
	})
}

func TestRequestsAreCheckedInTheOrderOfTheContract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "i1", touching)
		c := p.connect()
		c.refused(-32600, "session/new", `{}`)
		c.refused(-32602, "initialize", `{"protocolVersion":"1"}`)
		h, _ := c.call("initialize", `{"protocolVersion":99}`)
		if !strings.Contains(h.raw, `"protocolVersion":1`) {
			t.Errorf("initialize: %s", h.raw)
		}
		c.call("authenticate", `{"methodId":"local"}`)
		c.refused(-32602, "authenticate", `{"methodId":"login"}`)
		c.refused(-32601, "session/fork", `{}`)
		c.refused(-32601, "_other/thing", `{}`)
		c.tell("_other/thing", `{}`)
		c.refused(-32602, "session/new", `{"mcpServers":[]}`)
		c.refused(-32602, "session/new", `{"cwd":"w","mcpServers":[]}`)
		c.refused(-32602, "session/new", `{"cwd":"/w","mcpServers":[{"type":"sse","name":"n","url":"u","headers":[]}]}`)
		c.refused(-32602, "session/new", `{"cwd":"/w","mcpServers":[{"command":"x"}]}`)
		id := c.fresh()
		c.refused(-32602, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"audio","data":"","mimeType":"audio/wav"}]}`, id))
		c.refused(-32602, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}`, id))
		for _, meta := range []string{`{"rind/idempotencyKey":""}`, `{"rind/idempotencyKey":7}`, fmt.Sprintf(`{"rind/idempotencyKey":%q}`, strings.Repeat("é", 201))} {
			c.refused(-32602, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"next"}],"_meta":%s}`, id, meta))
		}
		for _, method := range []string{"session/load", "session/resume"} {
			for _, cursor := range []string{"", "x", "-1", "01", "99999"} {
				c.refused(-32602, method, after(loading(id), cursor))
			}
		}
		c.refused(-32602, "_rind/session/steer", `{"sessionId":"none","prompt":7}`) // params, then session
		c.refused(-32602, "session/prompt", `{"sessionId":"none","prompt":7}`)
		c.refused(-32002, "session/prompt", prompting("none", "x"))
		c.refused(-32602, "session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":"mode","type":"boolean","value":true}`, id))
		c.call("session/cancel", named(id)) // a notification with an id is done and answered
		c.call("session/cancel", named("none"))
		c.refused(-32052, "_rind/session/steer", prompting(id, "x"))
		c.refused(-32052, "_rind/session/continue", named(id))
		c.refused(-32600, "initialize", `{"protocolVersion":1}`)
		p.end()
	})
}
