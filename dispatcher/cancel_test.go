package dispatcher_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// H022: an id that a careless check takes for none names its request like any other.
func TestAnyIdNamesTheRequestToCancel(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", hanging, "")
		defer p.end()
		c := p.connect(env)
		c.hello()
		for _, id := range []string{"0", "-1", "0.0", `"0"`, `"null"`, "18446744073709551616"} {
			wait := `"behind ` + strings.ReplaceAll(id, `"`, "'") + `"`
			c.ask(id, "session/prompt", `{"input":"s"}`)
			c.ask(wait, "session/prompt", `{"input":"s"}`)
			c.settle()
			c.call("session/cancel", `{"request_id":`+wait+`}`)
			if l := c.response(wait); l.text("outcome") != "cancelled" || l.text("turn_id") != "" {
				t.Errorf("%s, which waited: %s", wait, l.raw)
			}
			began := time.Now()
			c.call("session/cancel", `{"request_id":`+id+`}`)
			if l := c.response(id); l.text("outcome") != "cancelled" || l.text("turn_id") == "" || time.Since(began) > 2*time.Second {
				t.Errorf("%s: %s", id, l.raw)
			}
		}
	})
}

// H042: a cancel that comes late names a turn that is over, and the prompt read behind it is not meant.
func TestASecondCancelOfATurnLeavesTheNextPromptAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"match": "stop me", "steps": [{"repeat": {"times": 100, "steps": [{"call": {"name": "stay", "arguments": {}}}, {"finish": "tool_calls"}]}}]},
			{"match": "next", "steps": [{"repeat": {"times": 100, "steps": [{"text": "done"}, {"finish": "stop"}]}}]}], "strict": false}`, "")
		defer p.end()
		c := p.connect(env)
		c.hello()
		for round := range 50 {
			prompt := c.send("session/prompt", `{"input":"stop me"}`)
			turn := ""
			for _, l := range c.settle() {
				if l.has("tool_call_started") {
					turn = l.turn
				}
			}
			var ids []string
			lines := ""
			for _, r := range [][2]string{
				{"session/cancel", `{"turn_id":"` + turn + `"}`}, {"session/cancel", `{"turn_id":"` + turn + `"}`}, {"session/prompt", `{"input":"next"}`},
			} {
				c.next++
				ids = append(ids, fmt.Sprint(c.next))
				if env == rindv2.JSONRPC {
					lines += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.next, r[0], r[1])
				} else {
					lines += fmt.Sprintf(`{"kind":"request","request_id":%d,"method":%q,"params":%s}`+"\n", c.next, r[0], r[1])
				}
			}
			c.Send(lines)
			if l := c.response(prompt); l.text("outcome") != "cancelled" {
				t.Errorf("round %d: the prompt that was cancelled: %s", round, l.raw)
			}
			if l := c.response(ids[0]); l.err != nil {
				t.Errorf("round %d: the first cancel: %s", round, l.raw)
			}
			if l := c.response(ids[1]); l.err != nil && l.err.Type != "TurnNotActive" {
				t.Errorf("round %d: the second cancel: %s", round, l.raw)
			}
			if l := c.response(ids[2]); l.text("outcome") != "completed" {
				t.Fatalf("round %d: the next prompt: %s", round, l.raw)
			}
		}
	})
}

// terminals are the terminal events of a turn among lines.
func terminals(lines []*line, turn string) (all []string) {
	for _, l := range lines {
		if l.turn == turn && (l.has("turn_completed") || l.has("turn_failed") || l.has("turn_cancelled")) {
			all = append(all, l.eventType)
		}
	}
	return all
}

// H047: a turn of 20 ms is cancelled at every half of a millisecond around its end.
func TestACancelAtAnyMomentAgreesWithAnswerEventAndLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"steps": [{"repeat": {"times": 200, "steps": [{"text": "0123456789", "chunk": 1, "delayMs": 2}, {"finish": "stop"}]}}]}], "strict": false}`, "")
		defer p.end()
		c := p.connect(rindv2.Rind)
		id := c.hello()
		outcomes := map[string]int{}
		for i := range 60 {
			prompt := c.send("session/prompt", fmt.Sprintf(`{"input":"prompt %d"}`, i))
			time.Sleep(time.Duration(i) * 500 * time.Microsecond)
			cancel := c.response(c.send("session/cancel", ""))
			l := c.response(prompt)
			outcome, turn := l.text("outcome"), l.text("turn_id")
			outcomes[outcome]++
			if got := strings.Join(terminals(c.settle(), turn), " "); got != "turn_"+outcome {
				t.Errorf("cancelled after %d half ms: answered %s, told %s", i, outcome, got)
			}
			if cancel.err != nil && (cancel.err.Type != "TurnNotActive" || outcome != "completed") {
				t.Errorf("cancelled after %d half ms: the cancel was answered %s, the prompt %s", i, cancel.raw, outcome)
			}
		}
		if outcomes["completed"] < 5 || outcomes["cancelled"] < 5 || len(outcomes) != 2 {
			t.Errorf("the moments miss the end: %v", outcomes)
		}
		p.Sound(id)
	})
}

