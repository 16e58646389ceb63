package rindv2_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
)

// told lists events as "type id text", with ! behind durable ones.
func told(envs []protocol.Envelope) []string {
	var out []string
	for _, e := range envs {
		var ev struct {
			Type  string `json:"type"`
			ID    string `json:"event_id"`
			Text  string `json:"text"`
			Delta string `json:"delta"`
		}
		if err := json.Unmarshal(e.Event, &ev); err != nil {
			out = append(out, "bad event "+string(e.Event))
			continue
		}
		mark := ""
		if e.Durable {
			mark = "!"
		}
		out = append(out, strings.TrimSpace(ev.Type+mark+" "+ev.ID+" "+ev.Text+ev.Delta))
	}
	return out
}

func delta(message string, offset int, text string) protocol.Body {
	return &protocol.AssistantDelta{Text: text, More: protocol.AssistantPiece{MessageID: message, Offset: offset}}
}

func message(id, text string) protocol.Body {
	return &protocol.AssistantMessageCompleted{Content: text, ContentChars: protocol.CharLen(text), MessageID: id}
}

// log makes entries 1, 2, 3 … whose event ids are e1, e2, e3 …
func log(t testing.TB, bodies ...protocol.Body) []protocol.Entry {
	var out []protocol.Entry
	for i, b := range bodies {
		out = append(out, entry(t, protocol.Seq(i+1), fmt.Sprintf("e%d", i+1), b))
	}
	return out
}

