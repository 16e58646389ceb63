package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/openai"
	"github.com/rind-dev/rind/session/provider/providertest"
)

// chat answers one request with a reply.
func chat(t testing.TB, r providertest.Reply) providertest.Answer {
	t.Helper()
	m := model(t, openai.Chat, providertest.Endpoint{URL: providertest.NewServer(t, r).URL()})
	return providertest.Collect(t.Context(), t, m, providertest.Hello())
}

func delta(d string) string { return `{"choices":[{"index":0,"delta":` + d + `}]}` }

func finish(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":` + reason + `}]}`
}

func TestChunksWithoutChoicesAreNoAnswerAndUsageCountsOnce(t *testing.T) {
	a := chat(t, providertest.SSE(
		`{"choices":[],"prompt_filter_results":[]}`, `{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}`,
		delta(`{"content":"ok"}`), `{"choices":null}`, `{"choices":[{"index":1,"delta":{"content":"another answer"}}]}`, finish(`"stop"`),
		`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, `{"usage":{"prompt_tokens":3,"completion_tokens":1}}`, `{"choices":[],"usage":null}`, "[DONE]",
	))
	if a.Text != "ok" || a.Finish != session.FinishStop || a.Err != nil {
		t.Errorf("got %q, %q, %v", a.Text, a.Finish, a.Err)
	}
	if want := []session.Usage{{Input: 3, Output: 1}}; !cmp.Equal(a.Usage, want) {
		t.Errorf("usage %+v", a.Usage)
	}
}

func TestKeepAlivesPingsAndOddFieldsAreNoAnswer(t *testing.T) {
	a := chat(t, providertest.Stream(providertest.Send(": OPENROUTER PROCESSING\n\n: x\r\n\r\nevent: ping\ndata: {\"type\":\"ping\"}\n\nretry: 10\n\n"+
		"data:"+delta(`{"content":"no space"}`)+"\n\ndata:"+finish(`"stop"`)+"\r\rdata:[DONE]\n\n")))
	if a.Text != "no space" || a.Finish != session.FinishStop || a.Err != nil {
		t.Errorf("got %q, %q, %v", a.Text, a.Finish, a.Err)
	}
	alive := 0
	for _, c := range a.Chunks {
		if c.Kind == session.ChunkAlive {
			alive++
		}
	}
	if alive != 2 {
		t.Errorf("%d comments told as life, want 2", alive)
	}
}

func TestTheEndOfAStreamDecidesWhetherItIsAnAnswer(t *testing.T) {
	call := delta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}`)
	for name, test := range map[string]struct {
		events []string
		finish session.Finish
		fault  session.Fault
	}{
		"text, then nothing":               {[]string{delta(`{"content":"par"}`)}, "", session.FaultCut},
		"a whole call, then nothing":       {[]string{call}, "", session.FaultCut},
		"stop without an end mark":         {[]string{delta(`{"content":"x"}`), finish(`"stop"`)}, session.FinishStop, ""},
		"an end mark alone":                {[]string{"[DONE]"}, "", session.FaultBadReply},
		"a role and an end mark":           {[]string{delta(`{"role":"assistant"}`), "[DONE]"}, "", session.FaultBadReply},
		"nothing at all":                   {nil, "", session.FaultCut},
		"a finish that is null, end mark":  {[]string{delta(`{"content":"x"}`), finish(`null`), "[DONE]"}, session.FinishStop, ""},
		"a finish that is null, no mark":   {[]string{delta(`{"content":"x"}`), finish(`null`)}, "", session.FaultCut},
		"a finish that is empty, no mark":  {[]string{delta(`{"content":"x"}`), finish(`""`)}, "", session.FaultCut},
		"a call and an end mark":           {[]string{call, "[DONE]"}, session.FinishCalls, ""},
		"an empty answer that says stop":   {[]string{finish(`"stop"`), "[DONE]"}, session.FinishStop, ""},
		"stop though there are calls":      {[]string{call, finish(`"stop"`), "[DONE]"}, session.FinishCalls, ""},
		"function_call":                    {[]string{delta(`{"function_call":{"name":"f","arguments":"{}"}}`), finish(`"function_call"`), "[DONE]"}, session.FinishCalls, ""},
		"length":                           {[]string{delta(`{"content":"x"}`), finish(`"length"`), "[DONE]"}, session.FinishLength, ""},
		"length amid a call":               {[]string{delta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{"}}]}`), finish(`"length"`), "[DONE]"}, session.FinishLength, ""},
		"content filter":                   {[]string{finish(`"content_filter"`), "[DONE]"}, session.FinishFilter, ""},
		"a word nobody knows":              {[]string{delta(`{"content":"x"}`), finish(`"eos"`), "[DONE]"}, session.FinishStop, ""},
		"an error as the reason":           {[]string{delta(`{"content":"x"}`), finish(`"error"`), "[DONE]"}, "", session.FaultServer},
		"an event that is no JSON":         {[]string{`{"choices":[`}, "", session.FaultBadReply},
		"text, then one that is no JSON":   {[]string{delta(`{"content":"x"}`), `{"choices":[`}, "", session.FaultCut},
		"a page in place of the next data": {[]string{delta(`{"content":"x"}`), `<html>`}, "", session.FaultCut},
	} {
		if a := chat(t, providertest.SSE(test.events...)); a.Finish != test.finish || a.Fault() != test.fault {
			t.Errorf("%s: finish %q, fault %q (%v), want %q, %q", name, a.Finish, a.Fault(), a.Err, test.finish, test.fault)
		}
	}
}

func TestAnAnswerThatSaidStopIsWholeHoweverTheConnectionEnds(t *testing.T) {
	seen := make(chan struct{})
	r := providertest.Stream(providertest.Send(providertest.Events(delta(`{"content":"x"}`), finish(`"stop"`))), providertest.Gate(seen), providertest.Reset())
	m := model(t, openai.Chat, providertest.Endpoint{URL: providertest.NewServer(t, r).URL()})
	var last session.Chunk
	for c, err := range m.Generate(t.Context(), providertest.Hello()) {
		if err != nil {
			t.Errorf("a reset behind the reason is an error: %v", err)
		}
		if last = c; c.Kind == session.ChunkText {
			close(seen)
		}
	}
	if last.Finish != session.FinishStop {
		t.Errorf("the last chunk is %+v", last)
	}
	began := time.Now()
	a := chat(t, providertest.Stream(providertest.Send(providertest.Events(delta(`{"content":"x"}`), finish(`"stop"`))), providertest.Hang()))
	if a.Finish != session.FinishStop || a.Err != nil {
		t.Errorf("got %q, %v", a.Finish, a.Err)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("it took %v", d)
	}
}

func TestErrorsInsideA200AreTheProvidersOwn(t *testing.T) {
	for name, test := range map[string]struct {
		reply providertest.Reply
		fault session.Fault
		says  string
	}{
		"quota":              {providertest.SSE(`{"error":{"message":"quota exceeded","code":429}}`, "[DONE]"), session.FaultQuota, "quota exceeded"},
		"rate":               {providertest.SSE(`{"error":{"message":"slow down","code":429}}`), session.FaultRate, "slow down"},
		"text":               {providertest.SSE(`{"error":"the runner has died"}`), session.FaultRejected, "the runner has died"},
		"busy, by its name":  {providertest.Stream(providertest.Send("event: error\ndata: {\"message\":\"Service unavailable\",\"type\":\"x\"}\n\n")), session.FaultServer, "Service unavailable"},
		"vLLM":               {providertest.SSE(`{"object":"error","message":"boom","type":"InternalServerError","code":500}`), session.FaultServer, "boom"},
		"OpenRouter":         {providertest.SSE(`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"Provider returned error","metadata":{"raw":{"error":{"message":"upstream is down"}}}}}`), session.FaultServer, "Provider returned error: upstream is down"},
		"whole body":         {providertest.JSON(200, `{"error":{"message":"no such luck","type":"invalid_request_error","code":null}}`), session.FaultRejected, "no such luck"},
		"under a false name": {providertest.Body(200, "text/event-stream", `{"error":{"message":"no such luck"}}`), session.FaultRejected, "no such luck"},
		"a whole completion": {providertest.JSON(200, `{"choices":[{"message":{"content":"x"}}]}`), session.FaultBadReply, "application/json"},
		"login page":         {providertest.Body(200, "text/html", "<html>Log in</html>"), session.FaultBadReply, "text/html"},
		"an empty answer":    {providertest.Body(200, "application/json", ""), session.FaultBadReply, "application/json"},
	} {
		e := providertest.ErrorOf(t, chat(t, test.reply))
		if e.Fault != test.fault || !strings.Contains(e.Message, test.says) {
			t.Errorf("%s: %s %q, want %s with %q", name, e.Fault, e.Message, test.fault, test.says)
		}
	}
}

func TestAStreamWithoutItsContentTypeIsReadAsItComes(t *testing.T) {
	gate := make(chan struct{})
	for _, contentType := range []string{"", "text/plain", "application/octet-stream"} {
		server := providertest.NewServer(t, providertest.Body(200, contentType, providertest.Events(delta(`{"content":"x"}`), finish(`"stop"`), "[DONE]")))
		if a := providertest.Collect(t.Context(), t, model(t, openai.Chat, providertest.Endpoint{URL: server.URL()}), providertest.Hello()); a.Text != "x" || a.Err != nil {
			t.Errorf("%q: got %q, %v", contentType, a.Text, a.Err)
		}
	}
	r := providertest.Reply{Steps: []providertest.Step{
		providertest.Send("\n" + providertest.Events(delta(`{"content":"first"}`))), providertest.Gate(gate), providertest.Send(providertest.Events(finish(`"stop"`), "[DONE]")),
	}}
	m := model(t, openai.Chat, providertest.Endpoint{URL: providertest.NewServer(t, r).URL()})
	for c, err := range m.Generate(t.Context(), providertest.Hello()) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Kind == session.ChunkText {
			close(gate) // the rest comes only when the first piece was seen
		}
	}
}

func TestReasoningIsToldApartFromTheAnswer(t *testing.T) {
	a := chat(t, providertest.SSE(
		delta(`{"reasoning_content":"I "}`), delta(`{"reasoning":"think","content":null}`), delta(`{"reasoning_content":".","reasoning":"."}`),
		delta(`{"content":[{"type":"text","text":"so"}]}`), delta(`{"refusal":" no"}`), finish(`"stop"`), "[DONE]",
	))
	if a.Reasoning != "I think." || a.Text != "so no" {
		t.Errorf("reasoning %q, text %q", a.Reasoning, a.Text)
	}
}

// pieces writes tool call pieces, one event each.
func pieces(p ...string) []string {
	var out []string
	for _, s := range p {
		out = append(out, delta(`{"tool_calls":[`+s+`]}`))
	}
	return out
}

func TestPiecesOfCallsFindTheirCall(t *testing.T) {
	chars := func(format, text string) []string {
		var out []string
		for _, c := range text {
			j, _ := json.Marshal(string(c)) // strings always marshal
			out = append(out, fmt.Sprintf(format, j))
		}
		return out
	}
	mix := func(a, b []string) (out []string) {
		for i := range max(len(a), len(b)) {
			if i < len(a) {
				out = append(out, a[i])
			}
			if i < len(b) {
				out = append(out, b[i])
			}
		}
		return out
	}
	type calls = [][3]string // id, name, raw arguments
	for name, test := range map[string]struct {
		pieces []string
		finish string
		want   calls
	}{
		"A: interleaved, ids in the first piece only": {
			append([]string{`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`, `{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}}`},
				mix(chars(`{"index":0,"function":{"arguments":%s}}`, `{"x":"那"}`), chars(`{"index":1,"function":{"arguments":%s}}`, `{"y":[1,{"z":2}]}`))...), "tool_calls",
			calls{{"a", "f", `{"x":"那"}`}, {"b", "g", `{"y":[1,{"z":2}]}`}},
		},
		"B: three calls of index 0, ids in every piece": {
			[]string{
				`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"id":"a","function":{"arguments":":1}"}}`,
				`{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"id":"b","function":{"arguments":":2}"}}`,
				`{"index":0,"id":"c","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"id":"c","function":{"arguments":":3}"}}`,
			}, "tool_calls", calls{{"a", "f", `{"x":1}`}, {"b", "f", `{"x":2}`}, {"c", "f", `{"x":3}`}},
		},
		"B: three calls of index 0, ids in the first piece only": {
			[]string{
				`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"function":{"arguments":":1}"}}`,
				`{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"function":{"arguments":":2}"}}`,
				`{"index":0,"id":"c","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"function":{"arguments":":3}"}}`,
			}, "tool_calls", calls{{"a", "f", `{"x":1}`}, {"b", "f", `{"x":2}`}, {"c", "f", `{"x":3}`}},
		},
		"C: no index": {
			[]string{`{"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"id":"b","function":{"name":"g","arguments":"{}"}}`, `{"id":"a","function":{"arguments":":1}"}}`},
			"tool_calls",
			calls{{"a", "f", `{"x":1}`}, {"b", "g", `{}`}},
		},
		"C: no index, ids in the first piece only": {
			[]string{`{"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"function":{"arguments":":1}"}}`, `{"id":"b","function":{"name":"g"}}`, `{"function":{"arguments":"{}"}}`},
			"tool_calls",
			calls{{"a", "f", `{"x":1}`}, {"b", "g", `{}`}},
		},
		"D: id and name in every piece, finish stop": {
			chars(`{"index":0,"id":"a","function":{"name":"f","arguments":%s}}`, `{"x":{"y":"{}"},"z":[{}]}`), "stop", calls{{"a", "f", `{"x":{"y":"{}"},"z":[{}]}`}},
		},
		"E: a whole call": {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`}, "tool_calls", calls{{"a", "f", `{"x":1}`}}},
		"one id for two calls": {
			[]string{`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"index":1,"id":"c1","function":{"name":"f","arguments":"{\"x\":2}"}}`},
			"tool_calls",
			calls{{"c1", "f", `{"x":1}`}, {"c1_2", "f", `{"x":2}`}},
		},
		"one id and index for two whole calls": {
			[]string{`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"x\":2}"}}`},
			"tool_calls",
			calls{{"c1", "f", `{"x":1}`}, {"c1_2", "f", `{"x":2}`}},
		},
		"no ids": {
			[]string{`{"index":0,"id":"","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":1,"id":null,"function":{"name":"f","arguments":"{}"}}`, `{"index":0,"function":{"arguments":":1}"}}`},
			"tool_calls",
			calls{{"", "f", `{"x":1}`}, {"call_2", "f", `{}`}},
		},
		"neither ids nor indexes": {
			[]string{`{"function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"function":{"name":"f","arguments":"{\"x\":2}"}}`, `{"function":{"name":"g","arguments":""}}`},
			"tool_calls",
			calls{{"", "f", `{"x":1}`}, {"call_2", "f", `{"x":2}`}, {"call_3", "g", ``}},
		},
		"an id made up for each piece": {
			[]string{`{"index":0,"id":"r1","function":{"name":"f","arguments":"{\"x\""}}`, `{"index":0,"id":"r2","function":{"arguments":":1}"}}`}, "tool_calls", calls{{"r1", "f", `{"x":1}`}},
		},
		"the name comes late": {
			[]string{`{"index":0,"id":"a","function":{"arguments":"{\"x\""}}`, `{"index":0,"function":{"name":"f","arguments":":1}"}}`}, "tool_calls", calls{{"a", "f", `{"x":1}`}},
		},
		"no name at all":          {[]string{`{"index":0,"id":"a","function":{"arguments":"{}"}}`}, "tool_calls", calls{{"a", "", `{}`}}},
		"arguments as an object":  {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}`}, "tool_calls", calls{{"a", "f", `{"x":1}`}}},
		"an id that is a number":  {[]string{`{"index":0,"id":7,"function":{"name":"f","arguments":"{}"}}`}, "tool_calls", calls{{"7", "f", `{}`}}},
		"two calls in one piece":  {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"f","arguments":"[]"}}`}, "tool_calls", calls{{"a", "f", `{}`}, {"b", "f", `[]`}}},
		"indexes that begin at 5": {[]string{`{"index":5,"id":"a","function":{"name":"f","arguments":"{"}}`, `{"index":9,"id":"b","function":{"name":"g","arguments":"{}"}}`, `{"index":5,"function":{"arguments":"}"}}`}, "tool_calls", calls{{"a", "f", `{}`}, {"b", "g", `{}`}}},
	} {
		events := append(pieces(test.pieces...), finish(`"`+test.finish+`"`), "[DONE]")
		if name[0] == 'E' { // in one event with the reason
			events = []string{`{"choices":[{"index":0,"delta":{"tool_calls":[` + test.pieces[0] + `]},"finish_reason":"tool_calls"}]}`, "[DONE]"}
		}
		a := chat(t, providertest.SSE(events...))
		var got calls
		for _, c := range a.Calls {
			got = append(got, [3]string{c.ID, c.Name, c.Arguments})
		}
		if a.Err != nil || a.Finish != session.FinishCalls || !cmp.Equal(got, test.want) {
			t.Errorf("%s: %v, %q, %q, want %q", name, a.Err, a.Finish, got, test.want)
		}
	}
}

func TestHalfASurrogatePairInArgumentsIsHandedThrough(t *testing.T) {
	a := chat(t, providertest.SSE(append(pieces(`{"index":0,"id":"a","function":{"name":"ask","arguments":"{\"q\":\"x\\ud99cy\"}"}}`), "[DONE]")...))
	if len(a.Calls) != 1 || a.Calls[0].Arguments != `{"q":"x\ud99cy"}` { // the loop makes the arguments of the log from it
		t.Errorf("got %+v, %v", a.Calls, a.Err)
	}
}
