package script_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
)

func user(text string) session.Message { return session.Message{Role: session.RoleUser, Text: text} }

func said(text string) session.Message {
	return session.Message{Role: session.RoleAssistant, Text: text}
}

func interrupted(text string) session.Message {
	return session.Message{Role: session.RoleAssistant, Text: text, Interrupted: true}
}

func called(id, name, args string) session.Message {
	return session.Message{Role: session.RoleAssistant, Calls: []session.Call{{ID: id, Name: name, Arguments: []byte(args)}}}
}

func result(id, name, text string) session.Message {
	return session.Message{Role: session.RoleTool, CallID: id, ToolName: name, Text: text}
}

func ask(messages ...session.Message) session.ModelRequest {
	return session.ModelRequest{Model: "m", Session: "s", Messages: messages}
}

// transcript writes a sequence down, one piece a line, so that a test can compare it whole.
func transcript(ctx context.Context, m session.Model, r session.ModelRequest) string {
	var lines []string
	for c, err := range m.Generate(ctx, r) {
		if err != nil {
			lines = append(lines, "error "+err.Error())
			continue
		}
		switch c.Kind {
		case session.ChunkText:
			lines = append(lines, fmt.Sprintf("text %q", c.Text))
		case session.ChunkReasoning:
			lines = append(lines, fmt.Sprintf("reasoning %q", c.Text))
		case session.ChunkOpaque:
			lines = append(lines, "opaque "+string(c.Opaque))
		case session.ChunkCallStart:
			lines = append(lines, "start "+c.CallID+" "+c.Name)
		case session.ChunkCallDelta:
			lines = append(lines, fmt.Sprintf("delta %s %q", c.CallID, c.Text))
		case session.ChunkCallEnd:
			lines = append(lines, fmt.Sprintf("end %s %s %q", c.CallID, c.Name, c.Text))
		case session.ChunkUsage:
			lines = append(lines, fmt.Sprintf("usage %+v", c.Usage))
		case session.ChunkAlive:
			lines = append(lines, "alive")
		case session.ChunkFinish:
			lines = append(lines, "finish "+string(c.Finish))
		}
	}
	return strings.Join(lines, "\n")
}

