package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/anthropic"
	"github.com/rind-dev/rind/session/provider/providertest"
)

// stream answers one request with events of this data.
func stream(t testing.TB, data ...string) providertest.Answer {
	t.Helper()
	return reply(t, providertest.SSE(data...))
}

func reply(t testing.TB, r providertest.Reply) providertest.Answer {
	t.Helper()
	m := model(t, providertest.Endpoint{URL: providertest.NewServer(t, r).URL()})
	return providertest.Collect(t.Context(), t, m, providertest.Hello())
}

// opaque is what an answer wants back, in its order.
func opaque(a providertest.Answer) (out []string) {
	for _, c := range a.Chunks {
		if c.Kind == session.ChunkOpaque {
			out = append(out, string(c.Opaque))
		}
	}
	return out
}

const (
	begin = `{"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":90,"cache_creation_input_tokens":5,"output_tokens":1}}}`
	stop  = `{"type":"message_stop"}`
)

func start(index, block string) string {
	return `{"type":"content_block_start","index":` + index + `,"content_block":` + block + `}`
}

func delta(index, d string) string {
	return `{"type":"content_block_delta","index":` + index + `,"delta":` + d + `}`
}

func stopOf(index string) string { return `{"type":"content_block_stop","index":` + index + `}` }

func why(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":` + reason + `},"usage":{"output_tokens":7}}`
}

var (
	said   = []string{begin, start("0", `{"type":"text","text":""}`), delta("0", `{"type":"text_delta","text":"x"}`), stopOf("0")}
	called = []string{begin, start("0", `{"type":"tool_use","id":"c","name":"f","input":{}}`), delta("0", `{"type":"input_json_delta","partial_json":"{}"}`), stopOf("0")}
)

func with(events []string, more ...string) []string {
	return append(events[:len(events):len(events)], more...)
}

func TestTheEndOfAStreamDecidesWhetherItIsAnAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		events []string
		finish session.Finish
		fault  session.Fault
	}{
		"the end of the turn":              {with(said, why(`"end_turn"`), stop), session.FinishStop, ""},
		"a stop sequence":                  {with(said, why(`"stop_sequence"`), stop), session.FinishStop, ""},
		"a word nobody knows":              {with(said, why(`"tired"`), stop), session.FinishStop, ""},
		"no reason, an end mark":           {with(said, stop), session.FinishStop, ""},
		"a reason, no end mark":            {with(said, why(`"end_turn"`)), "", session.FaultCut},
		"a call, a reason, no end mark":    {with(called, why(`"tool_use"`)), "", session.FaultCut},
		"text, then nothing":               {said, "", session.FaultCut},
		"another API's end mark":           {with(said, why(`"end_turn"`), "[DONE]"), "", session.FaultCut},
		"calls":                            {with(called, why(`"tool_use"`), stop), session.FinishCalls, ""},
		"calls, though the turn ended":     {with(called, why(`"end_turn"`), stop), session.FinishCalls, ""},
		"calls that were announced only":   {with(said, why(`"tool_use"`), stop), session.FinishStop, ""},
		"length":                           {with(said, why(`"max_tokens"`), stop), session.FinishLength, ""},
		"length amid a call":               {with(called[:3], why(`"max_tokens"`), stop), session.FinishLength, ""},
		"a refusal":                        {with(said, why(`"refusal"`), stop), session.FinishFilter, ""},
		"the end of the window":            {with(said, why(`"model_context_window_exceeded"`), stop), session.FinishLength, ""},
		"the end of the window at once":    {[]string{begin, why(`"model_context_window_exceeded"`), stop}, "", session.FaultContext},
		"a pause":                          {with(said, why(`"pause_turn"`), stop), "", session.FaultCut},
		"a pause for calls":                {with(called, why(`"pause_turn"`), stop), session.FinishCalls, ""},
		"an empty answer":                  {[]string{begin, why(`"end_turn"`), stop}, session.FinishStop, ""},
		"an end mark alone":                {[]string{begin, stop}, "", session.FaultBadReply},
		"nothing at all":                   {nil, "", session.FaultCut},
		"pings and nothing else":           {[]string{begin, `{"type":"ping"}`}, "", session.FaultCut},
		"an event that is no JSON":         {[]string{begin, `{"type":`}, "", session.FaultBadReply},
		"text, then one that is no JSON":   {with(said, `{"type":`), "", session.FaultCut},
		"a page in place of the next data": {with(said, `<html>`), "", session.FaultCut},
	} {
		if a := stream(t, test.events...); a.Finish != test.finish || a.Fault() != test.fault {
			t.Errorf("%s: finish %q, fault %q (%v), want %q, %q", name, a.Finish, a.Fault(), a.Err, test.finish, test.fault)
		}
	}
}

