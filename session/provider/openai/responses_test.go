package openai_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/openai"
	"github.com/rind-dev/rind/session/provider/providertest"
)

func responses(t testing.TB, r providertest.Reply) providertest.Answer {
	t.Helper()
	m := model(t, openai.Responses, providertest.Endpoint{URL: providertest.NewServer(t, r).URL()})
	return providertest.Collect(t.Context(), t, m, providertest.Hello())
}

const completed = `{"type":"response.completed","response":{"usage":{"input_tokens":3,"output_tokens":1}}}`

func TestReasoningItemsAreKeptForTheNextRequest(t *testing.T) {
	const item = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm  <b>"}],"encrypted_content":"gAAA=="}`
	a := responses(t, providertest.SSE(
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}`,
		`{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0}`, `{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"hm"}`,
		`{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1}`, `{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"so"}`,
		`{"type":"response.output_item.done","output_index":0,"item":`+item+`}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"reasoning","id":"rs_2","encrypted_content":"x","summary":[{"text":"a\ud99cb"}]}}`,
		`{"type":"response.output_item.done","output_index":2,"item":{"type":"reasoning","id":"rs_3","summary":[]}}`,
		`{"type":"response.output_text.delta","output_index":3,"delta":"ok"}`, completed,
	))
	if a.Err != nil || a.Reasoning != "hm\n\nso" || a.Text != "ok" {
		t.Errorf("reasoning %q, text %q, %v", a.Reasoning, a.Text, a.Err)
	}
	var kept []string
	for _, c := range a.Chunks {
		if c.Kind == session.ChunkOpaque {
			kept = append(kept, string(c.Opaque))
		}
	}
	// As it came, to the byte; made fit for strict readers; and the one that could only be found where it was stored is not kept.
	if want := []string{item, `{"encrypted_content":"x","id":"rs_2","summary":[{"text":"a` + "\uFFFD" + `b"}],"type":"reasoning"}`}; !cmp.Equal(kept, want) {
		t.Errorf("kept %q", kept)
	}
}

func TestResponsesOfServersThatStreamLessAreComplete(t *testing.T) {
	a := responses(t, providertest.SSE(
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"whole"}]}}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"}}`,
		`{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","call_id":"c1","name":"g","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{}"}`, completed,
	))
	want := []providertest.AnswerCall{{ID: "c1", Name: "f", Arguments: `{"a":1}`}, {ID: "c1_2", Name: "g", Arguments: `{}`}}
	if a.Err != nil || a.Text != "whole" || !cmp.Equal(a.Calls, want) || a.Finish != session.FinishCalls {
		t.Errorf("text %q, calls %+v, %q, %v", a.Text, a.Calls, a.Finish, a.Err)
	}
	call := func(pieces, whole string) string {
		a := responses(t, providertest.SSE(
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c1","name":"g","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"`+pieces+`"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c1","name":"g","arguments":"`+whole+`"}}`, completed,
		))
		return a.Calls[0].Arguments
	}
	for _, c := range [][3]string{{"[1", "[1,2]", "[1,2]"}, {"[1]", "", "[1]"}, {"[1, 2]", "[1,2]", "[1, 2]"}} {
		if got := call(c[0], c[1]); got != c[2] {
			t.Errorf("pieces %s and the whole %s make %s", c[0], c[1], got)
		}
	}
	a = responses(t, providertest.SSE(
		`{"type":"response.output_text.delta","output_index":0,"delta":"once"}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"once"}]}}`, completed,
	))
	if a.Text != "once" {
		t.Errorf("text %q", a.Text)
	}
}

func TestTheEndOfAResponseDecidesWhetherItIsAnAnswer(t *testing.T) {
	text := `{"type":"response.output_text.delta","output_index":0,"delta":"x"}`
	for name, test := range map[string]struct {
		events []string
		finish session.Finish
		fault  session.Fault
		says   string
	}{
		"completed":            {[]string{text, completed}, session.FinishStop, "", ""},
		"an end mark alone":    {[]string{text, "[DONE]"}, "", session.FaultCut, ""},
		"nothing":              {nil, "", session.FaultCut, ""},
		"incomplete":           {[]string{text, `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}`}, session.FinishLength, "", ""},
		"filtered":             {[]string{text, `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}`}, session.FinishFilter, "", ""},
		"incomplete somehow":   {[]string{text, `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"moon"}}}`}, "", session.FaultCut, "moon"},
		"failed":               {[]string{`{"type":"response.failed","response":{"error":{"code":"server_error","message":"it broke"}}}`}, "", session.FaultServer, "it broke"},
		"failed for the rate":  {[]string{`{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow"}}}`}, "", session.FaultRate, "slow"},
		"failed for the quota": {[]string{`{"type":"error","error":{"type":"insufficient_quota","code":"insufficient_quota","message":"pay"}}`}, "", session.FaultQuota, "pay"},
		"context":              {[]string{`{"type":"error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}`}, "", session.FaultContext, "exceeds"},
		"an error of no type":  {[]string{`{"error":{"message":"who knows"}}`}, "", session.FaultRejected, "who knows"},
		"no JSON":              {[]string{text, `{"type":`}, "", session.FaultCut, ""},
	} {
		a := responses(t, providertest.SSE(test.events...))
		if a.Finish != test.finish || a.Fault() != test.fault || test.says != "" && !strings.Contains(providertest.ErrorOf(t, a).Message, test.says) {
			t.Errorf("%s: %q, %v", name, a.Finish, a.Err)
		}
	}
}
