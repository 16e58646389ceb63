package dispatcher_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

const conversation = `{"turns": [
	{"match": "text", "steps": [{"text": "` + "a long answer, told in many small pieces; a long answer, told in many small pieces" + `", "chunk": 5, "delayMs": 7}]},
	{"match": "look", "steps": [{"text": "I look. "}, {"call": {"name": "look", "arguments": {}}}, {"call": {"name": "look", "arguments": {}}}, {"finish": "tool_calls"}, {"text": "seen it", "chunk": 2, "delayMs": 5}]},
	{"match": "touch", "steps": [{"text": "May I? "}, {"call": {"name": "touch", "arguments": {}}}, {"finish": "tool_calls"}, {"text": "touched"}]},
	{"match": "fail", "steps": [{"text": "so far"}, {"fail": {"fault": "rejected", "status": 400, "message": "no"}}]},
	{"match": "more", "steps": [{"text": "and more", "chunk": 3, "delayMs": 4}]},
	{"steps": [{"repeat": {"times": 300, "steps": [{"text": "on we go"}, {"finish": "stop"}]}}]}]}`

// talk is one random conversation: a session, the process that works in it, the connections there are and were.
type talk struct {
	t       *rapid.T
	w       *peers.World
	p       *process
	id      string
	n       int
	driver  *client
	prompts []string // of driver
	replays map[*client][]string
	joined  map[*client]int // lines told of what was before
	all     []*client
}

func (k *talk) env() rindv2.Envelope {
	if rapid.Bool().Draw(k.t, "json-rpc") {
		return rindv2.JSONRPC
	}
	return rindv2.Rind
}

// begin starts a process and its driving connection.
func (k *talk) begin() {
	k.n++
	k.p = launch(k.t, k.w, fmt.Sprint("p", k.n), conversation, session.SessionID(k.id))
	k.driver = k.p.connect(k.env())
	k.all = append(k.all, k.driver)
	k.prompts = nil
	id := k.driver.hello()
	if k.id != "" && id != k.id {
		k.t.Fatalf("opened session %s, not %s", id, k.id)
	}
	k.id = id
}

// saved reports whether anything of the session is stored: a draft goes with its process.
func (k *talk) saved() bool {
	k.driver.settle()
	_, err := k.p.Store.Session(context.Background(), session.SessionID(k.id))
	return err == nil
}

func (k *talk) step() {
	switch rapid.SampledFrom([]string{"prompt", "prompt", "sleep", "sleep", "steer", "cancel", "answer", "replay", "watch", "end", "kill", "resume"}).Draw(k.t, "step") {
	case "prompt":
		input := rapid.SampledFrom([]string{"text", "look", "touch", "fail"}).Draw(k.t, "input")
		k.prompts = append(k.prompts, k.driver.send("session/prompt", `{"input":"`+input+`"}`))
	case "resume":
		k.prompts = append(k.prompts, k.driver.send("session/prompt", `{"resume":true}`))
	case "sleep":
		time.Sleep(time.Duration(rapid.IntRange(1, 120).Draw(k.t, "ms")) * time.Millisecond)
	case "steer":
		method := rapid.SampledFrom([]string{"steer", "follow_up"}).Draw(k.t, "queue")
		k.driver.send("rind/session/"+method, `{"input":"more"}`)
	case "cancel":
		k.driver.send("session/cancel", `{}`)
	case "answer":
		for _, l := range slices.Backward(k.driver.settle()) {
			if l.has("approval_requested") {
				option := rapid.SampledFrom([]string{"allow_once", "reject_once"}).Draw(k.t, "option")
				k.driver.send("rind/approval/respond", `{"action_id":"`+l.text("action_id")+`","option_id":"`+option+`"}`)
				break
			}
		}
	case "replay":
		k.replays[k.driver] = append(k.replays[k.driver], k.driver.send("session/replay", fmt.Sprintf(`{"after_cursor":%d}`, rapid.IntRange(0, 40).Draw(k.t, "after"))))
	case "watch":
		if !k.saved() {
			return
		}
		c := k.p.connect(k.env())
		c.hello()
		c.call("session/subscribe", `{"session_id":"`+k.id+`","after_cursor":0}`)
		k.all = append(k.all, c)
		k.joined[c] = len(c.settle())
	case "end":
		if !k.saved() {
			return
		}
		k.p.end()
		k.begin()
	case "kill":
		if !k.saved() {
			return
		}
		k.p.kill()
		k.begin()
	}
}

// finish lets everything end: what waits is withdrawn or run, what is open closed.
func (k *talk) finish() {
	for _, id := range slices.Backward(k.prompts) {
		k.driver.send("session/cancel", `{"request_id":`+id+`}`)
	}
	k.driver.response(k.driver.send("session/cancel", `{}`))
	k.driver.call("session/prompt", `{"input":"text"}`)
}