func TestALaggingFollowerIsToldPiecesOfATextAsOne(t *testing.T) {
	input := func(call, d string) protocol.Body {
		return &protocol.ToolInputDelta{ToolCallID: call, ToolName: "bash", Delta: d}
	}
	stats := func(n int) protocol.Body { return &protocol.TokenStatsUpdated{Stats: protocol.Stats{InputTokens: n}} }
	progress := func(call string) protocol.Body { return &protocol.ToolProgress{ToolCallID: call} }
	tool := &protocol.ToolRequested{ToolCallID: "c", Arguments: json.RawMessage("{}")}
	for _, c := range []struct {
		name string
		log  []protocol.Body
		want []string
	}{
		{
			"of one message, with the id of the last",
			[]protocol.Body{delta("m1", 0, "a\"é"), delta("m1", 3, "\n\u2028"), delta("m1", 5, "c"), message("m1", "a\"é\n\u2028c")},
			[]string{"assistant_delta e3 a\"é\n\u2028c", "assistant_message_completed! e4"},
		},
		{
			"not across messages",
			[]protocol.Body{delta("m1", 0, "a"), delta("m1", 1, "b"), delta("m2", 0, "c"), delta("m2", 1, "d")},
			[]string{"assistant_delta e2 ab", "assistant_delta e4 cd"},
		},
		{
			"nor across a durable event, nor another kind",
			[]protocol.Body{delta("m1", 0, "a"), tool, delta("m1", 1, "b"), &protocol.ReasoningDelta{Text: "r"}, delta("m1", 2, "c")},
			[]string{"assistant_delta e1 a", "tool_requested! e2", "assistant_delta e3 b", "reasoning_delta e4 r", "assistant_delta e5 c"},
		},
		{
			"of one call",
			[]protocol.Body{input("c1", `{"a`), input("c1", `":1}`), input("c2", "{"), input("c2", "}")},
			[]string{`tool_input_delta e2 {"a":1}`, "tool_input_delta e4 {}"},
		},
		{
			"and only the newest of small news",
			[]protocol.Body{stats(1), stats(2), progress("c1"), progress("c2"), progress("c1"), stats(3), tool, stats(4)},
			[]string{"tool_progress e4", "tool_progress e5", "token_stats_updated e6", "tool_requested! e7", "token_stats_updated e8"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries := log(t, c.log...)
			teller := rindv2.Teller{Session: "s1"}
			if diff := cmp.Diff(c.want, told(teller.Tell(nil, entries, true))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			keeping := rindv2.Teller{Session: "s1"}
			for i, env := range keeping.Tell(nil, entries, false) {
				if string(env.Event) != string(entries[i].Event) {
					t.Errorf("who keeps up is told %s, stored is %s", env.Event, entries[i].Event)
				}
			}
		})
	}
}

func TestWhatAFollowerWasNotToldComesBeforeTheMessage(t *testing.T) {
	whole := log(t, delta("m1", 0, "ab"), delta("m1", 2, "cd"), delta("m1", 4, "ef"), message("m1", "abcdef"))
	rest := "assistant_delta MADE"
	for _, c := range []struct {
		name    string
		entries []protocol.Entry
		known   int // characters, of the snapshot
		want    []string
	}{
		{"nothing is missing", whole, 0, []string{"assistant_delta e1 ab", "assistant_delta e2 cd", "assistant_delta e3 ef", "assistant_message_completed! e4"}},
		{"all pieces are pruned", whole[3:], 0, []string{rest + " abcdef", "assistant_message_completed! e4"}},
		{"the first is", whole[1:], 0, []string{rest + " abcdef", "assistant_message_completed! e4"}},
		{"one in the middle is", append(append([]protocol.Entry{}, whole[:1]...), whole[2:]...), 0, []string{"assistant_delta e1 ab", rest + " cdef", "assistant_message_completed! e4"}},
		{"the snapshot held a part", whole[1:], 2, []string{"assistant_delta e2 cd", "assistant_delta e3 ef", "assistant_message_completed! e4"}},
		{"the snapshot ended within a piece", whole[1:], 3, []string{"assistant_delta e2 d", "assistant_delta e3 ef", "assistant_message_completed! e4"}},
		{"the snapshot held pieces that come again", whole, 4, []string{"assistant_delta e3 ef", "assistant_message_completed! e4"}},
		{"the snapshot held all", whole, 6, []string{"assistant_message_completed! e4"}},
		{"no piece was ever there", log(t, message("m9", "x"))[:1], 0, []string{rest + " x", "assistant_message_completed! e1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, merge := range []bool{false, true} {
				teller := rindv2.Teller{Session: "s1"}
				if c.known > 0 {
					teller.Resume("5e", "m1", c.known)
				}
				envs := teller.Tell(nil, c.entries, merge)
				got := told(envs)
				for i, s := range got { // the id of a rest is made, 32 digits, and not that of any event
					if f := strings.SplitN(s, " ", 3); f[0] == "assistant_delta" && len(f[1]) == 32 {
						got[i] = rest + " " + f[2]
					}
				}
				if !merge {
					if diff := cmp.Diff(c.want, got); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
				if a, b := texts(envs), texts((&rindv2.Teller{Session: "s1"}).Tell(nil, c.entries, merge)); c.known == 0 && a != b {
					t.Errorf("told %q, then %q", a, b)
				}
				if got := texts(envs); got != content(c.entries)[c.known:] {
					t.Errorf("merged %v: told %q", merge, got)
				}
			}
		})
	}
}

func texts(envs []protocol.Envelope) (all string) {
	for _, e := range envs {
		var ev struct{ Type, Text string }
		_ = json.Unmarshal(e.Event, &ev)
		if ev.Type == "assistant_delta" {
			all += ev.Text
		}
	}
	return all
}

func content(entries []protocol.Entry) (all string) {
	for i := range entries {
		if b, _ := protocol.Decode(&entries[i]); b != nil {
			if m, ok := b.(*protocol.AssistantMessageCompleted); ok {
				all += m.Content
			}
		}
	}
	return all
}

func TestTheIdOfARestIsTheSameForEveryConnection(t *testing.T) {
	e := log(t, message("m1", "x"))
	a := (&rindv2.Teller{Session: "s1"}).Tell(nil, e, false)
	b := (&rindv2.Teller{Session: "s1", Approvals: true}).Tell(nil, e, true)
	if string(a[0].Event) != string(b[0].Event) || protocol.EventID(a[0].Event) == protocol.EventID(e[0].Event) {
		t.Errorf("%s and %s", a[0].Event, b[0].Event)
	}
}

func TestARetryAbandonsTheTextToldOfItsStep(t *testing.T) {
	var retry protocol.TurnStepRetry
	retry.More.MessageID = "m1"
	got := told((&rindv2.Teller{Session: "s1"}).Tell(nil, log(t, delta("m1", 0, "ab"), &retry, delta("m2", 0, "c"), delta("m2", 1, "d"), message("m2", "cd")), true))
	want := []string{"assistant_delta e1 ab", "turn_step_retry e2", "assistant_delta e4 cd", "assistant_message_completed! e5"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Whatever is pruned, wherever pages end, whenever the follower lags, and with turns side by side: every durable event is told once and in
// order, and each message is preceded by exactly its text.
func TestToldTextAlwaysAddsUpToTheMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type open struct {
			id   string
			text string
		}
		var entries []protocol.Entry
		turns := map[protocol.TurnID]*open{}
		ids := 0
		for range rapid.IntRange(1, 60).Draw(t, "entries") {
			turn := rapid.SampledFrom([]protocol.TurnID{"aa", "bb"}).Draw(t, "turn")
			o := turns[turn]
			if o == nil {
				ids++
				o = &open{id: fmt.Sprintf("m%d", ids)}
				turns[turn] = o
			}
			var b protocol.Body
			switch rapid.IntRange(0, 7).Draw(t, "kind") {
			case 0:
				b = message(o.id, o.text)
				delete(turns, turn)
				if o.text == "" {
					continue
				}
			case 1:
				b = &protocol.TokenStatsUpdated{}
			default:
				text := rapid.StringOfN(rapid.SampledFrom([]rune("ab\"\\\n\x01é\u2028😀")), 1, 5, -1).Draw(t, "text")
				b = delta(o.id, protocol.CharLen(o.text), text)
				o.text += text
			}
			e, err := protocol.Encode(protocol.Head{Time: at, EventID: fmt.Sprintf("e%d", len(entries)), Session: "s1", Turn: turn}, b)
			if err != nil {
				t.Fatal(err)
			}
			e.Seq = protocol.Seq(len(entries) + 1)
			entries = append(entries, e)
		}
		teller := rindv2.Teller{Session: "s1"}
		heard := map[protocol.TurnID]string{}
		for len(entries) > 0 {
			n := rapid.IntRange(1, len(entries)).Draw(t, "page")
			var page []protocol.Entry
			var due []protocol.Entry
			for _, e := range entries[:n] {
				if e.Told() == protocol.Durable {
					due = append(due, e)
				}
				if e.Class() == protocol.Increment && rapid.IntRange(0, 4).Draw(t, "pruned") == 0 {
					continue
				}
				page = append(page, e)
			}
			entries = entries[n:]
			for _, env := range teller.Tell(nil, page, rapid.Bool().Draw(t, "lags")) {
				var ev struct{ Type, Text, Content string }
				if err := json.Unmarshal(env.Event, &ev); err != nil {
					t.Fatal(err)
				}
				switch {
				case ev.Type == "assistant_delta":
					heard[env.Turn] += ev.Text
				case env.Durable:
					if len(due) == 0 || string(due[0].Event) != string(env.Event) {
						t.Fatalf("%s is not the next durable event", env.Event)
					}
					due = due[1:]
					if heard[env.Turn] != ev.Content {
						t.Fatalf("told %q of %q", heard[env.Turn], ev.Content)
					}
					heard[env.Turn] = ""
				}
			}
			if len(due) > 0 {
				t.Fatalf("%d durable events were not told", len(due))
			}
		}
	})
}
