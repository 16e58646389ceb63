package acpagent

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// TestEveryUpdateOfAnAgentIsRecordedAsTheContractSays is the table of docs/protocol/acp.md section 5.2, a row for each kind of update.
func TestEveryUpdateOfAnAgentIsRecordedAsTheContractSays(t *testing.T) {
	const text = `"content":{"type":"text","text":"x"}`
	rows := []struct{ name, words, want string }{
		{"a message", `update={"sessionUpdate":"agent_message_chunk",` + text + `}`, "assistant_delta assistant_message_completed"},
		{"a thought", `update={"sessionUpdate":"agent_thought_chunk",` + text + `}`, "reasoning_delta reasoning_completed"},
		{"another message id", `update={"sessionUpdate":"agent_message_chunk","messageId":"1",` + text + `} update={"sessionUpdate":"agent_message_chunk","messageId":"2",` + text + `}`, "assistant_delta assistant_message_completed assistant_delta assistant_message_completed"},
		{"a call", `update={"sessionUpdate":"tool_call","toolCallId":"1","title":"T","status":"pending"}`, "tool_requested tool_result"},
		{"a call that runs and ends", `update={"sessionUpdate":"tool_call","toolCallId":"1","title":"T","status":"in_progress"} update={"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed"}`, "tool_requested tool_call_started tool_result"},
		{"an update without a call", `update={"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed"}`, "tool_requested tool_result"},
		{"a diff", `update={"sessionUpdate":"tool_call","toolCallId":"1","title":"T","status":"completed","content":[{"type":"diff","path":"/w/a","oldText":"a","newText":"b"}]}`, "tool_requested tool_call_started file_change tool_result"},
		{"a call that shows more", `update={"sessionUpdate":"tool_call","toolCallId":"1","title":"T","status":"in_progress"} update={"sessionUpdate":"tool_call_update","toolCallId":"1","content":[{"type":"content","content":{"type":"text","text":"x"}}]}`, "tool_requested tool_call_started tool_progress tool_result"},
		{"what comes behind a result", `tool update={"sessionUpdate":"tool_call_update","toolCallId":"c1","rawOutput":{"a":1}}`, "tool_requested tool_call_started file_change tool_result provider.event"},
		{"a plan", `update={"sessionUpdate":"plan","entries":[{"content":"one","priority":"high","status":"pending"}]}`, "plan_updated"},
		{"usage", `update={"sessionUpdate":"usage_update","used":5,"size":10}`, "token_stats_updated"},
		{"usage of an answer", "used", "token_stats_updated"},
		{"usage that cannot be read", `update={"sessionUpdate":"usage_update","used":5,"size":0}`, "provider.event"},
		{"an echo of the prompt", `update={"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"echo"}}`, ""},
		{"words of somebody else", `update={"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"\u0065lsewhere"}}`, "provider.event"},
		{"another model", "set=model:large", "session_settings_changed"},
		{"another effort", "set=effort:high", "session_settings_changed"},
		{"a mode that allows less", "set=mode:read", "session_settings_changed"},
		{"a mode that allows more", "set=mode:full", "provider.event"},
		{"a mode by its own update", `update={"sessionUpdate":"current_mode_update","currentModeId":"read"}`, "session_settings_changed"},
		{"a mode that is not ours", `update={"sessionUpdate":"current_mode_update","currentModeId":"plan"}`, "provider.event"},
		{"a setting that is not ours", "set=colour:blue", "provider.event"},
		{"settings as they are", "set=model:small", "provider.event"},
		{"commands", `update={"sessionUpdate":"available_commands_update","availableCommands":[]}`, "commands_changed"},
		{"a title", `update={"sessionUpdate":"session_info_update","title":"Named"}`, "session_renamed"},
		{"a compaction", `update={"sessionUpdate":"compaction_update","compactionId":"1","status":"completed"}`, "context_compacted"},
		{"a compaction as it goes", `update={"sessionUpdate":"compaction_update","compactionId":"1","status":"in_progress"} update={"sessionUpdate":"compaction_summary_chunk","compactionId":"1",` + text + `} update={"sessionUpdate":"compaction_update","compactionId":"1","status":"completed"}`, "notice context_compacted"},
		{"a compaction that fails", `update={"sessionUpdate":"compaction_update","compactionId":"1","status":"failed","error":"no"}`, "notice"},
		{"a compaction that is cancelled", `update={"sessionUpdate":"compaction_update","compactionId":"1","status":"cancelled"}`, "notice"},
		{"a compaction that ends twice", `update={"sessionUpdate":"compaction_update","compactionId":"1","status":"completed"} update={"sessionUpdate":"compaction_update","compactionId":"1","status":"completed"}`, "context_compacted provider.event"},
		{"a compaction in a status to come", `update={"sessionUpdate":"compaction_update","compactionId":"1","status":"_paused"}`, "provider.event"},
		{"a notice", `update={"sessionUpdate":"notice","severity":"warning","title":"Mind"}`, "notice"},
		{"a notice that says nothing", `update={"sessionUpdate":"notice","severity":"warning"}`, "provider.event"},
		{"a kind to come", `update={"sessionUpdate":"from_the_future","x":1}`, "provider.event"},
		{"no kind", `update={"x":1}`, "provider.event"},
		{"no update", `update=7`, "provider.event"},
		{"another session", "stranger", "provider.event"},
		{"an image", `update={"sessionUpdate":"agent_message_chunk","content":{"type":"image","mimeType":"image/png","data":""}}`, "provider.event assistant_delta assistant_message_completed"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			h := open(t, memory.New(), "options")
			s := h.draft("edit")
			if o := h.prompt(s, r.words); o.Outcome != session.OutcomeCompleted {
				t.Fatalf("%+v %+v", o, o.Fault)
			}
			const before, after = "session_created turn_accepted user_message turn_started provider_session", "turn_completed"
			got := strings.TrimSuffix(strings.TrimPrefix(h.kinds(s.ID), before), after)
			if strings.TrimSpace(got) != r.want {
				t.Errorf("recorded %q, want %q", got, r.want)
			}
			h.close()
		})
	}
}

