package dispatcher_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// The tests here stand for the twelve lines of docs/protocol/rind-v2.md section 10.1, in its order, and those of newer_client_test.go for the
// five of section 10.2. Line 1, how the program is started, is held by the scripts of cmd/rind.

// older runs f with a client of the older generation: no capabilities, no session ids, numbers as request ids.
func older(t *testing.T, script string, f func(t *testing.T, c *client, hello *line)) {
	t.Helper()
	olderWith(t, script, nil, f)
}

// olderWith is older with further tools.
func olderWith(t *testing.T, script string, more []session.Tool, f func(t *testing.T, c *client, hello *line)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := launchWith(t, peers.NewWorld(), "p", script, "", more...)
		defer p.end()
		c := p.connect(rindv2.Rind)
		f(t, c, c.call("initialize", `{}`))
		for _, l := range events(c.settle()) { // it drops any other envelope
			var e struct {
				Sequence   json.Number
				Durability string
				Session    *string `json:"session_id"`
				Turn       *string `json:"turn_id"`
				Event      struct {
					Type string
					ID   *string `json:"event_id"`
				}
			}
			if err := json.Unmarshal([]byte(l.raw), &e); err != nil || e.Session == nil || e.Turn == nil || e.Event.ID == nil || e.Event.Type == "" ||
				e.Durability != "durable" && e.Durability != "incremental" {
				t.Errorf("an older client drops %s (%v)", l.raw, err)
			}
			if _, err := e.Sequence.Int64(); err != nil {
				t.Errorf("sequence of %s: %v", l.raw, err)
			}
		}
		gapFree(t, c.Got())
	})
}

// fields are the members of a result.
func fields(t peers.T, l *line, names ...string) map[string]json.RawMessage {
	t.Helper()
	m, err := members(l.result)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if m[name] == nil {
			t.Errorf("%s is missing in %s", name, l.raw)
		}
	}
	return m
}

func TestOlderClientReadsWhatItShowsFromInitialize(t *testing.T) {
	older(t, `[{"text": "x"}]`, func(t *testing.T, c *client, hello *line) {
		m := fields(t, hello, "model", "session_id", "version", "resume_preview", "goal", "commands")
		if string(m["protocol_version"]) != `"2"` || len(listOf(t, hello, "capabilities")) == 0 || len(listOf(t, hello, "methods")) == 0 {
			t.Errorf("got %s", hello.raw)
		}
	})
}

// Lines 3 and 9.
func TestOlderClientListsBackgroundProcessesAndReadsTheirOutputTwice(t *testing.T) {
	jobs := &testkit.Jobs{Kind: "think", Notify: protocol.NotifyManual, Started: make(chan *testkit.Job, 1)}
	olderWith(t, `[{"call": {"name": "bg", "arguments": {"command": "make"}}}, {"finish": "tool_calls"}, {"text": "x"}]`, []session.Tool{jobs}, func(t *testing.T, c *client, _ *line) {
		if got := string(c.call("rind/background/list", `{}`).result); got != `{"tasks":[]}` {
			t.Errorf("before any: %s", got)
		}
		c.call("session/prompt", `{"input":"start it"}`)
		var asked, answered struct {
			Preview string `json:"args_preview"`
			Result  string
		}
		for _, l := range c.settle() {
			if l.has("tool_requested") {
				_ = json.Unmarshal(l.event, &asked)
			}
			if l.has("tool_result") {
				_ = json.Unmarshal(l.event, &answered)
			}
		}
		var preview struct{ Command string }
		var result struct {
			Data struct {
				BgID string `json:"bg_id"`
			}
		}
		if json.Unmarshal([]byte(asked.Preview), &preview) != nil || preview.Command != "make" || json.Unmarshal([]byte(answered.Result), &result) != nil || result.Data.BgID == "" {
			t.Fatalf("it learns the command from %q and the process from %q", asked.Preview, answered.Result)
		}
		id := result.Data.BgID
		if got := string(c.call("rind/background/list", `{}`).result); got != `{"tasks":[{"bg_id":"`+id+`","status":"running","exit_code":-1,"cwd":"/w"}]}` {
			t.Errorf("list %s", got)
		}
		job := <-jobs.Started
		job.Write("some output")
		for range 2 { // it consumes nothing
			if got := string(c.call("rind/background/output", `{"bg_id":"`+id+`","max_output_chars":6}`).result); got != `{"task":{"bg_id":"`+id+`","status":"running","exit_code":-1,"cwd":"/w","stdout":"output","stderr":"","truncated":true}}` {
				t.Errorf("output %s", got)
			}
		}
		c.refused("rind/background/output", `{}`, "InvalidRequest", "rind/background/output requires bg_id.")
		c.refused("rind/background/output", `{"bg_id":"x","max_output_chars":"y"}`, "InvalidRequest", "rind/background/output max_output_chars must be an integer.")
		c.refused("rind/background/output", `{"bg_id":"nope"}`, "NotFound", "No background process: nope")
		job.Finish("completed", 0)
		c.settle()
		if got := string(c.call("rind/background/list", `{}`).result); got != `{"tasks":[{"bg_id":"`+id+`","status":"completed","exit_code":0,"cwd":"/w"}]}` {
			t.Errorf("list at the end %s", got)
		}
	})
}