// H048: the answer to a cancel is a promise: nothing starts behind it.
func TestNoToolStartsOnceACancelIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var started atomic.Int32
		work := &peers.Tool{Called: "work", Kind: "think", Does: func(context.Context, session.ToolCall, session.Progress) (session.ToolResult, error) {
			started.Add(1)
			time.Sleep(time.Millisecond) // it does not listen
			return session.ToolResult{Data: "done"}, nil
		}}
		steps := ""
		for i := range 400 {
			for j := range 5 {
				steps += fmt.Sprintf(`{"call": {"name": "work", "arguments": {"n": %d}}}, `, 5*i+j)
			}
			steps += `{"finish": "tool_calls"}, `
		}
		p := launchWith(t, peers.NewWorld(), "p", `{"turns": [{"steps": [`+strings.TrimSuffix(steps, ", ")+`]}], "strict": false}`, "", work)
		defer p.end()
		c := p.connect(rindv2.Rind)
		id := c.hello()
		for i := range 20 {
			prompt := c.send("session/prompt", `{"input":"work"}`)
			before := started.Load()
			time.Sleep(time.Duration(3+i)*time.Millisecond + time.Duration(i)*100*time.Microsecond)
			c.call("session/cancel", "")
			l := c.response(prompt)
			if l.text("outcome") != "cancelled" {
				t.Fatalf("got %s", l.raw)
			}
			time.Sleep(time.Second)
			c.settle()
			// Whether a tool ran before or behind the cancel is what the log says of its start: that comes before the tool runs.
			allowed, late, cancelled := int32(0), 0, false
			for _, e := range p.Entries(id) {
				switch {
				case string(e.Turn) != l.text("turn_id"):
				case e.Kind == protocol.KindCancelRequested:
					cancelled = true
				case e.Kind == protocol.KindToolCallStarted && cancelled:
					late++
				case e.Kind == protocol.KindToolCallStarted:
					allowed++
				}
			}
			if ran := started.Load() - before; ran > allowed || late > 0 || !cancelled {
				t.Errorf("%d tools ran, the log has %d starts before the cancel (%v) and %d behind it", ran, allowed, cancelled, late)
			}
		}
		if started.Load() < 20 {
			t.Errorf("only %d tools ran at all", started.Load())
		}
	})
}

