package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// failing plays an error after some text for its first n requests, then answers.
func failing(n int, said string, err error) *model {
	m := &model{}
	m.play = func(_ context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
		if len(m.requests) <= n {
			if said != "" {
				yield(text(said), nil)
			}
			yield(session.Chunk{}, err)
			return
		}
		yield(text("ok"), nil)
		yield(finish(session.FinishStop), nil)
	}
	return m
}

func results(t *testing.T, es []session.Entry) []*protocol.ToolResult {
	t.Helper()
	var out []*protocol.ToolResult
	for i := range es {
		if b, err := protocol.Decode(&es[i]); err != nil {
			t.Fatal(err)
		} else if r, ok := b.(*protocol.ToolResult); ok {
			out = append(out, r)
		}
	}
	return out
}

func TestFaultsOfTheModelAreRetriedOrEndTheTurnAsTheContractSays(t *testing.T) {
	fault := func(f session.Fault) error { return &session.ModelError{Fault: f, Message: "why"} }
	for _, c := range []struct {
		name     string
		n        int
		said     string
		err      error
		requests int
		wait     time.Duration // in all
		want     string        // outcome, or error type of the failed turn
	}{
		{"a cut is retried after 2 s", 1, "par", fault(session.FaultCut), 2, 2 * time.Second, "completed"},
		{"three cuts after 2, 4 and 8 s", 3, "par", fault(session.FaultCut), 4, 14 * time.Second, "completed"},
		{"a fourth cut ends it", 9, "par", fault(session.FaultCut), 4, 14 * time.Second, "StreamInterrupted"},
		{"a busy server is asked five times", 4, "", fault(session.FaultServer), 5, 20 * time.Second, "completed"},
		{"and no sixth", 9, "", fault(session.FaultServer), 5, 20 * time.Second, "ProviderUnavailable"},
		{"Retry-After is kept to", 1, "", &session.ModelError{Fault: session.FaultRate, RetryAfter: 7 * time.Second}, 2, 7 * time.Second, "completed"},
		{"a server error after text is a cut", 1, "par", fault(session.FaultServer), 2, 2 * time.Second, "completed"},
		{"silence", 9, "", fault(session.FaultTimeout), 5, 20 * time.Second, "ProviderTimeout"},
		{"a wrong key", 9, "", fault(session.FaultAuth), 1, 0, "ProviderRejected"},
		{"no key", 9, "", fault(session.FaultConfig), 1, 0, "ConfigurationError"},
		{"an unknown model", 9, "", fault(session.FaultModel), 1, 0, "ProviderRejected"},
		{"no quota", 9, "", fault(session.FaultQuota), 1, 0, "ProviderUnavailable"},
		{"a context that is too long", 9, "", fault(session.FaultContext), 4, 0, "ContextTooLong"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := failing(c.n, c.said, c.err)
			bubble(t, m, nil, func(h *house) {
				s := h.draft()
				began := time.Now()
				o := h.prompt(s, "x")
				got := o.Outcome
				if o.Fault != nil {
					got = o.Fault.Type
				}
				if got != c.want || len(m.requests) != c.requests || time.Since(began).Round(time.Second) != c.wait {
					t.Errorf("%s after %d requests and %v, want %s, %d, %v", got, len(m.requests), time.Since(began), c.want, c.requests, c.wait)
				}
				if n := strings.Count(kinds(h.entries(s.ID)), "turn_step_retry"); c.said != "" && n != min(c.n, 3) {
					t.Errorf("%d retries were told", n)
				}
				h.view(s, func(v *session.View) {
					if n := v.TurnState().Recovery; c.said != "" && n != min(c.n, 3) {
						t.Errorf("recovery_attempt %d", n)
					}
				})
				m.play = func(_ context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
					yield(text("ok"), nil)
					yield(finish(session.FinishStop), nil)
				}
				if o := h.prompt(s, "afterwards"); o.Outcome != session.OutcomeCompleted {
					t.Errorf("the session is not usable: %+v", o)
				}
			})
		})
	}
}