func TestOlderClientsPromptIsAnsweredWithAResultBehindItsTerminalHoweverItEnds(t *testing.T) {
	older(t, `{"turns": [{"match": "fine", "steps": [{"text": "fine"}]}, {"match": "fail", "steps": [{"fail": {"fault": "auth", "status": 401, "message": "no"}}]},
		{"match": "hang", "steps": [{"text": "half"}, {"hang": true}]}]}`, func(t *testing.T, c *client, _ *line) {
		for input, terminal := range map[string]string{"fine": "turn_completed", "fail": "turn_failed", "hang": "turn_cancelled"} {
			id := c.send("session/prompt", `{"input":"`+input+`"}`)
			c.settle()
			if input == "hang" {
				c.call("session/cancel", `{}`)
			}
			l := c.response(id)
			if l.err != nil || !strings.Contains(string(l.result), `"ok":true`) {
				t.Errorf("%s: answered %s", input, l.raw)
			}
			lines := c.settle()
			at := place(lines, func(l *line) bool { return l.has(terminal) })
			if at < 0 || at > place(lines, func(o *line) bool { return o == l }) {
				t.Errorf("%s: no %s before the answer", input, terminal)
			}
		}
	})
}

// Lines 5 and 11.
func TestOlderClientSetsAGoalAndStartsItsTurnsItself(t *testing.T) {
	older(t, `[{"text": "x"}]`, func(t *testing.T, c *client, hello *line) {
		if !slices.Contains(listOf(t, hello, "capabilities"), "rind/goals") {
			c.refused("session/prompt", `{"input":"","goal_continuation":true}`, "InvalidRequest", "No active goal to continue.")
			return
		}
		goal := func(method, params string) string { return string(fields(t, c.call(method, params), "goal")["goal"]) }
		if got := goal("rind/goal/get", `{}`); got != "null" {
			t.Errorf("before any: %s", got)
		}
		c.refused("session/prompt", `{"input":"","goal_continuation":true}`, "InvalidRequest", "No active goal to continue.")
		if got := goal("rind/goal/set", `{"objective":"make it"}`); !strings.Contains(got, `"objective":"make it"`) || !strings.Contains(got, `"status":"active"`) {
			t.Errorf("set: %s", got)
		}
		if got := place(c.settle(), func(l *line) bool { return l.has("turn_started") }); got >= 0 {
			t.Error("a turn was started for an older client, which starts it itself")
		}
		for _, status := range []string{"paused", "active"} {
			if got := goal("rind/goal/status", `{"status":"`+status+`"}`); !strings.Contains(got, `"status":"`+status+`"`) {
				t.Errorf("%s: %s", status, got)
			}
		}
		if got := goal("rind/goal/clear", `{}`); got != "null" {
			t.Errorf("cleared: %s", got)
		}
	})
}