// H049: an input that comes as the turn ends is taken and told to the model, or refused and nowhere.
func TestAnInputAtTheEndOfATurnIsTakenWholeOrRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"match": "also", "steps": [{"repeat": {"times": 200, "steps": [{"text": "that too"}, {"finish": "stop"}]}}]},
			{"steps": [{"repeat": {"times": 200, "steps": [{"text": "01234", "chunk": 1, "delayMs": 2}, {"finish": "stop"}]}}]}], "strict": false}`, "")
		defer p.end()
		c := p.connect(rindv2.Rind)
		id := c.hello()
		taken, refused := 0, 0
		for i := range 40 {
			prompt := c.send("session/prompt", fmt.Sprintf(`{"input":"prompt %d"}`, i))
			time.Sleep(time.Duration(i) * 500 * time.Microsecond)
			input := fmt.Sprintf("also number %d.", i)
			steer := c.response(c.send("rind/session/steer", `{"input":"`+input+`"}`))
			if l := c.response(prompt); l.text("outcome") != "completed" {
				t.Fatalf("got %s", l.raw)
			}
			delivered := 0
			for _, l := range c.settle() {
				if l.has("queued_input_delivered") && l.text("input_id") == steer.text("input_id") {
					delivered++
				}
			}
			switch {
			case steer.err == nil && delivered == 1:
				taken++
			case steer.err != nil && steer.err.Type == "TurnNotActive" && !strings.Contains(c.call("session/replay", "").raw, input):
				refused++
			default:
				t.Errorf("after %d half ms: %s, delivered %d times", i, steer.raw, delivered)
			}
		}
		if taken < 5 || refused < 5 {
			t.Errorf("the moments miss the end: %d taken, %d refused", taken, refused)
		}
		p.Sound(id)
	})
}

// H080: two people answer one approval in the same moment, and one of them once more.
func TestOfTwoAnswersAtOnceOneCountsAndBothAreToldWhich(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"steps": [{"repeat": {"times": 100, "steps": [{"call": {"name": "touch", "arguments": {}}}, {"finish": "tool_calls"}, {"text": "on"}, {"finish": "stop"}]}}]}], "strict": false}`, "")
		defer p.end()
		a, b := p.connect(env), p.connect(env)
		id := a.hello()
		b.hello()
		ran := int32(0)
		for round := range 50 {
			prompt := a.send("session/prompt", `{"input":"x"}`)
			action := ""
			for _, l := range a.settle() {
				if l.has("approval_requested") {
					action = l.text("action_id")
				}
			}
			if round == 0 {
				b.call("session/subscribe", `{"session_id":"`+id+`","after_cursor":0}`)
			}
			answer := func(c *client, option string) string {
				return c.send("rind/approval/respond", `{"session_id":"`+id+`","action_id":"`+action+`","option_id":"`+option+`"}`)
			}
			var yes, no, again string
			var wg sync.WaitGroup
			wg.Go(func() { yes, again = answer(a, "allow_once"), answer(a, "allow_once") })
			wg.Go(func() { no = answer(b, "reject_once") })
			wg.Wait()
			good := 0
			for _, l := range []*line{a.response(yes), b.response(no), a.response(again)} {
				switch {
				case l.err == nil:
					good++
				case l.err.Type != "ActionAlreadyResolved":
					t.Errorf("round %d: %s", round, l.raw)
				}
			}
			if good != 1 {
				t.Errorf("round %d: %d answers counted", round, good)
			}
			if b.response(no).err != nil {
				ran++
			}
			if l := a.response(prompt); l.text("outcome") != "completed" {
				t.Errorf("round %d: %s", round, l.raw)
			}
			for _, c := range []*client{a, b} {
				told := 0
				for _, l := range c.settle() {
					if l.has("approval_resolved") && l.text("action_id") == action {
						told++
					}
				}
				if told != 1 {
					t.Errorf("round %d: a connection was told %d times", round, told)
				}
			}
		}
		if n := p.tools.touched.Load(); n != ran {
			t.Errorf("the tool ran %d times, it was allowed %d times", n, ran)
		}
		p.Sound(id)
	})
}

// H034, H038: a turn that waits for its model, or for a person, holds up nothing that is read behind it.
func TestWhatIsReadDuringATurnIsAnsweredAndTouchesItNot(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"match": "silent", "steps": [{"text": "so far"}, {"hang": true}]}, {"match": "ask", "steps": [{"call": {"name": "touch", "arguments": {}}}, {"finish": "tool_calls"}, {"text": "done"}]}]}`, "")
		defer p.end()
		c := p.connect(env)
		id := c.hello()
		prompt := c.send("session/prompt", `{"input":"silent"}`)
		c.event("assistant_delta")
		began := time.Now()
		c.call("ping", "")
		again := c.call("initialize", `{"protocol_version":0,"capabilities":{}}`)
		var live struct {
			Live struct {
				Text string `json:"assistant_text"`
			} `json:"live_turn"`
		}
		if err := json.Unmarshal(again.result, &live); err != nil || again.text("session_id") != id || live.Live.Text != "so far" {
			t.Errorf("initialize again: %s", again.raw)
		}
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		if c.Got()[len(c.Got())-1].id == prompt {
			t.Error("the turn has ended")
		}
		c.call("session/cancel", "")
		if l := c.response(prompt); l.text("outcome") != "cancelled" {
			t.Errorf("got %s", l.raw)
		}
		c.call("initialize", `{"client_capabilities":["rind/approvals"]}`)
		prompt = c.send("session/prompt", `{"input":"ask"}`)
		action := c.event("approval_requested").text("action_id")
		c.call("ping", "")
		c.call("rind/approval/respond", `{"action_id":"`+action+`","option_id":"allow_once"}`)
		if l := c.response(prompt); l.text("outcome") != "completed" {
			t.Errorf("got %s", l.raw)
		}
		gapFree(t, c.settle())
	})
}