// Portable section 12: text numbered from discardFrom on is dropped by a retry, and only that of the step that is asked for again.
func TestWhatIsLeftOfTheTextAfterRetriesIsWhatTheTurnAnswers(t *testing.T) {
	cut := &session.ModelError{Fault: session.FaultCut, Message: "cut"}
	m := &model{}
	m.play = func(_ context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
		call := callChunks("c", "look", "{}")
		reply := [][]session.Chunk{
			append([]session.Chunk{text("first")}, call...),
			{},
			{{Kind: session.ChunkReasoning, Text: "hm"}},
			{text("half "), text("of it")},
			append([]session.Chunk{text("second")}, call...),
			call[:2],
			{text("whole")},
		}[len(m.requests)-1]
		for _, c := range reply {
			yield(c, nil)
		}
		switch len(m.requests) {
		case 1, 5:
			yield(finish(session.FinishCalls), nil)
		case 7:
			yield(finish(session.FinishStop), nil)
		default:
			yield(session.Chunk{}, cut)
		}
	}
	bubble(t, m, []session.Tool{readTool("look", func() string { return "seen" })}, func(h *house) {
		s := h.draft()
		h.prompt(s, "x")
		const want = "first\n\nsecond\n\nwhole"
		var left []protocol.Entry // of text, as a client keeps it
		told, retries := "", 0
		for _, e := range h.entries(s.ID) {
			b, err := protocol.Decode(&e)
			if err != nil {
				t.Fatal(err)
			}
			switch b := b.(type) {
			case *protocol.AssistantDelta:
				left = append(left, e)
			case *protocol.TurnStepRetry:
				retries++
				if b.More.DiscardFrom < 1 || b.More.DiscardFrom > e.PortableFirst {
					t.Errorf("event %d drops the text from %d on", e.PortableFirst, b.More.DiscardFrom)
				}
				left = slices.DeleteFunc(left, func(d protocol.Entry) bool { return d.PortableFirst >= b.More.DiscardFrom })
			}
		}
		for _, e := range left {
			b, _ := protocol.Decode(&e)
			d := b.(*protocol.AssistantDelta)
			if d.More.Separator {
				told += "\n\n"
			}
			told += d.Text
		}
		if told != want || retries != 4 {
			t.Errorf("after %d retries %q is left, want %q", retries, told, want)
		}
	})
}

func TestTheEndOfAnAnswerDecidesTheTurn(t *testing.T) {
	for f, want := range map[session.Finish][2]string{
		session.FinishLength: {"StreamTruncated", "max_tokens"}, session.FinishFilter: {"ContentFiltered", "content_filter"},
	} {
		bubble(t, say([]session.Chunk{text("par"), finish(f)}), nil, func(h *house) {
			s := h.draft()
			o := h.prompt(s, "x")
			if o.Fault == nil || o.Fault.Type != want[0] || o.Stop != want[1] || o.Answer != "par" {
				t.Errorf("%s: %+v %+v", f, o, o.Fault)
			}
			if got := kinds(h.entries(s.ID)); !strings.HasSuffix(got, "token_stats_updated assistant_message_completed turn_failed") {
				t.Errorf("%s: log %s", f, got)
			}
		})
	}
}