func TestEachStepPlaysItsChunks(t *testing.T) {
	for _, c := range []struct{ name, steps, want string }{
		{"text", `[{"text":"hi"}]`, "text \"hi\"\nfinish stop"},
		{"text in pieces of characters", `[{"text":"añb→c","chunk":2}]`, "text \"añ\"\ntext \"b→\"\ntext \"c\"\nfinish stop"},
		{"reasoning", `[{"reasoning":"hmm","chunk":2},{"opaque":{"sig":"x"}},{"text":"so"}]`, "reasoning \"hm\"\nreasoning \"m\"\nopaque {\"sig\":\"x\"}\ntext \"so\"\nfinish stop"},
		{
			"a call", `[{"call":{"id":"c1","name":"read_file","arguments":{"path": "a"},"chunk":8}}]`,
			"start c1 read_file\ndelta c1 \"{\\\"path\\\":\"\ndelta c1 \" \\\"a\\\"}\"\nend c1 read_file \"{\\\"path\\\": \\\"a\\\"}\"\nfinish tool_calls",
		},
		{"a call with text that is no JSON", `[{"call":{"id":"c1","name":"x","arguments":"{\"a"}}]`, "start c1 x\ndelta c1 \"{\\\"a\"\nend c1 x \"{\\\"a\"\nfinish tool_calls"},
		{"calls without ids", `[{"call":{"name":"x"}},{"call":{"name":"y"}}]`, "start call_1_1 x\ndelta call_1_1 \"{}\"\nend call_1_1 x \"{}\"\nstart call_1_2 y\ndelta call_1_2 \"{}\"\nend call_1_2 y \"{}\"\nfinish tool_calls"},
		{"usage", `[{"text":"a"},{"usage":{"input":9,"cached":4,"output":2,"reasoning":1}}]`, "text \"a\"\nusage {Input:9 Cached:4 Output:2 Reasoning:1}\nfinish stop"},
		{"a finish", `[{"text":"a"},{"finish":"length"}]`, "text \"a\"\nfinish length"},
		{"a failure", `[{"fail":{"fault":"rate","status":429,"message":"slow down"}}]`, "error rate: slow down"},
		{"a failure by its status", `[{"fail":{"status":503}}]`, "error server: Failure of the script."},
		{"a cut", `[{"text":"a"},{"cut":true}]`, "text \"a\"\nerror cut: the stream ended before it was complete"},
		{"a reset", `[{"text":"a"},{"reset":true}]`, "text \"a\"\nerror cut: connection reset by peer"},
		{"a reset before anything came", `[{"reset":true}]`, "error network: connection reset by peer"},
		{"a repeat", `[{"repeat":{"times":3,"steps":[{"text":"a"},{"alive":true}]}}]`, "text \"a\"\nalive\ntext \"a\"\nalive\ntext \"a\"\nalive\nfinish stop"},
		{"an echo", `[{"echo":true,"chunk":4}]`, "text \"ques\"\ntext \"tion\"\nfinish stop"},
		{"the portable words", `[{"delta":"a"},{"delta":"b"},{"final":"abc"}]`, "text \"a\"\ntext \"b\"\ntext \"c\"\nfinish stop"},
		{"a final that says something else", `[{"delta":"a"},{"final":"b"}]`, "text \"a\"\ntext \"\\n\\nb\"\nfinish stop"},
		{"a portable call", `[{"tool":{"name":"x","arguments":{"a":1},"result":"r","status":"completed"}}]`, "start call_1_1 x\ndelta call_1_1 \"{\\\"a\\\":1}\"\nend call_1_1 x \"{\\\"a\\\":1}\"\nfinish tool_calls"},
		{"a portable failure", `[{"fail":"boom"}]`, "error rejected: boom"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := transcript(t.Context(), script.Must(c.steps), ask(user("question"))); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestWhatAFailureSaysComesThrough(t *testing.T) {
	s := script.Must(`[{"fail":{"fault":"rate","status":429,"message":"m","retryAfterMs":1500}},{"text":"a"},{"reset":true}]`)
	var failed *session.ModelError
	for range 2 {
		for _, err := range s.Generate(t.Context(), ask(user("q"))) {
			if err == nil {
				continue
			}
			if !errors.As(err, &failed) {
				t.Fatalf("%v is no ModelError", err)
			}
		}
		if failed.Fault == session.FaultRate && (failed.Status != 429 || failed.RetryAfter != 1500*time.Millisecond) {
			t.Errorf("failure = %+v", failed)
		}
	}
	if failed.Fault != session.FaultCut || failed.Cause == nil {
		t.Errorf("the second completion did not break: %+v", failed)
	}
}

func TestMistakesInAScriptNameTheirPlace(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"{\n \"turns\": [,]}", "line 2, column 12"},
		{"", "line 1, column 1"},
		{`7`, "is no object"},
		{`{}`, "neither turns nor steps"},
		{`{"turns":[]}`, "neither turns nor steps"},
		{`{"turns":[],"tuns":1}`, `unknown field "tuns"`},
		{`{"turns":[{"steps":[{"text":"a"}]}],"steps":[{"text":"a"}]}`, "one of them is enough"},
		{`{"turns":[{"steps":[{"text":"a"}]},{"match":"x"}]}`, "turns[1]: has no steps"},
		{`{"turns":[{"match":"","steps":[{"text":"a"}]}]}`, "turns[0]: match is empty"},
		{`{"turns":[{"steps":[{"text":"a"},{"txet":"b"}]}]}`, `turns[0].steps[1]: unknown step "txet"`},
		{`[]`, "steps: is empty"},
		{`[7]`, "steps[0]: is no step"},
		{`[null]`, "steps[0]: is no step"},
		{`[{}]`, "steps[0]: has no verb"},
		{`[{"chunk":3}]`, "steps[0]: has no verb"},
		{`[{"text":"a","echo":true}]`, "steps[0]: has two verbs, echo and text"},
		{`[{"text":7}]`, "steps[0]: text is no string"},
		{`[{"text":"a","chunk":0}]`, "steps[0]: chunk"},
		{`[{"text":"a","delayMs":-1}]`, "steps[0]: delayMs"},
		{`[{"sleepMs":5,"chunk":2}]`, "chunk does not go with sleepMs"},
		{`[{"sleepMs":"5"}]`, "steps[0]: sleepMs is no number"},
		{`[{"call":{"nmae":"x"}}]`, `unknown field "nmae"`},
		{`[{"call":{"id":"c"}}]`, "call names no tool"},
		{`[{"call":{"name":"x","arguments":[1]}}]`, "neither an object nor the raw text"},
		{`[{"usage":{"input":1,"cached":2}}]`, "more cached tokens"},
		{`[{"text":"a"},{"usage":{}},{"usage":{}}]`, "steps[2]: usage is told once"},
		{`[{"text":"a"},{"finish":"stop"},{"usage":{}}]`, "steps[2]: usage alone is no completion"},
		{`[{"finish":"end"}]`, "steps[0]: finish is none of"},
		{`[{"fail":{"fault":"rat"}}]`, `steps[0]: fail has fault "rat"`},
		{`[{"fail":{"status":200}}]`, "needs a fault"},
		{`[{"hang":1}]`, "hang can only be true"},
		{`[{"gate":""}]`, "gate is no name"},
		{`[{"expect":{"rule":"tool"}}]`, `unknown field "rule"`},
		{`[{"repeat":{"times":0,"steps":[{"text":"a"}]}}]`, "outside 1 to"},
		{`[{"repeat":{"times":2,"steps":[{"text":"a"},{"oops":1}]}}]`, `steps[0].repeat.steps[1]: unknown step "oops"`},
		{`[{"repeat":{"times":9000000,"steps":[{"repeat":{"times":2,"steps":[{"text":"a"}]}}]}}]`, "counting the repeats around it"},
		{`[{"repeat":{"times":9000000,"steps":[{"cut":true}]}}]`, "repeats completions"},
		{`[{"approval":{"title":"t"}}]`, `step "approval" is for executions`},
		{`[{"input":{"title":"t"}}]`, `step "input" is for executions`},
		{`[{"artifact":{}}]`, `step "artifact" is for executions`},
		{`[{"event":{}}]`, `step "event" is for executions`},
	} {
		if _, err := script.New([]byte(c.script)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%s) = %v, want an error with %q", c.script, err, c.want)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("New(%s): %q is more than a line", c.script, err)
		}
	}
}

