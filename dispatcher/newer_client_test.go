package dispatcher_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol/rindv2"
)

func TestNewerClientNamesItsSessionAndTurnEverywhere(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"match": "p", "steps": [{"text": "half"}, {"hang": true}]}]}`, "")
		defer p.end()
		c := p.connect(env)
		id := c.hello()
		in := func(more string) string { return `{"session_id":"` + id + `"` + more + `}` }
		prompt := c.send("session/prompt", in(`,"input":"p"`))
		turn := c.event("turn_started").turn
		gone := strings.Repeat("0", 32)
		c.refused("session/cancel", in(`,"turn_id":"`+gone+`"`), "TurnNotActive", "The requested turn is no longer active.")
		c.refused("rind/session/steer", in(`,"input":"x","turn_id":"`+gone+`"`), "TurnNotActive", "The requested turn is no longer active.")
		c.call("rind/session/steer", in(`,"input":"x","turn_id":"`+turn+`"`))
		c.call("session/cancel", in(`,"turn_id":"`+turn+`"`))
		if l := c.response(prompt); l.text("outcome") != "cancelled" || l.text("turn_id") != turn {
			t.Errorf("got %s", l.raw)
		}
		c.refused("session/prompt", `{"session_id":"20990101_000000_00000000","input":"x"}`, "SessionNotFound", "Session not found: 20990101_000000_00000000")
	})
}

func TestNewerClientTakesTheSessionOfInitializeOrMakesOne(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"match": "p", "steps": [{"text": "x"}]}]}`, "")
		defer p.end()
		c := p.connect(env)
		id := c.hello()
		made := c.call("session/create", `{"session_id":"mine","name":"Mine"}`)
		if made.text("session_id") != "mine" || made.text("title") != "Mine" || string(fields(t, made)["draft"]) != "true" {
			t.Errorf("got %s", made.raw)
		}
		for _, session := range []string{id, "mine"} {
			if l := c.call("session/prompt", `{"session_id":"`+session+`","input":"p"}`); l.text("session_id") != session || l.text("outcome") != "completed" {
				t.Errorf("got %s", l.raw)
			}
		}
		c.refused("session/create", `{"session_id":"mine"}`, "InvalidRequest", "This conversation already exists.")
		fresh := c.call("session/new", `{}`).text("session_id")
		for _, want := range []string{"true", "false"} {
			l := c.response(c.send("rind/session/forget_draft", `{"session_id":"`+fresh+`"}`))
			if l.err == nil && string(fields(t, l)["forgotten"]) != want || l.err != nil && (want == "true" || l.err.Type != "SessionNotFound") {
				t.Errorf("got %s, want forgotten %s", l.raw, want)
			}
		}
	})
}

func TestNewerClientSubscribesReplaysAndChoosesModelsByProvider(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `[{"text": "so far"}, {"gate": "go"}, {"text": ", and on"}]`, "")
		defer p.end()
		a, b := p.connect(env), p.connect(env)
		id := a.hello()
		prompt := a.send("session/prompt", `{"input":"p"}`)
		a.event("assistant_delta")
		b.hello()
		b.call("session/subscribe", `{"session_id":"`+id+`"}`)
		replay := b.call("session/replay", `{"session_id":"`+id+`"}`) // message mode alone is enough for a first view
		var view struct {
			Messages []struct{ Role, Content string }
			Live     struct {
				Text string `json:"assistant_text"`
				Turn string `json:"turn_id"`
			} `json:"live_turn"`
			State struct {
				Turn   string `json:"turn_id"`
				Status string
			} `json:"turn_state"`
			Hosted bool
			Head   int64 `json:"head_cursor"`
			AsOf   int64 `json:"as_of_sequence"`
		}
		if err := json.Unmarshal(replay.result, &view); err != nil {
			t.Fatal(err)
		}
		if len(view.Messages) != 2 || view.Messages[1].Content != "p" || view.Live.Text != "so far" || view.Live.Turn != view.State.Turn || view.State.Status != "running" || !view.Hosted || view.Head == 0 {
			t.Errorf("got %s", replay.raw)
		}
		set := b.call("model/set", `{"session_id":"`+id+`","provider_id":"play","model_id":"m-2"}`)
		if set.text("applies") != "next_turn" || set.text("model_id") != "m-2" || set.text("provider_id") != "play" {
			t.Errorf("got %s", set.raw)
		}
		p.Play.Open("go")
		turn := a.response(prompt).text("turn_id")
		if got := view.Live.Text + told(b.settle(), turn); got != "so far, and on" {
			t.Errorf("the snapshot and what followed it say %q", got)
		}
		var models []struct {
			Provider string `json:"provider_id"`
			ID       string `json:"id"`
		}
		list := b.call("model/list", `{}`)
		if json.Unmarshal(fields(t, list, "current", "default_model")["models"], &models) != nil || len(models) != 2 || models[0].Provider != "play" {
			t.Errorf("got %s", list.raw)
		}
		if now := b.call("model/set", `{"session_id":"`+id+`","model_id":"m-1"}`).text("applies"); now != "now" {
			t.Errorf("between turns it applies %q", now)
		}
	})
}