func TestCallsThatCannotRunAreAnsweredToTheModel(t *testing.T) {
	ran := 0
	tools := []session.Tool{readTool("look", func() string { ran++; return "seen" })}
	for _, c := range []struct{ name, tool, args, status, errorType, says string }{
		{"an unknown tool", "nope", `{}`, "unavailable", "ToolNotFound", "look"},
		{"no tool at all", "", `{}`, "unavailable", "ToolNotFound", "look"},
		{"no JSON", "look", `{"path":"a`, "rejected", "ToolArgsJSONError", "not a JSON object"},
		{"a list", "look", `[]`, "rejected", "ToolArgsJSONError", "object"},
		{"a text", "look", `"x"`, "rejected", "ToolArgsJSONError", "object"},
		{"null", "look", `null`, "rejected", "ToolArgsJSONError", "object"},
		{"trailing garbage", "look", `{"path":"a"}}`, "rejected", "ToolArgsJSONError", "object"},
		{"a wrong type", "look", `{"path":1}`, "rejected", "InvalidArguments", "path"},
		{"an unknown member", "look", `{"file":"a"}`, "rejected", "InvalidArguments", "file"},
		{"too deep", "look", `{"path":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, "rejected", "ToolArgsJSONError", "object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran = 0
			m := say(append(callChunks("c1", c.tool, c.args), finish(session.FinishCalls)), []session.Chunk{text("done"), finish(session.FinishStop)})
			bubble(t, m, tools, func(h *house) {
				s := h.draft()
				o := h.prompt(s, "x")
				rs := results(t, h.entries(s.ID))
				if o.Outcome != session.OutcomeCompleted || len(rs) != 1 || rs[0].Status != c.status || rs[0].ErrorType != c.errorType || !strings.Contains(rs[0].Result, c.says) {
					t.Errorf("outcome %+v, results %+v", o, rs)
				}
				if ran > 0 || strings.Contains(kinds(h.entries(s.ID)), "tool_call_started") {
					t.Error("the tool was started")
				}
				for _, r := range m.requests {
					checkHistory(t, r.Messages)
					if err := session.CheckMessages(r.Messages); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
	m := say(append(callChunks("c1", "look", ``), finish(session.FinishCalls)), []session.Chunk{text("done"), finish(session.FinishStop)})
	bubble(t, m, tools, func(h *house) {
		h.prompt(h.draft(), "x")
		if ran != 1 {
			t.Errorf("empty arguments: the tool ran %d times", ran)
		}
	})
}

func TestRepeatedCallIDsAreRenamedBeforeAnyoneSeesThem(t *testing.T) {
	call := append(append(callChunks("c1", "look", `{"path":"a"}`), callChunks("c1", "look", `{"path":"b"}`)...), finish(session.FinishCalls))
	end := []session.Chunk{text("done"), finish(session.FinishStop)}
	m := say(call, end, append(callChunks("c1", "look", `{"path":"c"}`), finish(session.FinishCalls)), end)
	bubble(t, m, []session.Tool{readTool("look", func() string { return "seen" })}, func(h *house) {
		s := h.draft()
		h.prompt(s, "x")
		h.prompt(s, "y")
		ids := map[string]bool{}
		for _, r := range results(t, h.entries(s.ID)) {
			ids[r.ToolCallID] = true
		}
		if len(ids) != 3 || !ids["c1"] {
			t.Errorf("ids %v", ids)
		}
		for _, r := range m.requests {
			checkHistory(t, r.Messages)
		}
	})
}

func TestAModelThatRepeatsItselfIsStopped(t *testing.T) {
	m := say(append(callChunks("", "look", `{}`), finish(session.FinishCalls)))
	bubble(t, m, []session.Tool{readTool("look", func() string { return "seen" })}, func(h *house) {
		o := h.prompt(h.draft(), "x")
		if o.Fault == nil || o.Fault.Type != protocol.FailLimit || len(m.requests) != 9 {
			t.Errorf("%+v after %d requests", o.Fault, len(m.requests))
		}
	})
}

func TestALongResultKeepsItsShapeForClientsAndModel(t *testing.T) {
	long := strings.Repeat("line of text\n", 10_000)
	m := say(append(callChunks("c1", "look", `{}`), finish(session.FinishCalls)), []session.Chunk{text("done"), finish(session.FinishStop)})
	bubble(t, m, []session.Tool{readTool("look", func() string { return "HEAD" + long + "TAIL" })}, func(h *house) {
		s := h.draft()
		h.prompt(s, "x")
		r := results(t, h.entries(s.ID))[0]
		last := m.requests[1].Messages
		for what, j := range map[string]string{"client": r.Result, "model": last[len(last)-1].Text} {
			var res struct {
				OK   bool   `json:"ok"`
				Tool string `json:"tool"`
				Data string `json:"data"`
			}
			limit := map[string]int{"client": 8 << 10, "model": 25 << 10}[what]
			if err := json.Unmarshal([]byte(j), &res); err != nil || !res.OK || res.Tool != "look" || len(j) > limit || strings.Count(j, `\n`) > 2000 ||
				!strings.HasPrefix(res.Data, "HEAD") || !strings.HasSuffix(res.Data, "TAIL") || !strings.Contains(res.Data, "left out") {
				t.Errorf("%s gets %d bytes, %v: %.60s … %s", what, len(j), err, res.Data, res.Data[max(0, len(res.Data)-40):])
			}
		}
	})
}

func TestInputsThatNeverReachTheModelAreReturned(t *testing.T) {
	for _, end := range []string{"cancel", "fail"} {
		m := &model{}
		stop := make(chan struct{})
		m.play = func(ctx context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
			yield(text("par"), nil)
			select {
			case <-ctx.Done():
				yield(session.Chunk{}, context.Cause(ctx))
			case <-stop:
				yield(session.Chunk{}, &session.ModelError{Fault: session.FaultRejected, Message: "no"})
			}
		}
		synctest.Test(t, func(t *testing.T) {
			stop = make(chan struct{})
			h := newHouse(t, memory.New(), m)
			s := h.draft()
			_, ch := ask(s, session.PromptRequest{Input: "x"})
			synctest.Wait()
			got := make(chan error, 2)
			s.Enqueue(protocol.ModeSteering, "a", "", func(_ session.InputResult, err error) { got <- err })
			s.Enqueue(protocol.ModeFollowUp, "b", "", func(_ session.InputResult, err error) { got <- err })
			for range 2 {
				if err := <-got; err != nil {
					t.Fatal(err)
				}
			}
			if end == "cancel" {
				s.Cancel(session.CancelRequest{}, func(error) {})
			} else {
				close(stop)
			}
			<-ch
			want := fmt.Sprintf(`"reason":%q`, map[string]string{"cancel": "cancelled", "fail": "failed"}[end])
			n := 0
			for _, e := range h.entries(s.ID) {
				if e.Kind == protocol.KindQueuedInputReturned && strings.Contains(string(e.Event), want) {
					n++
				}
			}
			if n != 2 {
				t.Errorf("%s: %d inputs returned with %s", end, n, want)
			}
			checkLog(t, h)
			h.close()
		})
	}
}

func TestReadOnlyCallsOfABatchOverlapAndAreToldInOrderAndNothingRunsWhileAPersonIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := 0, 0
		look := readTool("look", nil)
		look.run = func(_ context.Context, c session.ToolCall, _ session.Progress) (session.ToolResult, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Duration(10-len(c.ID)) * time.Second) // the first one takes longest
			mu.Lock()
			now--
			mu.Unlock()
			return session.ToolResult{Data: c.ID}, nil
		}
		ran := 0
		write := writeTool("do", func() string { ran++; return "" })
		var chunks []session.Chunk
		for _, id := range []string{"a", "ab", "abc"} {
			chunks = append(chunks, callChunks(id, "look", `{}`)...)
		}
		chunks = append(append(chunks, callChunks("w", "do", `{}`)...), callChunks("z", "look", `{"path":"secret"}`)...)
		p := policy{judge: func(_ string, c session.ToolCall) session.Verdict {
			if strings.Contains(string(c.Arguments), "secret") {
				return session.Verdict{Effect: "ask", Title: "Read it"}
			}
			return session.Verdict{Effect: "allow"}
		}}
		h := policyHouse(t, memory.New(), say(append(chunks, finish(session.FinishCalls)), done()), p, "", look, write)
		s := h.draft()
		began := time.Now()
		_, ch := ask(s, session.PromptRequest{Input: "x"})
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if most != 3 || now != 0 || ran != 1 {
			t.Errorf("%d at one time, %d still, %d writes", most, now, ran)
		}
		allow(t, s, h.approvals(s)[0].ActionID)
		if o := <-ch; o.err != nil || o.Outcome.Outcome != session.OutcomeCompleted || time.Since(began) > 30*time.Second {
			t.Errorf("outcome %+v after %s", o, time.Since(began))
		}
		var order []string
		for _, e := range h.entries(s.ID) {
			switch b, _ := protocol.Decode(&e); b := b.(type) {
			case *protocol.ToolCallStarted:
				order = append(order, "+"+b.ToolCallID)
			case *protocol.ToolResult:
				order = append(order, b.ToolCallID)
			}
		}
		if got := strings.Join(order, " "); got != "+a +ab +abc a ab abc +w w +z z" {
			t.Errorf("order %s", got)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestToolsThatComeAndGoAreOfferedInTheTurnsThatBeginWhileTheyAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var more []session.Tool
		broken := readTool("broken", nil)
		broken.spec.Schema = json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`)
		m := say(append(callChunks("c1", "extra", `{}`), finish(session.FinishCalls)), done())
		loop, err := session.NewLoop(session.Loop{Models: m, Tools: []session.Tool{readTool("look", func() string { return "seen" })}, More: func(context.Context, *session.Turn) []session.Tool { return more }})
		if err != nil {
			t.Fatal(err)
		}
		store := memory.New()
		h := &house{t: t, store: store, model: m}
		h.all = session.NewSessions(session.Config{Store: store, Agent: loop, Models: m})
		s := h.draft()
		more = []session.Tool{readTool("extra", func() string { return "more" }), readTool("look", func() string { return "not this one" }), broken}
		h.prompt(s, "one")
		more = nil
		h.prompt(s, "two")
		offered := func(r session.ModelRequest) string {
			var names []string
			for _, spec := range r.Tools {
				names = append(names, spec.Name)
			}
			return strings.Join(names, " ")
		}
		if got := offered(m.requests[0]) + ", " + offered(m.requests[len(m.requests)-1]); got != "look extra, look" {
			t.Errorf("offered %s", got)
		}
		if got := texts(m.requests[1]); !strings.Contains(got, `"data":"more"`) {
			t.Errorf("the model was given\n%s", got)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestAnExecutionMayNameEachToolItsTurnIsOfferedAndNoOther(t *testing.T) {
	for tools, want := range map[string]string{
		`["mcp__s__hello"]`:        "mcp__s__hello",
		`["task_control","look"]`:  "look task_control",
		`["update_goal"]`:          "", // there is no goal
		`["mcp__s__bye"]`:          "Invalid agent config: tools",
		`["look","bash_output"]`:   "Invalid agent config: tools", // of older histories: it is not offered
		`["look","mcp__s__hello"]`: "look mcp__s__hello",
	} {
		synctest.Test(t, func(t *testing.T) {
			m := say(done())
			hello := readTool("mcp__s__hello", func() string { return "hello" })
			loop, err := session.NewLoop(session.Loop{
				Models: m, Tools: []session.Tool{readTool("look", func() string { return "seen" }), writeTool("act", func() string { return "acted" })},
				More: func(context.Context, *session.Turn) []session.Tool { return []session.Tool{hello} },
			})
			if err != nil {
				t.Fatal(err)
			}
			store := memory.New()
			h := &house{t: t, store: store, model: m, all: session.NewSessions(session.Config{Store: store, Agent: loop, Models: m})}
			s := h.draft()
			turn := h.execute(s, session.ExecutionRequest{Provider: "agent", Input: "x", Config: json.RawMessage(`{"tools":` + tools + `}`)})
			synctest.Wait()
			got := ""
			for _, e := range h.entries(s.ID) {
				if b, _ := protocol.Decode(&e); e.Turn == turn && e.Kind == protocol.KindTurnFailed {
					got = b.(*protocol.TurnFailed).Error
				}
			}
			for _, r := range m.requests {
				var names []string
				for _, spec := range r.Tools {
					names = append(names, spec.Name)
				}
				slices.Sort(names)
				got += strings.Join(names, " ")
			}
			if got != want {
				t.Errorf("%s: got %q, want %q", tools, got, want)
			}
			checkLog(t, h)
			h.close()
		})
	}
}

// priced is a model with a price.
type priced struct{ *model }

func (m priced) Select(ctx context.Context, sel session.Selection) (session.Selected, error) {
	got, err := m.model.Select(ctx, sel)
	got.Info.Price = &session.Price{Input: 3, Output: 15}
	return got, err
}

func TestWhatASamplingCostsIsKeptWhereAPriceIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := priced{say([]session.Chunk{text("x"), {Kind: session.ChunkUsage, Usage: session.Usage{Input: 1_000_000, Output: 200_000}}, finish(session.FinishStop)}, done())}
		loop, err := session.NewLoop(session.Loop{Models: m})
		if err != nil {
			t.Fatal(err)
		}
		store := memory.New()
		h := &house{t: t, store: store, model: m.model}
		h.all = session.NewSessions(session.Config{Store: store, Agent: loop, Models: m})
		s := h.draft()
		h.prompt(s, "one")
		h.prompt(s, "two") // whose usage is only estimated
		var costs []string
		for _, e := range h.entries(s.ID) {
			if b, _ := protocol.Decode(&e); e.Kind == protocol.KindTokenStatsUpdated {
				costs = append(costs, "none")
				if c := b.(*protocol.TokenStatsUpdated).More.Cost; c != nil {
					costs[len(costs)-1] = fmt.Sprint(*c)
				}
			}
		}
		if got := strings.Join(costs, " "); got != "6 none" {
			t.Errorf("costs %s", got)
		}
		h.close()
	})
}