func TestTheRequestAloneSaysWhichCompletionIsNext(t *testing.T) {
	const text = `{"turns":[
		{"steps":[{"text":"one"},{"call":{"id":"c1","name":"x"}},{"finish":"tool_calls"},{"text":"two"}]},
		{"match":"weather","steps":[{"call":{"id":"w1","name":"x"}},{"finish":"tool_calls"},{"text":"rain"}]},
		{"match":"weather","steps":[{"text":"snow"}]},
		{"steps":[{"fail":{"status":503}},{"text":"part"},{"cut":true},{"text":"three"}]},
		{"steps":[{"text":"four"}]}
	]}`
	first := []session.Message{user("q"), called("c1", "x", "{}"), result("c1", "x", "r")}
	second := append(first[:3:3], said("two"))
	weather := append(second[:4:4], user("the weather?"), called("w1", "x", "{}"), result("w1", "x", "r"))
	for _, c := range []struct {
		name     string
		messages []session.Message
		want     string
	}{
		{"at the beginning", first[:1], `"one"`},
		{"after a call", first, `"two"`},
		{"a match decides", weather[:5], "start w1"},
		{"the second completion of a match", weather, `"rain"`},
		{"the second message that matches", append(weather[:7:7], said("rain"), user("weather again")), `"snow"`},
		{"the third message that matches", append(weather[:7:7], said("rain"), user("weather again"), said("snow"), user("and the weather?")), `"snow"`},
		{"a match with nothing left", append(weather[:7:7], said("rain"), user("weather again"), said("snow"), result0()), "error server"},
		{"what a match answered does not count for the others", append(weather[:7:7], said("rain"), user("else")), "error server"},
		{"an interrupted message stands for the cut", append(second[:4:4], user("q2"), interrupted("part")), `"three"`},
		{"a whole message stands for one that ended well", append(second[:4:4], user("q2"), said("three"), user("q3")), `"four"`},
		{"nothing left", append(second[:4:4], user("q2"), said("three"), user("q3"), said("four"), user("q4")), "no completion left"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 { // each time a process of its own
				s := script.Must(text, script.Lenient())
				if got := transcript(t.Context(), s, ask(c.messages...)); !strings.Contains(got, c.want) {
					t.Errorf("got\n%s\nwant it to contain %s", got, c.want)
				}
			}
		})
	}
}

