package openai_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/openai"
	"github.com/rind-dev/rind/session/provider/providertest"
)

// FuzzAnyStreamKeepsTheContract feeds both readers whatever there is, without a network.
func FuzzAnyStreamKeepsTheContract(f *testing.F) {
	chat, resp := providertest.OpenAIChat{}, providertest.OpenAIResponses{}
	for _, w := range []providertest.Wire{chat, resp} {
		f.Add([]byte(w.Begin() + w.Text("x") + w.Calls(providertest.WireCall{ID: "a", Name: "f", Arguments: []string{"{", "}"}}) + w.End(session.FinishCalls, session.Usage{Input: 1})))
		f.Add([]byte(w.Error("boom")))
	}
	f.Add([]byte(providertest.Events(`{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"arguments":"{}"}},{"id":"a","index":3}]}}]}`, "[DONE]")))
	f.Add([]byte(`{"error":{"message":["x"],"metadata":{"raw":"{\"error\":1}"}}}`))
	f.Add([]byte("data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"function_call\"}}\n\n" + resp.End(session.FinishStop, session.Usage{})))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, api := range []string{openai.Chat, openai.Responses} {
			m, err := openai.New(openai.Config{BaseURL: "http://host", Transport: providertest.Canned(200, string(body))}, api)
			if err != nil {
				t.Fatal(err)
			}
			a := providertest.Collect(t.Context(), t, m, providertest.Hello())
			if e, ok := a.Err.(*session.ModelError); a.Err != nil && (!ok || e.Message == "" || protocol.CharLen(e.Message) > 500 || !utf8.ValidString(e.Message) || strings.ContainsFunc(e.Message, unicode.IsControl)) {
				t.Errorf("error %#v", a.Err)
			}
			if !utf8.ValidString(a.Text + a.Reasoning) {
				t.Errorf("text %q is no valid UTF-8", a.Text+a.Reasoning)
			}
		}
	})
}