func TestWhatAnAgentSetsItselfToHoldsForTheSession(t *testing.T) {
	h := open(t, memory.New(), "options")
	s := h.draft("edit")
	h.prompt(s, "set=model:large set=effort:high set=mode:full")
	h.until(s, "settings", func(v *session.View) bool {
		return v.Sel == session.Selection{Provider: "double", Model: "large", Effort: "high", Mode: "edit"}
	})
	if c := find[*protocol.SessionSettingsChanged](h, s.ID); len(c) != 2 || c[0].SelectionSource != "agent" || c[0].Applies != "now" {
		t.Errorf("%+v", c)
	}
	if o := h.prompt(s, "settings"); o.Answer != "map[effort:high mode:edit model:large]" { // the next prompt sets nothing back but the mode
		t.Errorf("%s", o.Answer)
	}
}

func TestASettingThatTheSessionChangedMeanwhileIsNotTakenBack(t *testing.T) {
	h := open(t, memory.New(), "options")
	s := h.draft("edit")
	ch := h.ask(s, "say=begun ask set=effort:high")
	a := h.action(s)
	large := "large"
	changed := make(chan error, 1)
	s.Change(session.Change{Model: &large}, func(_ session.Selection, _ string, err error) { changed <- err })
	if err := <-changed; err != nil {
		t.Fatal(err)
	}
	h.resolve(s, a.ID, "yes")
	h.await(ch)
	if o := h.prompt(s, "settings"); o.Answer != "map[effort:high mode:edit model:large]" {
		t.Errorf("%s", o.Answer)
	}
}

func TestACompactionOfAnAgentLeavesOurViewWhole(t *testing.T) {
	h := open(t, memory.New(), "options")
	s := h.draft("edit")
	h.prompt(s, "say=remember-this")
	h.prompt(s, `/compact update={"sessionUpdate":"compaction_update","compactionId":"1","status":"completed","summary":[{"type":"text","text":"short"}]}`)
	b := find[*protocol.ContextCompacted](h, s.ID)
	if len(b) != 1 || b[0].More.Provider != "double" || !strings.Contains(string(b[0].Record), `"reason":"manual"`) || !strings.Contains(string(b[0].Record), `"content":"short"`) {
		t.Fatalf("%+v", b)
	}
	h.prompt(s, "crash")
	if o := h.prompt(s, "first"); !strings.Contains(o.Answer, "remember-this") {
		t.Errorf("the summary for a new agent is %q", o.Answer)
	}
}

// An agent tells the whole cost of its session each time; what the session is said to cost is not the sum of that.
func TestTheCostAnAgentTellsIsThatOfItsSessionAndCountedOnce(t *testing.T) {
	cost := func(amount string) string {
		return `update={"sessionUpdate":"usage_update","used":5,"size":10,"cost":{"amount":` + amount + `,"currency":"USD"}}`
	}
	for _, modes := range []string{"resume", "load", "plain"} {
		store := memory.New()
		h := open(t, store, modes)
		s := h.draft("ask")
		total := func(h *house, s *session.Session, want float64) {
			t.Helper()
			_ = s.InspectNow(t.Context(), func(v *session.View) {
				if v.Cost != want {
					t.Errorf("%s: the session cost %v, want %v", modes, v.Cost, want)
				}
			})
		}
		h.prompt(s, cost("0.25")+" "+cost("0.25")+" "+cost("0.5"))
		h.prompt(s, cost("0.75"))
		total(h, s, 0.75)
		h.close()
		h = open(t, store, modes)
		s, err := h.all.Open(t.Context(), s.ID)
		if err != nil {
			t.Fatal(err)
		}
		if modes == "plain" { // a session of its own, which begins anew
			h.prompt(s, cost("0.25"))
		} else {
			h.prompt(s, cost("1"))
		}
		total(h, s, 1)
		h.close()
	}
}

// What an agent says of its session behind its answer is kept, and opens no turn.
func TestHowThingsStandIsKeptAlsoWhereNoTurnRuns(t *testing.T) {
	h := open(t, memory.New(), "options")
	s := h.draft("edit")
	h.prompt(s, "aside")
	put(t, filepath.Join(h.dir, "over"), "")
	const want = "turn_completed session_settings_changed commands_changed session_renamed notice provider.event"
	h.until(s, want, func(*session.View) bool { return strings.HasSuffix(h.kinds(s.ID), want) })
}

func TestAnAgentThatHasModesAndNoOptionForThemIsSetToTheModeOfTheSession(t *testing.T) {
	h := open(t, memory.New(), "modes")
	if o := h.prompt(h.draft("ask"), "settings"); !strings.Contains(o.Answer, "mode:ask") {
		t.Errorf("%s", o.Answer)
	}
}