// result0 is a message that neither a user nor the assistant wrote.
func result0() session.Message { return session.Message{Role: session.RoleSystem, Text: "go on"} }

func TestARetryGetsTheNextCompletionAndAnotherSessionItsOwn(t *testing.T) {
	s := script.Must(`[{"repeat":{"times":2,"steps":[{"fail":{"status":429}}]}},{"text":"at last"}]`)
	r := ask(user("q"))
	for i, want := range []string{"error rate", "error rate", `"at last"`, "no completion left"} {
		if got := transcript(t.Context(), s, r); !strings.Contains(got, want) {
			t.Errorf("attempt %d: got %s, want %s", i+1, got, want)
		}
	}
	r.Session = "other"
	if got := transcript(t.Context(), s, r); !strings.Contains(got, "error rate") {
		t.Errorf("another session got %s", got)
	}
}

func TestAnInvalidHistoryIsRefused(t *testing.T) {
	orphan := ask(user("q"), called("c1", "x", "{}"), said("later"))
	got := transcript(t.Context(), script.Must(`[{"text":"a"}]`), orphan)
	if !strings.Contains(got, "error rejected: invalid history: message 2") {
		t.Errorf("got %s", got)
	}
	const three = `[{"text":"a"},{"finish":"stop"},{"text":"b"},{"finish":"stop"},{"text":"c"}]`
	for _, s := range []*script.Script{script.Must(three, script.Lenient()), script.Must(`{"strict":false,"steps":` + three + `}`)} {
		if got := transcript(t.Context(), s, orphan); !strings.Contains(got, `"c"`) {
			t.Errorf("lenient: got %s", got)
		}
	}
}

func TestExpectationsFailWithWhatDiffers(t *testing.T) {
	r := ask(session.Message{Role: session.RoleSystem, Text: "be kind"}, user("read a"), called("c", "x", "{}"), result("c", "x", `{"ok":true}`))
	r.Tools = []session.ToolSpec{{Name: "x"}}
	for _, c := range []struct{ expect, want string }{
		{`{}`, `text "fine"`},
		{`{"role":"tool","messages":4,"system":"kind","user":"read","toolResult":"\"ok\":true","tools":["x"],"model":"m"}`, `text "fine"`},
		{`{"role":"user"}`, `expected a last message of role "user", got "tool"`},
		{`{"messages":0}`, "expected 0 messages, got 4"},
		{`{"system":"rude"}`, `expected "rude" in a system message`},
		{`{"user":"write"}`, `expected "write" in the last user message, got "read a"`},
		{`{"toolResult":"false"}`, `expected "false" in a tool result`},
		{`{"tools":["x","y"]}`, `expected tool "y" to be offered`},
		{`{"model":"n"}`, `expected model "n", got "m"`},
		{`{"effort":"high"}`, `expected effort "high", got ""`},
	} {
		s := script.Must(`{"steps":[{"call":{"id":"c","name":"x"}},{"finish":"tool_calls"},{"expect":` + c.expect + `},{"text":"fine"}]}`)
		if got := transcript(t.Context(), s, r); !strings.Contains(got, c.want) {
			t.Errorf("expect %s: got %s, want %s", c.expect, got, c.want)
		} else if strings.HasPrefix(got, "error") && !strings.HasPrefix(got, "error rejected: script steps[2]: ") {
			t.Errorf("expect %s: %s does not name its place", c.expect, got)
		}
	}
}

func TestDelaysTakeTheirTimeAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script.Must(`[{"sleepMs":500},{"text":"abc","chunk":1,"delayMs":100}]`)
		began := time.Now()
		transcript(t.Context(), s, ask(user("q")))
		if took := time.Since(began); took != 700*time.Millisecond {
			t.Errorf("took %v, want 500 ms and two pauses of 100 ms", took)
		}
	})
}

