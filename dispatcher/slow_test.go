package dispatcher_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// only is the id of the only stored session.
func (p *process) only() string {
	p.T.Helper()
	page, _, err := p.Store.Sessions(context.Background(), session.Query{Limit: 10, All: true})
	if err != nil || len(page) != 1 {
		p.T.Fatalf("stored sessions: %v, %v", page, err)
	}
	return string(page[0].ID)
}

// kinds lists the kinds of a log.
func kinds(es []session.Entry) []protocol.Kind {
	var out []protocol.Kind
	for _, e := range es {
		out = append(out, e.Kind)
	}
	return out
}

// durables are the cursors of a log's durable events.
func (p *process) durables(id string) []int64 {
	p.T.Helper()
	es, err := p.Store.Read(context.Background(), session.SessionID(id), 0, 1<<20, protocol.ViewDurable)
	if err != nil {
		p.T.Fatal(err)
	}
	var out []int64
	for _, e := range es {
		out = append(out, int64(e.Seq))
	}
	return out
}

// cursors are those of the durable events a connection was told.
func cursors(lines []*line) []int64 {
	var out []int64
	for _, l := range events(lines) {
		if l.cursor > 0 {
			out = append(out, l.cursor)
		}
	}
	return out
}

func TestClientThatNeverReadsHoldsNobodyUpAndLosesNoDurableEvent(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		long := strings.Repeat("ten chars.", 400)
		w := peers.NewWorld()
		p := launch(t, w, "p", `{"turns": [
			{"match": "long", "steps": [{"text": "`+long+`", "chunk": 10, "delayMs": 26}]},
			{"match": "hang", "steps": [{"text": "unfinished"}, {"hang": true}]}]}`, "")
		defer p.end()

		deaf := p.connectDeaf(env)
		deaf.ask("1", "initialize", `{"client_capabilities":["rind/approvals"]}`)
		deaf.ask("2", "session/prompt", `{"input":"long"}`)
		time.Sleep(time.Second)
		id := p.only()

		other := p.connect(env)
		other.hello()
		other.call("session/subscribe", `{"session_id":"`+id+`"}`)
		other.event("turn_completed")

		deaf.ask("3", "session/prompt", `{"input":"hang"}`)
		deaf.ask("4", "ping", "")
		other.await("the second turn's text", func(l *line) bool { return l.has("assistant_delta") && l.text("text") == "unfinished" })
		deaf.ask("5", "session/cancel", `{}`)
		other.event("turn_cancelled")
		p.Sound(id)
		if n := len(deaf.Got()); n > 0 {
			t.Fatalf("the deaf client read %d lines", n)
		}

		deaf.Hear()
		for _, answer := range []string{"1", "2", "3", "4", "5"} {
			if l := deaf.response(answer); l.err != nil {
				t.Errorf("answer to %s: %s", answer, l.raw)
			}
		}
		lines := deaf.settle()
		gapFree(t, lines)
		turn := deaf.response("2").text("turn_id")
		if got := told(lines, turn); got != long {
			t.Errorf("told %d characters, the message has %d", len(got), len(long))
		}
		if got, want := cursors(lines), p.durables(id); !slices.Equal(got, want) {
			t.Errorf("durable events told %v, stored %v", got, want)
		}
		pieces := 0
		for _, k := range kinds(p.Entries(id)) {
			if k == protocol.KindAssistantDelta {
				pieces++
			}
		}
		deltas := 0
		for _, l := range lines {
			if l.has("assistant_delta") {
				deltas++
			}
		}
		if deltas*10 > pieces {
			t.Errorf("a client that lags was told %d pieces of %d one by one", deltas, pieces)
		}
	})
}

func TestReaderThatStopsForAWhileIsToldEachMessageInFull(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		text := strings.Repeat("0123456789", 300)
		p := launch(t, peers.NewWorld(), "p", `[{"text": "`+text+`", "chunk": 7, "delayMs": 30}, {"call": {"id": "c1", "name": "look", "arguments": {}}}, {"finish": "tool_calls"}, {"text": "`+text+`", "chunk": 9, "delayMs": 30}]`, "")
		defer p.end()
		c := p.connectDeaf(env)
		c.ask("1", "initialize", `{"client_capabilities":["rind/approvals"]}`)
		c.ask("2", "session/prompt", `{"input":"go"}`)
		time.Sleep(5 * time.Second) // in the middle of the first message
		c.Hear()
		done := c.response("2")
		if done.err != nil {
			t.Fatal(done.raw)
		}
		lines := c.Got()
		gapFree(t, lines)
		var open strings.Builder
		messages := 0
		for _, l := range lines {
			switch {
			case l.has("assistant_delta"):
				open.WriteString(l.text("text"))
			case l.has("assistant_message_completed"):
				messages++
				if l.text("content") != open.String() {
					t.Errorf("message %d has %d characters, told were %d before it", messages, len(l.text("content")), open.Len())
				}
				open.Reset()
			}
		}
		if messages != 2 {
			t.Errorf("%d messages, want 2", messages)
		}
		if got, want := cursors(lines), p.durables(done.text("session_id")); !slices.Equal(got, want) {
			t.Errorf("durable events told %v, stored %v", got, want)
		}
	})
}