func TestNewerClientsOneShotHasAnAnswerOrAnError(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"match": "good", "steps": [{"text": "The answer."}]}, {"match": "bad", "steps": [{"fail": {"fault": "auth", "status": 401, "message": "The key is not valid."}}]},
			{"match": "hang", "steps": [{"hang": true}]}]}`, "")
		defer p.end()
		c := p.connect(env)
		c.hello()
		good := c.call("session/prompt", `{"input":"good","completion_scope":"request"}`)
		if good.text("answer") != "The answer." || len(good.text("request_id")) != 32 {
			t.Errorf("got %s", good.raw)
		}
		bad := c.response(c.send("session/prompt", `{"input":"bad","completion_scope":"request"}`))
		if bad.err == nil || bad.err.Type != "RequestFailed" || !strings.Contains(bad.err.Message, "The key is not valid.") || !strings.Contains(bad.raw, `"details":{"outcome":"failed","stop_reason":`) {
			t.Errorf("got %s", bad.raw)
		}
		id := c.send("session/prompt", `{"input":"hang","completion_scope":"request"}`)
		c.settle()
		c.refused("session/prompt", `{"input":"good","completion_scope":"request"}`, "SessionBusy", "A request is already active for this session.")
		c.call("session/cancel", `{}`)
		if l := c.response(id); l.err == nil || l.err.Type != "RequestFailed" || !strings.Contains(l.raw, `"outcome":"cancelled"`) {
			t.Errorf("got %s", l.raw)
		}
	})
}

func TestNewerClientSeesTurnsItDidNotStartAndEventsOfNoTurn(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"match": "touch", "steps": [{"call": {"id": "c1", "name": "touch", "arguments": {}}}, {"finish": "tool_calls"}, {"text": "x"}]}]}`, "")
		defer p.end()
		a, b := p.connect(env), p.connect(env)
		id := a.hello()
		b.hello()
		b.call("session/subscribe", `{"session_id":"`+id+`"}`)
		prompt := a.send("session/prompt", `{"input":"touch"}`)
		started, asked := b.event("turn_started"), b.event("approval_requested")
		if started.turn == "" || started.session != id {
			t.Errorf("got %s", started.raw)
		}
		state := b.call("session/replay", `{"session_id":"`+id+`","after_cursor":0}`)
		if !strings.Contains(string(fields(t, state)["turn_state"]), `"waiting":true`) {
			t.Errorf("got %s", state.raw)
		}
		b.call("rind/session/set_mode", `{"session_id":"`+id+`","mode":"edit"}`)
		if l := a.event("session_settings_changed"); l.turn != "" || !strings.Contains(l.raw, `"turn_id":""`) || l.text("approval_mode") != "edit" {
			t.Errorf("got %s", l.raw)
		}
		b.call("rind/approval/respond", `{"session_id":"`+id+`","action_id":"`+asked.text("action_id")+`","option_id":"reject_once"}`)
		if l := a.response(prompt); l.text("outcome") != "completed" {
			t.Errorf("got %s", l.raw)
		}
		b.event("turn_completed")
	})
}