func TestCancellingEndsEveryWaitWithItsCause(t *testing.T) {
	cause := errors.New("user said stop")
	for _, steps := range []string{
		`[{"text":"a"},{"hang":true}]`, `[{"text":"a"},{"sleepMs":60000}]`, `[{"text":"a"},{"gate":"g"}]`, `[{"text":"aaa","chunk":1,"delayMs":60000}]`,
		`[{"text":"a"},{"repeat":{"times":10000000,"steps":[{"sleepMs":1000}]}}]`,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			var last error
			for _, err := range script.Must(steps).Generate(ctx, ask(user("q"))) {
				last = err
			}
			if !errors.Is(last, cause) {
				t.Errorf("%s ended with %v, want the cause of its context", steps, last)
			}
		})
	}
}

func TestAGateHoldsUntilItIsOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script.Must(`[{"text":"a"},{"gate":"g"},{"text":"b"},{"finish":"stop"},{"gate":"g"},{"text":"c"}]`)
		pieces := make(chan string, 10)
		go func() {
			for c := range s.Generate(t.Context(), ask(user("q"))) {
				pieces <- c.Text
			}
			close(pieces)
		}()
		<-s.Reached("g")
		if n := len(pieces); n != 1 {
			t.Errorf("%d pieces passed a closed gate, want the one before it", n)
		}
		s.Open("g")
		s.Open("g")
		<-pieces
		if b := <-pieces; b != "b" {
			t.Errorf("behind the gate came %q", b)
		}
		for range pieces { // to its end
		}
		if got := transcript(t.Context(), s, ask(user("q"))); !strings.Contains(got, `"c"`) {
			t.Errorf("an open gate still holds: %s", got)
		}
	})
}

func TestAConsumerThatStopsIsNotCalledAgain(t *testing.T) {
	s := script.Must(`[{"text":"abcdef","chunk":1}]`)
	n := 0
	for range s.Generate(t.Context(), ask(user("q"))) { // yielding on would panic
		if n++; n == 2 {
			break
		}
	}
}

func TestRequestsAreCopies(t *testing.T) {
	s := script.Must(`[{"text":"a"}]`)
	r := ask(user("q"))
	transcript(t.Context(), s, r)
	r.Messages[0].Text = "changed by the caller"
	s.Requests()[0].Messages[0].Text = "changed by a reader"
	if got := s.Requests(); len(got) != 1 || got[0].Messages[0].Text != "q" {
		t.Errorf("requests = %+v", got)
	}
}

// A million chunks must not cost memory that grows with them.
func TestALongRepeatIsPlayedWithoutWritingItOut(t *testing.T) {
	s := script.Must(`[{"repeat":{"times":1000000,"steps":[{"text":"x"}]}}]`)
	n := 0
	for range s.Generate(t.Context(), ask(user("q"))) {
		n++
	}
	if n != 1_000_001 {
		t.Errorf("%d chunks", n)
	}
}

func FuzzAnyScriptIsRefusedOrPlays(f *testing.F) {
	for _, seed := range []string{
		`[{"text":"a","chunk":1}]`, `{"turns":[{"match":"q","steps":[{"call":{"name":"x","arguments":"{"}}]}]}`, `[{"repeat":{"times":3,"steps":[{"cut":true}]}}]`,
		`{"steps":[{"final":"a"},{"tool":{"name":"x"}},{"hang":true}]}`, `[{"usage":{"input":1}},{"opaque":null}]`,
	} {
		f.Add([]byte(seed))
	}
	noPause := script.Pause(func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) })
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := script.New(data, noPause)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is more than a line", err)
			}
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // for hang and gate
		defer cancel()
		n, ended := 0, false
		for c, err := range s.Generate(ctx, ask(user("q"))) {
			if ended {
				t.Fatal("a piece after the end")
			}
			ended = err != nil || c.Kind == session.ChunkFinish
			if n++; n > 1000 {
				return
			}
		}
		if !ended {
			t.Error("the sequence has no end")
		}
	})
}
