package dispatcher_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// page is a result of session/replay.
type page struct {
	Events []json.RawMessage
	Cursor int64
	More   bool  `json:"has_more"`
	Head   int64 `json:"head_cursor"`
	AsOf   int64 `json:"as_of_sequence"`
	Live   *struct {
		Turn string `json:"turn_id"`
		Text string `json:"assistant_text"`
	} `json:"live_turn"`
}

func pageOf(t peers.T, l *line) page {
	t.Helper()
	var p page
	if l.err != nil {
		t.Fatalf("replay: %s", l.raw)
	}
	if err := json.Unmarshal(l.result, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// barrier checks that a replay's answer separates what its snapshot holds from what it does not.
func barrier(t peers.T, lines []*line, answer *line) {
	t.Helper()
	at := place(lines, func(l *line) bool { return l == answer })
	p := pageOf(t, answer)
	last := int64(0)
	for i, l := range events(lines[:at]) {
		last = int64(i + 1)
		if l.cursor > p.Head {
			t.Errorf("cursor %d was told before a snapshot with head %d", l.cursor, p.Head)
		}
	}
	if p.AsOf != last {
		t.Errorf("as_of_sequence is %d, the last one written was %d", p.AsOf, last)
	}
	for _, l := range lines[at:] {
		if l.cursor > 0 && l.cursor <= p.Head {
			t.Errorf("cursor %d was told after a snapshot with head %d", l.cursor, p.Head)
		}
	}
}

func TestReplayIsABarrierBetweenWhatItHoldsAndWhatComesLater(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"match": "go", "steps": [
			{"text": "`+strings.Repeat("abcdefghij", 40)+`", "chunk": 3, "delayMs": 4},
			{"call": {"id": "c1", "name": "look", "arguments": {}}}, {"call": {"id": "c2", "name": "look", "arguments": {}}}, {"finish": "tool_calls"},
			{"text": "`+strings.Repeat("klmnopqrst", 40)+`", "chunk": 2, "delayMs": 3}]}]}`, "")
		defer p.end()
		c := p.connect(env)
		c.hello()
		prompt := c.send("session/prompt", `{"input":"go"}`)
		var replays []string
		for i := 0; place(c.Got(), func(l *line) bool { return l.id == prompt }) < 0; i++ {
			replays = append(replays, c.send("session/replay", fmt.Sprintf(`{"after_cursor":%d,"limit":%d}`, i%5, 1+i%7)))
			if i%3 == 0 {
				replays = append(replays, c.send("session/replay", `{}`))
			}
			time.Sleep(time.Duration(1+i%13) * time.Millisecond)
		}
		for _, id := range replays {
			c.response(id)
		}
		lines := c.settle()
		gapFree(t, lines)
		texts := 0
		for _, id := range replays {
			answer := c.response(id)
			barrier(t, lines, answer)
			live := pageOf(t, answer).Live
			if live == nil {
				continue
			}
			before := lines[:place(lines, func(l *line) bool { return l == answer })]
			for i, l := range slices.Backward(before) {
				if l.has("assistant_message_completed") {
					before = before[i:]
					break
				}
			}
			if got := told(before, live.Turn); got != live.Text {
				t.Errorf("told %q before a snapshot whose live turn says %q", got, live.Text)
			}
			if live.Text != "" {
				texts++
			}
		}
		if texts < 10 {
			t.Errorf("only %d snapshots fell into a message", texts)
		}
	})
}

func TestBarrierHoldsWhenTheConnectionMovesItsPositionBehindIt(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"match": "one", "steps": [{"text": "first"}]}, {"match": "two", "steps": [{"gate": "go"}, {"text": "second"}]}]}`, "")
		defer p.end()
		c := p.connectDeaf(env) // so that everything asked is answered at once, later
		c.ask("1", "initialize", `{"client_capabilities":["rind/approvals"]}`)
		c.ask("2", "session/prompt", `{"input":"one"}`)
		c.settle()
		c.ask("3", "session/prompt", `{"input":"two"}`)
		c.settle()
		c.ask("4", "session/replay", `{"after_cursor":0}`)
		c.settle()
		p.Play.Open("go")
		c.settle()
		c.ask("5", "session/subscribe", `{"after_cursor":0}`)
		c.settle()
		c.Hear()
		c.response("3")
		lines := c.settle()
		gapFree(t, lines)
		answer := c.response("4")
		at := place(lines, func(l *line) bool { return l == answer })
		head := pageOf(t, answer).Head
		for _, l := range lines[:at] {
			if l.cursor > head {
				t.Errorf("cursor %d was told before a snapshot with head %d", l.cursor, head)
			}
		}
		if got, want := cursors(lines[place(lines, func(l *line) bool { return l.id == "5" }):]), p.durables(p.only()); !slices.Equal(got, want) {
			t.Errorf("durable events told after subscribing from 0: %v, stored %v", got, want)
		}
	})
}

