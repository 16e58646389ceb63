package dispatcher_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

const shared = `{"turns": [
	{"match": "stream", "steps": [{"text": "` + "0123456789" + `", "chunk": 2, "delayMs": 40}, {"hang": true}]},
	{"match": "touch", "steps": [{"call": {"id": "c1", "name": "touch", "arguments": {}}}, {"finish": "tool_calls"}, {"text": "touched"}]},
	{"match": "ask", "steps": [{"call": {"id": "c2", "name": "ask", "arguments": {}}}, {"finish": "tool_calls"}, {"text": "answered"}]},
	{"match": "short", "steps": [{"text": "ok"}]}]}`

// two starts two processes on one store: the first has a client in a session of its own, the second one a client on the same session.
func two(t *testing.T, env rindv2.Envelope) (owner, other *client, id string) {
	t.Helper()
	w := peers.NewWorld()
	a := launch(t, w, "a", shared, "")
	owner = a.connect(env)
	id = owner.hello()
	owner.call("session/prompt", `{"input":"short"}`)
	b := launch(t, w, "b", shared, session.SessionID(id))
	other = b.connect(env)
	if got := other.hello(); got != id {
		t.Fatalf("the other process opened %s", got)
	}
	return owner, other, id
}

func TestTurnOfAnotherProcessIsFollowedAndCancelled(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		owner, other, id := two(t, env)
		defer owner.p.end()
		defer other.p.end()
		prompt := owner.send("session/prompt", `{"input":"stream"}`)
		turn := other.event("turn_started").turn
		time.Sleep(100 * time.Millisecond)
		for method, params := range map[string]string{ // all that would write
			"session/prompt": `{"input":"short"}`, "rind/session/compact": `{}`, "model/set": `{"model":"m-2"}`, "model/effort": `{"reasoning_effort":"high"}`,
			"rind/session/set_mode": `{"mode":"edit"}`, "rind/goal/set": `{"objective":"o"}`, "rind/session/steer": `{"input":"x"}`,
			"rind/session/follow_up": `{"input":"x","turn_id":"` + turn + `"}`, "rind/session/promote_follow_up": `{"input_id":"x"}`, "rind/session/unsteer": `{}`,
			"rind/session/dequeue_follow_up": `{}`,
		} {
			other.refused(method, params, "SessionBusy", "Session is in use by another process.")
		}
		if l := other.call("rind/command/execute", `{"input":"/rename x"}`); !strings.Contains(l.text("text"), "Session is in use by another process.") {
			t.Errorf("got %s", l.raw)
		}
		third := other.p.connect(env)
		third.hello()
		third.call("session/new", `{}`)
		third.refused("session/delete", `{"session_id":"`+id+`"}`, "SessionBusy", "Session is in use by another process.")
		if p := pageOf(t, other.call("session/replay", `{"after_cursor":0}`)); p.Live == nil || p.Live.Turn != turn {
			t.Errorf("the other process shows live turn %+v", p.Live)
		}
		began := time.Now()
		other.call("session/cancel", `{"turn_id":"`+turn+`"}`)
		if took := time.Since(began); took > 300*time.Millisecond {
			t.Errorf("the cancel took %v", took)
		}
		if l := owner.response(prompt); l.text("outcome") != "cancelled" {
			t.Errorf("the prompt ended with %s", l.raw)
		}
		other.event("turn_cancelled")
		other.refused("session/cancel", `{"turn_id":"`+turn+`"}`, "TurnNotActive", "The requested turn is no longer active.")
		gapFree(t, other.settle())
		if got, want := cursors(other.settle()), owner.p.durables(id); !slices.Equal(got, want[len(want)-len(got):]) || len(got) < 3 {
			t.Errorf("the other process told durable events %v, stored %v", got, want)
		}
		if told(owner.Got(), turn) != told(other.Got(), turn) {
			t.Errorf("one process told %q, the other %q", told(owner.Got(), turn), told(other.Got(), turn))
		}
		other.call("session/prompt", `{"input":"short"}`) // the session is free again
		owner.p.Sound(id)
	})
}