// logged is every durable event of the session as replay has it, by cursor, and the text of each turn's messages.
func (k *talk) logged() (byCursor map[int64]string, texts map[string]string) {
	byCursor, texts = map[int64]string{}, map[string]string{}
	for after := int64(0); ; {
		p := pageOf(k.t, k.driver.call("session/replay", fmt.Sprintf(`{"after_cursor":%d,"limit":%d}`, after, rapid.IntRange(1, 50).Draw(k.t, "limit"))))
		for _, e := range p.Events {
			l, err := readLine(rindv2.Rind, e)
			if err != nil {
				k.t.Fatal(err)
			}
			if l.cursor <= after || l.seq != l.cursor {
				k.t.Errorf("after cursor %d: %s", after, l.raw)
			}
			after = l.cursor
			byCursor[l.cursor] = bare(l)
			if l.has("assistant_message_completed") {
				texts[l.turn] += l.text("content")
			}
		}
		if !p.More {
			return byCursor, texts
		}
	}
}

func (k *talk) check() {
	byCursor, texts := k.logged()
	stored := k.p.durables(k.id)
	if len(stored) != len(byCursor) {
		k.t.Errorf("replay has %d durable events, the log %d", len(byCursor), len(stored))
	}
	k.p.Sound(k.id)
	for _, c := range k.all {
		lines := c.settle()
		gapFree(k.t, lines)
		last := int64(0)
		whole := map[string]bool{} // turns told from their start
		seen := map[string]bool{}
		ended := map[string]bool{}
		answers := map[string]bool{}
		for i, l := range lines {
			if l.id != "" {
				if answers[l.id] {
					k.t.Errorf("answered twice: %s", l.raw)
				}
				answers[l.id] = true
			}
			if l.cursor > 0 {
				if l.cursor <= last {
					k.t.Errorf("cursor %d after %d", l.cursor, last)
				}
				last = l.cursor
				if byCursor[l.cursor] != bare(l) {
					k.t.Errorf("told     %s\nreplayed %s", bare(l), byCursor[l.cursor])
				}
			}
			if l.turn == "" || l.method == "" {
				continue
			}
			if ended[l.turn] {
				k.t.Errorf("after the terminal of its turn: %s", l.raw)
			}
			ended[l.turn] = terminal(l)
			if i >= k.joined[c] && l.has("turn_started") && l.text("origin") == "user" {
				whole[l.turn] = true
			}
			seen[l.turn] = true
		}
		for turn := range seen {
			said := told(lines, turn)
			switch {
			case whole[turn] && ended[turn] && said != texts[turn]:
				k.t.Errorf("turn %s: told %q, stored %q", turn, said, texts[turn])
			case ended[turn] && said != "" && !strings.HasSuffix(texts[turn], said),
				whole[turn] && !strings.HasPrefix(texts[turn], said), !strings.Contains(texts[turn], said):
				k.t.Errorf("turn %s: told %q, which is lost; stored %q", turn, said, texts[turn])
			}
		}
		for _, id := range k.replays[c] {
			if !answers[id] {
				continue // its process died
			}
			barrier(k.t, lines, c.response(id))
		}
	}
	for _, id := range k.prompts {
		var r struct{ Outcome string }
		if l := k.driver.response(id); l.err == nil && (json.Unmarshal(l.result, &r) != nil || r.Outcome == "") {
			k.t.Errorf("answer to a prompt: %s", l.raw)
		}
	}
	ends := map[session.TurnID]int{}
	for _, e := range k.p.Entries(k.id) {
		switch e.Kind {
		case protocol.KindTurnCompleted, protocol.KindTurnFailed, protocol.KindTurnCancelled:
			ends[e.Turn]++
		}
	}
	for turn, n := range ends {
		if n != 1 {
			k.t.Errorf("turn %s has %d terminals", turn, n)
		}
	}
}

// inBubble hides from rapid that its test has a deadline to ask for, which a bubble does not allow.
type inBubble struct{ *testing.T }

// TestWhateverHappensReplayIsWhatWasTold holds a random conversation: prompts, queued inputs, cancels, approvals, watchers that join from the
// beginning, processes that end or die. Every connection is told what the log says, in its order.
func TestWhateverHappensReplayIsWhatWasTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 3 { // rounds of 100
			rapid.Check(inBubble{t}, func(rt *rapid.T) {
				k := &talk{t: rt, w: peers.NewWorld(), replays: map[*client][]string{}, joined: map[*client]int{}}
				k.begin()
				defer func() { k.p.end() }()
				for range rapid.IntRange(1, 25).Draw(rt, "steps") {
					k.step()
				}
				k.finish()
				k.check()
			})
		}
	})
}