func TestOlderClientQueuesInputsAndTakesTheNewestBack(t *testing.T) {
	older(t, `{"turns": [{"steps": [{"gate": "go"}, {"text": "one"}]}, {"steps": [{"expect": {"user": "steered"}}, {"text": "two"}]}, {"steps": [{"expect": {"user": "followed"}}, {"text": "three"}, {"hang": true}]}]}`, func(t *testing.T, c *client, _ *line) {
		prompt := c.send("session/prompt", `{"input":"begin"}`)
		c.event("turn_started")
		steered := c.call("rind/session/steer", `{"input":"steered"}`).text("input_id")
		followed := c.call("rind/session/follow_up", `{"input":"followed"}`).text("input_id")
		for method, mode := range map[string]string{"steer unsteer": "steering", "follow_up dequeue_follow_up": "follow_up"} {
			put, back, _ := strings.Cut(method, " ")
			id := c.call("rind/session/"+put, `{"input":"take me back"}`).text("input_id")
			l := c.call("rind/session/"+back, `{}`)
			if m := fields(t, l); string(m["retrieved"]) != "true" || l.text("input_id") != id || l.text("mode") != mode || l.text("input") != "take me back" {
				t.Errorf("%s: got %s", back, l.raw)
			}
		}
		c.p.Play.Open("go")
		c.await("the follow-up's answer", func(l *line) bool { return l.has("assistant_delta") && l.text("text") == "three" })
		left := c.call("rind/session/steer", `{"input":"too late"}`).text("input_id")
		c.call("session/cancel", `{}`)
		c.response(prompt)
		for id, event := range map[string]string{steered: "queued_input_delivered", followed: "queued_input_delivered", left: "queued_input_returned"} {
			if id == "" || place(c.settle(), func(l *line) bool { return l.has(event) && l.text("input_id") == id }) < 0 {
				t.Errorf("no %s of input %q", event, id)
			}
		}
	})
}

func TestOlderClientCancelsWithoutNamingATurn(t *testing.T) {
	older(t, hanging, func(t *testing.T, c *client, _ *line) {
		prompt := c.send("session/prompt", `{"input":"p"}`)
		c.event("assistant_delta")
		c.call("session/cancel", `{}`)
		if l := c.response(prompt); l.err != nil || l.text("outcome") != "cancelled" {
			t.Errorf("got %s", l.raw)
		}
		c.refused("session/cancel", `{}`, "TurnNotActive", "No active turn to interrupt.")
	})
}

func TestOlderClientAnswersQuestionsAndApprovalsAlike(t *testing.T) {
	older(t, `{"turns": [{"match": "ask", "steps": [{"call": {"name": "ask", "arguments": {}}}, {"finish": "tool_calls"}, {"text": "thanks"}]},
		{"match": "touch", "steps": [{"call": {"name": "touch", "arguments": {}}}, {"finish": "tool_calls"}, {"text": "so be it"}]}]}`, func(t *testing.T, c *client, _ *line) {
		told := 0
		for _, q := range []struct{ input, answer, durability, result string }{
			{"ask 1", "blue", "durable", `"completed"`},
			{"ask 2", "some green", "durable", `"completed"`},
			{"ask 3", "", "durable", ""},
			{"touch 1", "Allow once", "incremental", `"completed"`},
			{"touch 2", "allow ALWAYS", "incremental", `"completed"`},
			{"touch 3", "rather not", "incremental", `"rejected"`},
		} {
			id := c.send("session/prompt", `{"input":"`+q.input+`"}`)
			lines := c.settle()[told:]
			at := place(lines, func(l *line) bool { return l.has("user_question_requested") })
			if at < 0 || !strings.Contains(lines[at].raw, `"durability":"`+q.durability+`"`) {
				t.Fatalf("%s: no question, %s:\n%s", q.input, q.durability, c.dump())
			}
			call := lines[at].text("tool_call_id")
			c.call("rind/user-question/respond", `{"tool_call_id":"`+call+`","answer":"`+q.answer+`"}`)
			c.response(id)
			if i := place(c.Got(), func(l *line) bool {
				return l.has("tool_result") && l.text("tool_call_id") == call && (q.result == "" || `"`+l.text("status")+`"` == q.result)
			}); i < 0 {
				t.Errorf("%s: no result %s of %s", q.input, q.result, call)
			}
			told = len(c.settle())
		}
		if n := c.p.tools.touched.Load(); n != 2 {
			t.Errorf("touched %d times", n)
		}
	})
}

// Line 9 but for the processes, which wait: commands are read from args_preview.
func TestOlderClientReadsACommandFromArgsPreviewAsJSON(t *testing.T) {
	older(t, `[{"call": {"id": "c", "name": "look", "arguments": {"command": "ls \"a b\"", "n": 1}}}, {"finish": "tool_calls"}, {"text": "x"}]`, func(t *testing.T, c *client, _ *line) {
		c.call("session/prompt", `{"input":"x"}`)
		var args struct{ Command string }
		if l := c.event("tool_requested"); json.Unmarshal([]byte(l.text("args_preview")), &args) != nil || args.Command != `ls "a b"` {
			t.Errorf("got %s", l.raw)
		}
		var result struct {
			OK   bool
			Data json.RawMessage
		}
		if l := c.event("tool_result"); json.Unmarshal([]byte(l.text("result")), &result) != nil || !result.OK || result.Data == nil {
			t.Errorf("got %s", l.raw)
		}
	})
}