// TestASessionThatAnotherProcessDeletedIsGoneHere: whatever is asked of it first, it is not found, whoever has it as current is told so and loses
// it, and it is nowhere any more.
func TestASessionThatAnotherProcessDeletedIsGoneHere(t *testing.T) {
	for method, params := range map[string]string{
		"session/prompt": `{"input":"short"}`, "rind/session/set_mode": `{"mode":"edit"}`, "model/set": `{"model":"m-2"}`, "rind/goal/set": `{"objective":"o"}`,
		"rind/session/compact": `{}`, "session/replay": `{"after_cursor":0}`,
	} {
		t.Run(strings.ReplaceAll(method, "/", " "), func(t *testing.T) {
			onBoth(t, func(t *testing.T, env rindv2.Envelope) {
				owner, other, id := two(t, env)
				defer owner.p.end()
				defer other.p.end()
				owner.call("session/new", `{}`)
				owner.call("session/delete", `{"session_id":"`+id+`"}`)
				gone := "Session not found: " + id
				other.refused(method, params, "SessionNotFound", gone)
				other.refused("session/prompt", `{"input":"short"}`, "SessionNotFound", gone)
				if l := other.event("session_discarded"); l.session != id {
					t.Errorf("got %s", l.raw)
				}
				other.refused("session/replay", `{}`, "SessionNotFound", gone)
				other.refused("session/switch", `{"session_id":"`+id+`"}`, "SessionNotFound", gone)
				if got := listOf(t, other.call("session/subscribe", `{"session_id":"`+other.call("session/new", `{}`).text("session_id")+`"}`), "subscribed"); len(got) != 1 {
					t.Errorf("it follows %v", got)
				}
				if l := other.call("session/prompt", `{"input":"short"}`); l.text("outcome") != "completed" {
					t.Errorf("got %s", l.raw)
				}
			})
		})
	}
}

// TestThatAnotherProcessDeletedASessionIsToldAtOnce: to all who follow it, without a request.
func TestThatAnotherProcessDeletedASessionIsToldAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		owner, other, id := two(t, env)
		defer owner.p.end()
		defer other.p.end()
		beside := other.p.connect(env)
		beside.hello()
		began := time.Now()
		owner.call("session/new", `{}`)
		owner.call("session/delete", `{"session_id":"`+id+`"}`)
		for _, c := range []*client{other, beside} {
			if l := c.event("session_discarded"); l.session != id || time.Since(began) > time.Second {
				t.Errorf("after %s: %s", time.Since(began), l.raw)
			}
			c.refused("session/replay", `{}`, "SessionNotFound", "Session not found: "+id)
		}
	})
}

func TestApprovalAndQuestionAreAnsweredFromAnotherProcess(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		owner, other, id := two(t, env)
		defer owner.p.end()
		defer other.p.end()
		prompt := owner.send("session/prompt", `{"input":"touch"}`)
		action := other.event("approval_requested").text("action_id")
		other.refused("rind/approval/respond", `{"action_id":"`+action+`","option_id":"perhaps"}`, "InvalidRequest", "Unknown option_id: perhaps")
		other.call("rind/approval/respond", `{"action_id":"`+action+`","option_id":"allow_once"}`)
		if l := owner.response(prompt); l.text("outcome") != "completed" {
			t.Errorf("the prompt ended with %s", l.raw)
		}
		if a, b := owner.p.tools.touched.Load(), other.p.tools.touched.Load(); a != 1 || b != 0 {
			t.Errorf("the tool ran %d times in the owner, %d times beside it", a, b)
		}
		owner.refused("rind/approval/respond", `{"action_id":"`+action+`","option_id":"allow_once"}`, "ActionAlreadyResolved", "Action already resolved: "+action)
		prompt = owner.send("session/prompt", `{"input":"ask"}`)
		other.event("user_question_requested")
		other.call("rind/user-question/respond", `{"tool_call_id":"c2","answer":"blue"}`)
		if l := owner.response(prompt); l.text("outcome") != "completed" {
			t.Errorf("the prompt ended with %s", l.raw)
		}
		if l := other.event("user_question_answered"); l.text("answer") != "blue" {
			t.Errorf("got %s", l.raw)
		}
		owner.p.Sound(id)
	})
}