func TestPromptIsAnsweredAfterItsTerminalAndNothingOfItsTurnFollows(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"match": "p", "steps": [{"text": "some text", "chunk": 1, "delayMs": 1}]}]}`, "")
		defer p.end()
		c := p.connect(env)
		c.hello()
		var ids []string
		for i := range 9 {
			ids = append(ids, c.send("session/prompt", fmt.Sprintf(`{"input":"p%d"}`, i)))
		}
		for _, id := range ids {
			turn := c.response(id).text("turn_id")
			lines := c.Got()
			answer := place(lines, func(l *line) bool { return l.id == id })
			end := place(lines, func(l *line) bool { return l.turn == turn && terminal(l) })
			if end < 0 || end > answer {
				t.Errorf("answer at line %d, terminal of its turn at %d", answer, end)
			}
			if late := place(lines[end+1:], func(l *line) bool { return l.turn == turn }); late >= 0 {
				t.Errorf("after the terminal of its turn: %s", lines[end+1+late].raw)
			}
		}
	})
}

func TestPromptOfAConnectionThatUnsubscribedIsAnsweredWithoutEvents(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `[{"text": "before"}, {"gate": "go"}, {"text": "after"}]`, "")
		defer p.end()
		c := p.connect(env)
		c.hello()
		prompt := c.send("session/prompt", `{"input":"x"}`)
		c.event("assistant_delta")
		c.call("session/unsubscribe", `{}`)
		n := len(events(c.settle()))
		p.Play.Open("go")
		if l := c.response(prompt); l.err != nil || l.text("outcome") != "completed" {
			t.Errorf("answer: %s", l.raw)
		}
		if more := events(c.settle())[n:]; len(more) > 0 {
			t.Errorf("told after unsubscribing: %s", more[0].raw)
		}
	})
}

var sequence = regexp.MustCompile(`"sequence":[0-9]+,`)

// bare is a line without the number it has on its connection.
func bare(l *line) string { return sequence.ReplaceAllString(l.raw, "") }

func TestSubscribeAfterACursorTellsDurableEventsThenTheOpenTextThenGoesLive(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [
			{"match": "one", "steps": [{"text": "first"}, {"call": {"id": "c1", "name": "look", "arguments": {}}}, {"finish": "tool_calls"}, {"text": "answer"}]},
			{"match": "two", "steps": [{"text": "half of it, "}, {"gate": "a"}, {"text": "more, "}, {"gate": "b"}, {"text": "rest"}]}]}`, "")
		defer p.end()
		a := p.connect(env)
		id := a.hello()
		a.call("session/prompt", `{"input":"one"}`)
		prompt := a.send("session/prompt", `{"input":"two"}`)
		a.settle()
		p.Play.Open("a")
		time.Sleep(50 * time.Millisecond)

		b := p.connect(env)
		b.hello()
		sub := b.call("session/subscribe", `{"session_id":"`+id+`","after_cursor":4}`)
		joined := b.settle()
		at := place(joined, func(l *line) bool { return l == sub })
		if early := events(joined[:at]); len(early) > 0 {
			t.Errorf("told before the answer: %s", early[0].raw)
		}
		last := joined[len(joined)-1]
		if !last.has("assistant_delta") || last.text("text") != "half of it, more, " {
			t.Errorf("the open text is not told in one piece: %s", last.raw)
		}
		p.Play.Open("b")
		a.response(prompt)
		lines := b.settle()
		gapFree(t, lines)
		if got, want := cursors(lines), p.durables(id); !slices.Equal(got, want[1:]) {
			t.Errorf("durable events told %v, stored %v", got, want)
		}
		turn := a.response(prompt).text("turn_id")
		if got := told(lines, turn); got != "half of it, more, rest" {
			t.Errorf("told %q", got)
		}
		// What both were told is the same, but for its number.
		byA := map[int64]string{}
		for _, l := range a.Got() {
			if l.cursor > 0 {
				byA[l.cursor] = bare(l)
			}
		}
		for _, l := range lines {
			if l.cursor > 0 && byA[l.cursor] != bare(l) {
				t.Errorf("cursor %d:\nlive  %s\nafter %s", l.cursor, byA[l.cursor], bare(l))
			}
		}

		// Subscribing again moves the position.
		b.call("session/subscribe", `{"session_id":"`+id+`","after_cursor":0}`)
		if got, want := cursors(b.settle()[len(lines):]), p.durables(id); !slices.Equal(got, want) {
			t.Errorf("durable events told again %v, stored %v", got, want)
		}
	})
}