func TestOlderClientChoosesModelsAndSessions(t *testing.T) {
	older(t, `{"turns": [{"match": "x", "steps": [{"text": "x"}, {"usage": {"input": 5, "output": 1}}]}]}`, func(t *testing.T, c *client, hello *line) {
		first := hello.text("session_id")
		if got := listOf(t, c.call("model/list", `{}`), "models"); !slices.Equal(got, []string{"m-1", "m-2"}) {
			t.Errorf("models %v", got)
		}
		set := c.call("model/set", `{"model":"m-2"}`)
		if m := fields(t, set, "default_model"); set.text("model") != "m-2" || set.text("session_model") != "m-2" || string(m["active_updated"]) != "true" {
			t.Errorf("got %s", set.raw)
		}
		c.call("session/prompt", `{"input":"x"}`)
		c.call("session/new", `{}`)
		if list := c.call("rind/command/execute", `{"input":"/sessions"}`); !strings.Contains(list.text("text"), first) {
			t.Errorf("got %s", list.raw)
		}
		switched := c.call("session/switch", `{"session_id":"`+first+`"}`)
		fields(t, switched, "model", "resume_preview", "goal", "usage")
		if switched.text("session_id") != first || !strings.Contains(switched.text("resume_preview"), "Resumed session") {
			t.Errorf("got %s", switched.raw)
		}
		if got := listOf(t, c.call("model/list", `{}`), "models"); len(got) != 2 { // naming a session here did not make it a newer client
			t.Errorf("models %v", got)
		}
		next := c.call("rind/command/execute", `{"input":"/init"}`)
		if m := fields(t, next, "next_prompt"); !strings.Contains(string(m["next_prompt"]), `"input":"Initialize project RIND.md`) {
			t.Errorf("got %s", next.raw)
		}
	})
}

// Only older clients cannot tell the events of two sessions apart: theirs stays while it works, and session/new is always allowed.
func TestOnlyAnOlderClientMayNotSwitchWhileItsSessionWorks(t *testing.T) {
	for name, c := range map[string]struct{ hello, prompt string }{"older": {`{}`, ``}, "capabilities": {`{"client_capabilities":[]}`, ``}, "named": {`{}`, `"session_id":"%s",`}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := launch(t, peers.NewWorld(), "p", `{"turns": [{"match": "x", "steps": [{"text": "x"}]}, {"match": "stay", "steps": [{"hang": true}]}]}`, "")
				defer p.end()
				client := p.connect(rindv2.Rind)
				first := client.call("initialize", c.hello).text("session_id")
				client.call("session/prompt", `{"input":"x"}`)
				second := client.call("session/new", `{}`).text("session_id")
				client.send("session/prompt", `{`+strings.Replace(c.prompt, "%s", second, 1)+`"input":"stay"}`)
				client.settle()
				to := `{"session_id":"` + first + `"}`
				if name == "older" {
					client.refused("session/switch", to, "TurnActive", "Cannot switch sessions while a turn is running.")
					client.call("session/new", `{}`)
				}
				client.call("session/switch", to)
				client.refused("session/fork", `{"session_id":"`+second+`"}`, "TurnActive", "Cannot fork a session while a turn is active.")
			})
		})
	}
}

func TestOlderClientsShutdownIsAnsweredAndTheProgramEnds(t *testing.T) {
	older(t, hanging, func(t *testing.T, c *client, _ *line) {
		c.send("session/prompt", `{"input":"p"}`)
		c.event("assistant_delta")
		last := c.call("shutdown", `{}`)
		if err := <-c.Served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		c.Served <- nil
		if lines := c.settle(); lines[len(lines)-1] != last {
			t.Errorf("after the answer: %s", lines[len(lines)-1].raw)
		}
	})
}

func TestOlderClientShowsTextFromDeltasAloneAndMissesNone(t *testing.T) {
	older(t, `[{"text": "All of ü, ", "chunk": 2, "delayMs": 30}, {"call": {"id": "c", "name": "look", "arguments": {}}}, {"finish": "tool_calls"}, {"text": "and the rest."}]`, func(t *testing.T, c *client, _ *line) {
		turn := c.call("session/prompt", `{"input":"x"}`).text("turn_id")
		if got := told(c.settle(), turn); got != "All of ü, and the rest." {
			t.Errorf("told %q", got)
		}
	})
}