func TestAnswerAfterTheOwnerDiedGoesOnInTheProcessThatGotIt(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		owner, other, id := two(t, env)
		defer other.p.end()
		owner.send("session/prompt", `{"input":"touch"}`)
		asked := other.event("approval_requested")
		owner.p.kill()
		other.call("rind/approval/respond", `{"action_id":"`+asked.text("action_id")+`","option_id":"allow_once"}`)
		done := other.event("turn_completed")
		if done.turn != asked.turn {
			t.Errorf("turn %s went on as %s", asked.turn, done.turn)
		}
		if n := other.p.tools.touched.Load(); n != 1 {
			t.Errorf("the tool ran %d times", n)
		}
		starts := 0
		for _, l := range other.settle() {
			if l.has("turn_started") && l.turn == asked.turn {
				starts++
			}
		}
		if starts != 1 {
			t.Errorf("the turn was started %d times", starts)
		}
		gapFree(t, other.Got())
		other.p.Sound(id)
	})
}

func TestKeyUsedAgainAfterACrashGoesOnWithItsTurnAndIsAnsweredOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		w := peers.NewWorld()
		text := `{"turns": [{"match": "go", "steps": [{"text": "half"}, {"gate": "never"}, {"finish": "stop"}, {"text": "the rest"}]}]}`
		a := launch(t, w, "a", text, "")
		c := a.connect(env)
		id := c.hello()
		c.send("session/prompt", `{"input":"go","idempotency_key":"k"}`)
		turn := c.event("assistant_delta").turn
		a.kill()
		b := launch(t, w, "b", text, session.SessionID(id))
		defer b.end()
		d := b.connect(env)
		d.hello()
		first := d.call("session/prompt", `{"query":"go","idempotency_key":"k","resume":null}`)
		again := d.call("session/prompt", `{"idempotency_key":"k","input":"go"}`)
		if first.text("turn_id") != turn || first.text("outcome") != "completed" {
			t.Errorf("got %s", first.raw)
		}
		if string(first.result) != string(again.result) {
			t.Errorf("asked again: %s, first %s", again.raw, first.raw)
		}
		messages := string(d.call("session/replay", `{}`).result)
		if n := strings.Count(messages, `"role":"user"`); n != 1 {
			t.Errorf("%d user messages in %s", n, messages)
		}
		b.Sound(id)
	})
}

// A key is used again in another process while its turn goes on where it began. The answer is that of the turn: when it ends there, or, when that
// process dies, when it was gone on with here.
func TestKeyUsedAgainWhileItsTurnRunsInAnotherProcessIsAnsweredWithItsEnd(t *testing.T) {
	for _, dies := range []bool{false, true} {
		onBoth(t, func(t *testing.T, env rindv2.Envelope) {
			w := peers.NewWorld()
			text := `{"turns": [{"match": "go", "steps": [{"text": "slowly and in pieces", "chunk": 2, "delayMs": 1000}, {"finish": "stop"}, {"text": "the rest"}]}]}`
			a, b := launch(t, w, "a", text, ""), launch(t, w, "b", text, "")
			defer b.end()
			c, d := a.connect(env), b.connect(env)
			id := c.hello()
			d.hello()
			const params = `{"session_id":"%s","input":"go","idempotency_key":"k"}`
			first := c.send("session/prompt", fmt.Sprintf(params, id))
			turn := c.event("turn_started").turn
			again := d.send("session/prompt", fmt.Sprintf(params, id))
			c.event("assistant_delta")
			if dies {
				a.kill()
			}
			got := d.response(again)
			if got.text("turn_id") != turn || got.text("outcome") != "completed" {
				t.Errorf("asked again: %s", got.raw)
			}
			if !dies {
				if was := c.response(first); string(was.result) != string(got.result) {
					t.Errorf("asked again: %s, first %s", got.raw, was.raw)
				}
				a.end()
			}
			messages := string(d.call("session/replay", `{"session_id":"`+id+`"}`).result)
			if n := strings.Count(messages, `"role":"user"`); n != 1 {
				t.Errorf("%d user messages in %s", n, messages)
			}
			b.Sound(id)
		})
	}
}
