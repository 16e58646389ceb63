package testkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

func user(text string) session.Message { return session.Message{Role: session.RoleUser, Text: text} }

func said(text string) session.Message {
	return session.Message{Role: session.RoleAssistant, Text: text}
}

func calls(ids ...string) session.Message {
	m := session.Message{Role: session.RoleAssistant}
	for _, id := range ids {
		m.Calls = append(m.Calls, session.Call{ID: id, Name: "x", Arguments: json.RawMessage(`{}`)})
	}
	return m
}

func result(id string) session.Message {
	return session.Message{Role: session.RoleTool, CallID: id, ToolName: "x", Text: "{}"}
}

func withArguments(raw string) []session.Message {
	m := calls("a")
	m.Calls[0].Arguments = json.RawMessage(raw)
	return []session.Message{user("q"), m, result("a")}
}

func TestAStrictHistoryIsWhatEveryProviderTakes(t *testing.T) {
	noName := calls("a")
	noName.Calls[0].Name = ""
	otherTool := result("a")
	otherTool.ToolName = "y"
	spoken := calls("a")
	spoken.Role = session.RoleUser
	for _, c := range []struct {
		name     string
		messages []session.Message
		want     string // "" for a good history
	}{
		{"a question", []session.Message{user("q")}, ""},
		{"a system message first", []session.Message{{Role: session.RoleSystem, Text: "s"}, user("q"), said("a")}, ""},
		{"an image and no text", []session.Message{{Role: session.RoleUser, Parts: []protocol.Part{{Kind: "image"}}}}, ""},
		{"results in another order", []session.Message{user("q"), calls("a", "b"), result("b"), result("a"), said("done")}, ""},
		{"escaped pairs and backslashes", withArguments(`{"a":"\ud83d\ude00 \\ud800 \\"}`), ""},
		{"nothing", nil, "no messages"},
		{"an answer first", []session.Message{said("a")}, "message 0"},
		{"a result first", []session.Message{result("a")}, "message 0"},
		{"an unknown role", []session.Message{user("q"), {Role: "robot", Text: "a"}}, "no such role"},
		{"an empty question", []session.Message{user("")}, "is empty"},
		{"an empty system message", []session.Message{{Role: session.RoleSystem}, user("q")}, "is empty"},
		{"an empty answer", []session.Message{user("q"), said("")}, "says nothing"},
		{"reasoning alone", []session.Message{user("q"), {Role: session.RoleAssistant, Reasoning: []session.Reasoning{{Text: "hm"}}}}, "says nothing"},
		{"a call without result at the end", []session.Message{user("q"), calls("a")}, `one of them "a"`},
		{"a call without result in between", []session.Message{user("q"), calls("a"), user("q2")}, "message 2 (user) stands before the results"},
		{"one of two results", []session.Message{user("q"), calls("b", "a"), result("b"), said("x")}, `results of 1 calls, one of them "a"`},
		{"two results", []session.Message{user("q"), calls("a"), result("a"), result("a")}, "has its result in message 2 already"},
		{"a result nobody asked for", []session.Message{user("q"), said("a"), result("a")}, "nobody made"},
		{"a result of another tool", []session.Message{user("q"), calls("a"), otherTool}, `names tool "y"`},
		{"an id used twice", []session.Message{user("q"), calls("a"), result("a"), calls("a"), result("a")}, "used twice"},
		{"an id used twice in one message", []session.Message{user("q"), calls("a", "a"), result("a")}, "used twice"},
		{"no id", []session.Message{user("q"), calls(""), result("")}, "has no id"},
		{"no tool name", []session.Message{user("q"), noName, result("a")}, "names no tool"},
		{"a call of the user", []session.Message{spoken}, "only the assistant"},
		{"no arguments", withArguments(""), "no JSON object"},
		{"arguments that are a list", withArguments(`[]`), "no JSON object"},
		{"arguments that break off", withArguments(`{"a":`), "no JSON object"},
		{"half a surrogate pair", withArguments(`{"a":"\ud83d"}`), "surrogate"},
		{"the wrong half", withArguments(`{"a":"\ude00"}`), "surrogate"},
		{"two first halves", withArguments(`{"a":"\ud83d\ud83d"}`), "surrogate"},
		{"invalid UTF-8 in a text", []session.Message{user("a\xff")}, "UTF-8"},
		{"invalid UTF-8 in arguments", withArguments("{\"a\":\"\xff\"}"), "UTF-8"},
		{"invalid UTF-8 in reasoning", []session.Message{user("q"), {Role: session.RoleAssistant, Text: "a", Reasoning: []session.Reasoning{{Text: "\xc3"}}}}, "UTF-8"},
		{"invalid UTF-8 in a part", []session.Message{{Role: session.RoleUser, Parts: []protocol.Part{{Name: "\xc3"}}}}, "UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := testkit.StrictHistory(c.messages)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// Whatever a good conversation looks like, it is taken; with any one result missing, doubled or moved it is not.
func TestAStrictHistoryMissesNoResult(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		messages := []session.Message{user("q")}
		var results []int
		for step := range rapid.IntRange(1, 6).Draw(rt, "steps") {
			if rapid.Bool().Draw(rt, "talk") {
				messages = append(messages, said("a"), user("q"))
				continue
			}
			ids := make([]string, rapid.IntRange(1, 4).Draw(rt, "calls"))
			for i := range ids {
				ids[i] = fmt.Sprintf("c%d_%d", step, i)
			}
			messages = append(messages, calls(ids...))
			for _, id := range rapid.Permutation(ids).Draw(rt, "order") {
				results = append(results, len(messages))
				messages = append(messages, result(id))
			}
		}
		if err := testkit.StrictHistory(messages); err != nil {
			rt.Fatalf("a good history is refused: %v", err)
		}
		if len(results) == 0 {
			return
		}
		i := rapid.SampledFrom(results).Draw(rt, "result")
		bad := map[string][]session.Message{
			"missing": slices.Delete(slices.Clone(messages), i, i+1),
			"doubled": slices.Insert(slices.Clone(messages), i, messages[i]),
			"late":    append(slices.Delete(slices.Clone(messages), i, i+1), user("q"), messages[i]),
		}
		for name, b := range bad {
			if testkit.StrictHistory(b) == nil {
				rt.Fatalf("a history with result %d %s is taken", i, name)
			}
		}
	})
}

type counting struct{ asked int }

func (c *counting) Generate(context.Context, session.ModelRequest) iter.Seq2[session.Chunk, error] {
	c.asked++
	return func(yield func(session.Chunk, error) bool) {
		yield(session.Chunk{Kind: session.ChunkFinish, Finish: session.FinishStop}, nil)
	}
}

func TestTheDoubleStandsBeforeAModel(t *testing.T) {
	inner := &counting{}
	m := testkit.Strict(inner)
	for range m.Generate(t.Context(), session.ModelRequest{Messages: []session.Message{user("q")}}) {
	}
	var last error
	for _, err := range m.Generate(t.Context(), session.ModelRequest{Messages: []session.Message{user("q"), calls("a")}}) {
		last = err
	}
	failed, ok := errors.AsType[*session.ModelError](last)
	if !ok || failed.Fault != session.FaultRejected || failed.Status != 400 || inner.asked != 1 {
		t.Errorf("error %v, the model was asked %d times", last, inner.asked)
	}
}

func TestIDsAreTheSameInEveryRunAndUniqueWhenCut(t *testing.T) {
	var ids testkit.IDs
	got := []string{ids.Hex32(), ids.Hex32()}
	if d := cmp.Diff([]string{"00000001000000010000000100000001", "00000002000000020000000200000002"}, got); d != "" {
		t.Error(d)
	}
	if a, b := protocol.NewSessionID(&ids, testkit.Epoch), protocol.NewSessionID(&ids, testkit.Epoch); a == b {
		t.Errorf("two sessions of one second are both %s", a)
	}
}