func TestConnectionsOfOneProcessAreToldTheSame(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"match": "go", "steps": [{"text": "`+strings.Repeat("word ", 50)+`", "chunk": 5, "delayMs": 9}, {"call": {"id": "c1", "name": "touch", "arguments": {}}}, {"finish": "tool_calls"}, {"text": "done"}]}]}`, "")
		defer p.end()
		a, b := p.connect(env), p.connect(rindv2.Rind)
		id := a.hello()
		b.hello()
		b.call("session/subscribe", `{"session_id":"`+id+`"}`)
		prompt := a.send("session/prompt", `{"input":"go"}`)
		action := b.event("approval_requested").text("action_id")
		b.call("rind/approval/respond", `{"session_id":"`+id+`","action_id":"`+action+`","option_id":"allow_once"}`)
		a.response(prompt)
		var la, lb []string
		for _, l := range events(a.settle()) {
			la = append(la, l.raw)
		}
		for _, l := range events(b.settle()) {
			lb = append(lb, l.raw)
		}
		if !slices.Equal(la, lb) {
			t.Errorf("one connection was told\n%s\nthe other\n%s", strings.Join(la, "\n"), strings.Join(lb, "\n"))
		}
		if n := p.tools.touched.Load(); n != 1 {
			t.Errorf("the tool ran %d times", n)
		}
	})
}

func TestSubscribingBehindTheEndGoesLiveFromTheEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"match": "p", "steps": [{"text": "text"}]}]}`, "")
		defer p.end()
		c := p.connect(env)
		id := c.hello()
		c.call("session/subscribe", `{"after_cursor":1000}`) // of a draft
		c.call("session/prompt", `{"input":"p1"}`)
		c.call("session/subscribe", `{"after_cursor":1000}`)
		answer := c.call("session/prompt", `{"input":"p2"}`)
		lines := c.settle()
		if got, want := cursors(lines), p.durables(id); !slices.Equal(got, want) {
			t.Errorf("durable events told %v, stored %v", got, want)
		}
		if lines[len(lines)-1] != answer {
			t.Errorf("told after the answer: %s", lines[len(lines)-1].raw)
		}
	})
}

func TestMovingAPositionKeepsNoSessionOpen(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		w := peers.NewWorld()
		first := launch(t, w, "first", `[{"text": "text"}]`, "")
		c := first.connect(env)
		id := c.hello()
		c.call("session/prompt", `{"input":"x"}`)
		first.end()

		p := launch(t, w, "second", `[{"text": "text"}]`, "")
		defer p.end()
		c = p.connect(env)
		c.hello()
		for range 3 {
			c.call("session/subscribe", `{"session_id":"`+id+`","after_cursor":0}`)
		}
		ref, err := p.All.Open(t.Context(), session.SessionID(id))
		if err != nil {
			t.Fatal(err)
		}
		ref.Close()
		c.settle()
		if !ref.Inspect(func(*session.View) {}) {
			t.Error("a session that is followed was closed")
		}
		c.call("session/unsubscribe", `{"session_id":"`+id+`"}`)
		c.settle()
		if ref.Inspect(func(*session.View) {}) {
			t.Error("a session nobody follows any more stays open")
		}
	})
}

// A connection that joins a message is told the rest of it, no more and no less: what was said before is in the snapshots it can ask for.
func TestAConnectionThatJoinsAMessageIsToldTheRestOfIt(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `[{"text": "said before; "}, {"gate": "go"}, {"text": "said ünder way; "}, {"gate": "on"}, {"text": "the rest"}]`, "")
		defer p.end()
		a := p.connect(env)
		id := a.hello()
		prompt := a.send("session/prompt", `{"input":"x"}`)
		a.settle()
		for _, gate := range []string{"go", "on"} {
			b := p.connect(env)
			b.hello()
			b.call("session/subscribe", `{"session_id":"`+id+`"}`)
			p.Play.Open(gate)
			b.await("text", func(l *line) bool { return l.has("assistant_delta") })
		}
		turn := a.response(prompt).text("turn_id")
		for i, want := range []string{"said before; said ünder way; the rest", "said ünder way; the rest", "the rest"} {
			if got := told(p.clients[i].settle(), turn); got != want {
				t.Errorf("connection %d was told %q, want %q", i, got, want)
			}
		}
	})
}