// Line 3: tasks of section 6.
func TestNewerClientFollowsTasksByTheirOwnCursor(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		jobs := &testkit.Jobs{Kind: "think", Started: make(chan *testkit.Job, 1)}
		w := peers.NewWorld()
		p := launchWith(t, w, "p", `{"turns": [{"match": "start", "steps": [{"call": {"name": "bg", "arguments": {"command": "make"}}}, {"finish": "tool_calls"}, {"text": "started"}]}, {"steps": [{"text": "told"}]}]}`, "", jobs)
		defer p.end()
		c := p.connect(env)
		id := c.hello()
		c.call("session/prompt", `{"input":"start"}`)
		job := <-jobs.Started
		var list struct {
			Tasks []rindv2.Task
			Next  *string `json:"next_page_token"`
		}
		if err := json.Unmarshal(c.call("rind/task/list", `{}`).result, &list); err != nil || len(list.Tasks) != 1 || list.Tasks[0].Status != "running" || list.Next != nil {
			t.Fatalf("list %+v, %v", list, err)
		}
		task := list.Tasks[0].TaskID
		var snap struct {
			Tasks []rindv2.Task
			Head  int64           `json:"task_cursor"`
			Wait  json.RawMessage `json:"background_wait"`
			AsOf  int64           `json:"as_of_sequence"`
		}
		if err := json.Unmarshal(c.call("session/replay", `{"after_cursor":0}`).result, &snap); err != nil || len(snap.Tasks) != 1 || snap.Head == 0 || !strings.Contains(string(snap.Wait), `"count":1`) {
			t.Fatalf("snapshot %+v, %v", snap, err)
		}
		job.Write("built")
		job.Finish("completed", 0)
		lines := c.settle()
		from := snap.Head
		seen := 0
		for _, l := range lines {
			if !l.has("task_updated") || l.seq <= snap.AsOf {
				continue
			}
			seen++
			if l.task <= from || l.cursor != 0 || !l.durable || l.turn != "" {
				t.Errorf("task event %s behind %d", l.raw, from)
			}
			from = l.task
		}
		if seen != 1 {
			t.Errorf("%d task events", seen)
		}
		if at := place(lines, func(l *line) bool { return l.has("turn_started") && strings.Contains(l.raw, `"origin":"task"`) }); at < 0 {
			t.Error("no continuation")
		}
		var rest struct {
			Events []json.RawMessage `json:"task_events"`
			More   bool              `json:"task_has_more"`
		}
		if err := json.Unmarshal(c.call("session/replay", `{"session_id":"`+id+`","after_cursor":0,"after_task_cursor":`+strconv.FormatInt(snap.Head, 10)+`}`).result, &rest); err != nil || len(rest.Events) != 1 || rest.More {
			t.Errorf("task events %+v, %v", rest, err)
		}
		if none := string(c.call("session/replay", `{"session_id":"`+id+`","after_cursor":0,"after_task_cursor":1000000}`).result); !strings.Contains(none, `"task_events":[]`) || !strings.Contains(none, `"task_has_more":false`) {
			t.Errorf("no task events are told as %s", none)
		}
		var part rindv2.TaskPart
		if err := json.Unmarshal(c.call("rind/task/wait", `{"task_id":"`+task+`"}`).result, &part); err != nil || part.ReturnReason != "finished" || part.Stdout != "built" || part.NextCursor != 5 {
			t.Errorf("wait %+v, %v", part, err)
		}
		c.refused("rind/task/read", `{"task_id":"nope"}`, "NotFound", "Task not found: nope")
		c.refused("rind/task/release_wait", `{}`, "InvalidRequest", "rind/task/release_wait requires task_id or tool_call_id.")
	})
}