func TestErrorsInsideAStreamKeepTheirKindAndWords(t *testing.T) {
	for kind, fault := range map[string]session.Fault{
		"overloaded_error": session.FaultServer, "api_error": session.FaultServer, "rate_limit_error": session.FaultRate, "timeout_error": session.FaultTimeout,
		"authentication_error": session.FaultAuth, "permission_error": session.FaultAuth, "not_found_error": session.FaultModel, "billing_error": session.FaultQuota,
		"request_too_large": session.FaultContext, "invalid_request_error": session.FaultRejected, "some_error": session.FaultRejected,
	} {
		for _, before := range [][]string{nil, said} {
			a := stream(t, with(before, `{"type":"error","error":{"type":"`+kind+`","message":"it broke"}}`)...)
			if e := providertest.ErrorOf(t, a); e.Fault != fault || !strings.HasPrefix(e.Message, "it broke") || e.Status != 0 {
				t.Errorf("%s: %+v, want %s", kind, e, fault)
			}
		}
	}
	for name, event := range map[string]string{
		"by its name":    "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n",
		"without a type": "data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n",
	} {
		if e := providertest.ErrorOf(t, reply(t, providertest.Stream(providertest.Send(event)))); e.Fault != session.FaultServer || e.Message != "busy" {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestUsageIsCountedOnceWithWhatTheCacheHeld(t *testing.T) {
	want := []session.Usage{{Input: 105, Cached: 90, Output: 7}}
	if a := stream(t, with(said, why(`"end_turn"`), stop)...); !cmp.Equal(a.Usage, want) {
		t.Errorf("usage %+v", a.Usage)
	}
	// Sums told anew at the end, and by a server that tells zeros there.
	for _, end := range []string{
		`{"input_tokens":10,"cache_read_input_tokens":90,"cache_creation_input_tokens":5,"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}`,
		`{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}`,
	} {
		a := stream(t, with(said, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":`+end+`}`, stop)...)
		if want := []session.Usage{{Input: 105, Cached: 90, Output: 9, Reasoning: 4}}; !cmp.Equal(a.Usage, want) {
			t.Errorf("usage %+v", a.Usage)
		}
	}
}

func TestPingsAndWhatNobodyKnowsAreNoAnswer(t *testing.T) {
	a := stream(t, begin, `{"type":"ping"}`, `{"type":"news","index":0,"delta":{"text":"no"}}`,
		start("0", `{"type":"server_tool_use","id":"s","name":"web","input":{}}`), delta("0", `{"type":"input_json_delta","partial_json":"{}"}`), stopOf("0"),
		start("1", `{"type":"text","text":"be"}`), delta("1", `{"type":"text_delta","text":"gun"}`), delta("1", `{"type":"citations_delta","citation":{}}`), stopOf("1"), stopOf("7"),
		delta("9", `{"type":"input_json_delta","partial_json":"{}"}`), `{"type":"ping"}`, why(`"end_turn"`), stop)
	alive := 0
	for _, c := range a.Chunks {
		if c.Kind == session.ChunkAlive {
			alive++
		}
	}
	if a.Err != nil || a.Text != "begun" || len(a.Calls) != 0 || alive != 2 {
		t.Errorf("got %q, calls %+v, %d signs of life, %v", a.Text, a.Calls, alive, a.Err)
	}
}

func TestCallsOfServersThatWriteThemOtherwiseAreWhole(t *testing.T) {
	type calls = []providertest.AnswerCall
	use := func(index, id, input string) string {
		return start(index, `{"type":"tool_use","id":`+id+`,"name":"f","input":`+input+`}`)
	}
	piece := func(index, text string) string {
		j, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return delta(index, `{"type":"input_json_delta","partial_json":`+string(j)+`}`)
	}
	for name, test := range map[string]struct {
		events []string
		want   calls
	}{
		"interleaved":                     {[]string{use("0", `"a"`, "{}"), use("1", `"b"`, "{}"), piece("1", `{"y"`), piece("0", `{"x"`), piece("1", ":2}"), piece("0", ":1}"), stopOf("1"), stopOf("0")}, calls{{ID: "b", Name: "f", Arguments: `{"y":2}`}, {ID: "a", Name: "f", Arguments: `{"x":1}`}}},
		"arguments with the start":        {[]string{use("0", `"a"`, `{"x": 1}`), stopOf("0")}, calls{{ID: "a", Name: "f", Arguments: `{"x": 1}`}}},
		"arguments twice":                 {[]string{use("0", `"a"`, `{"x":1}`), piece("0", `{"x":2}`), stopOf("0")}, calls{{ID: "a", Name: "f", Arguments: `{"x":2}`}}},
		"no arguments":                    {[]string{use("0", `"a"`, `{}`), piece("0", ""), stopOf("0")}, calls{{ID: "a", Name: "f"}}},
		"no end":                          {[]string{use("0", `"a"`, `{}`), piece("0", "{}"), use("3", `"b"`, `{}`), piece("3", "[]")}, calls{{ID: "a", Name: "f", Arguments: "{}"}, {ID: "b", Name: "f", Arguments: "[]"}}},
		"one index for two, no end":       {[]string{use("0", `"a"`, `{}`), piece("0", "{}"), use("0", `"b"`, `{}`), piece("0", "[]")}, calls{{ID: "a", Name: "f", Arguments: "{}"}, {ID: "b", Name: "f", Arguments: "[]"}}},
		"one id for two":                  {[]string{use("0", `"a"`, `{}`), stopOf("0"), use("1", `"a"`, `{}`), stopOf("1")}, calls{{ID: "a", Name: "f"}, {ID: "a_2", Name: "f"}}},
		"no ids":                          {[]string{use("0", `""`, `{}`), stopOf("0"), use("1", `null`, `{}`), stopOf("1")}, calls{{Name: "f"}, {ID: "call_2", Name: "f"}}},
		"an id that is a number":          {[]string{use("0", `7`, `{}`), stopOf("0")}, calls{{ID: "7", Name: "f"}}},
		"half a pair in the arguments":    {[]string{use("0", `"a"`, `{}`), piece("0", `{"q":"x\ud99cy"}`), stopOf("0")}, calls{{ID: "a", Name: "f", Arguments: `{"q":"x\ud99cy"}`}}},
		"an end that comes a second time": {[]string{use("0", `"a"`, `{}`), stopOf("0"), stopOf("0")}, calls{{ID: "a", Name: "f"}}},
	} {
		a := stream(t, with(with([]string{begin}, test.events...), why(`"tool_use"`), stop)...)
		if a.Err != nil || a.Finish != session.FinishCalls || !cmp.Equal(a.Calls, test.want) {
			t.Errorf("%s: %v, %q, %+v, want %+v", name, a.Err, a.Finish, a.Calls, test.want)
		}
	}
}

func TestThinkingIsToldAndKeptAsItCame(t *testing.T) {
	const sealed = `{"type":"redacted_thinking","data":"Em  wK==","later":1}`
	a := stream(t, begin,
		start("0", `{"type":"thinking","thinking":"","signature":""}`), delta("0", `{"type":"thinking_delta","thinking":"First <b> "}`), delta("0", `{"type":"thinking_delta","thinking":"look."}`),
		delta("0", `{"type":"signature_delta","signature":"Eq"}`), delta("0", `{"type":"signature_delta","signature":"QB=="}`), stopOf("0"),
		start("1", sealed), stopOf("1"),
		start("2", `{"type":"text","text":""}`), delta("2", `{"type":"text_delta","text":"Sö. "}`), stopOf("2"),
		start("3", `{"type":"thinking","thinking":"","signature":""}`), delta("3", `{"type":"thinking_delta","thinking":"Then."}`), delta("3", `{"type":"signature_delta","signature":"s3"}`), stopOf("3"),
		start("4", `{"type":"tool_use","id":"c","name":"f","input":{}}`), stopOf("4"),
		start("5", `{"type":"thinking","thinking":"","signature":"unseen"}`), stopOf("5"),
		start("6", `{"type":"thinking","thinking":"nobody vouches for this"}`), stopOf("6"),
		why(`"tool_use"`), stop)
	if a.Err != nil || a.Text != "Sö. " || a.Reasoning != "First <b> look.\n\nThen.\n\nnobody vouches for this" {
		t.Errorf("text %q, reasoning %q, %v", a.Text, a.Reasoning, a.Err)
	}
	want := []string{
		`{"type":"thinking","thinking":"First <b> look.","signature":"EqQB=="}`,
		sealed,
		`{"text":5,"block":{"type":"thinking","thinking":"Then.","signature":"s3"}}`,
		`{"text":5,"calls":1,"block":{"type":"thinking","thinking":"","signature":"unseen"}}`,
	}
	if got := opaque(a); !cmp.Equal(got, want) {
		t.Errorf("kept %s", cmp.Diff(want, got))
	}
}

func TestThinkingComesBackToTheProviderWhereItStood(t *testing.T) {
	blocks := []string{
		`{"type":"thinking","thinking":"First <b>   look.","signature":"EqQB=="}`, `{"type":"redacted_thinking","data":"EmwK=="}`, `{"type":"text","text":"Sö "}`,
		`{"type":"thinking","thinking":"","signature":"s3"}`, `{"type":"text","text":"then."}`, `{"type":"tool_use","id":"c1","name":"f","input":{"a":1}}`,
		`{"type":"thinking","thinking":"And.","signature":"s4"}`, `{"type":"tool_use","id":"c2","name":"f","input":{}}`,
	}
	events := []string{begin}
	for i, b := range blocks {
		index := string(rune('0' + i))
		events = append(events, start(index, b), stopOf(index))
	}
	a := stream(t, with(events, why(`"tool_use"`), stop)...)
	// The way through the log: all that is kept of a step in one list.
	msg := session.Message{Role: session.RoleAssistant, Text: a.Text, Reasoning: thought("claude-opus-9", opaque(a)...)}
	r := session.ModelRequest{Model: "claude-opus-9", Effort: "low", Messages: []session.Message{user("hi")}}
	for _, c := range a.Calls {
		arguments := json.RawMessage(c.Arguments)
		if c.Arguments == "" {
			arguments = json.RawMessage("{}")
		}
		msg.Calls = append(msg.Calls, session.Call{ID: c.ID, Name: c.Name, Arguments: arguments})
	}
	r.Messages = append(r.Messages, msg)
	for _, c := range msg.Calls {
		r.Messages = append(r.Messages, answerOf(c.ID))
	}
	body := string(sent(t, r).Body)
	if want := `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`; !strings.Contains(body, want) {
		t.Errorf("%s\ndoes not hold\n%s", body, want)
	}
}

func TestPingsAloneKeepAStreamForALimitedTime(t *testing.T) {
	server := providertest.NewServer(t, providertest.Stream(providertest.Repeat("event: ping\ndata: {\"type\":\"ping\"}\n\n", 10*time.Millisecond)))
	m, err := anthropic.New(anthropic.Config{BaseURL: server.URL(), Idle: 10 * time.Second, Total: 150 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if e := providertest.ErrorOf(t, providertest.Collect(t.Context(), t, m, providertest.Hello())); e.Fault != session.FaultTimeout {
		t.Errorf("fault %s", e.Fault)
	}
}
