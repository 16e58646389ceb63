package anthropic_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/anthropic"
	"github.com/rind-dev/rind/session/provider/providertest"
)

// answering makes a model whose every answer is body, without a network; the last request's body is put into sent.
func answering(t testing.TB, body string, sent *[]byte) *anthropic.Model {
	t.Helper()
	m, err := anthropic.New(anthropic.Config{Name: "test", BaseURL: "http://host", Transport: providertest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		if sent != nil {
			*sent = make([]byte, r.ContentLength)
			_, _ = r.Body.Read(*sent) // a bytes.Reader gives all at once
		}
		return providertest.Canned(200, body)(r)
	})})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// FuzzAnyStreamKeepsTheContract feeds the reader whatever there is; what it keeps of the thinking must be fit to be given back.
func FuzzAnyStreamKeepsTheContract(f *testing.F) {
	f.Add([]byte(wire.Begin() + wire.Text("x") + wire.Calls(providertest.WireCall{ID: "a", Name: "f", Arguments: []string{"{", "}"}}) + wire.End(session.FinishCalls, session.Usage{Input: 1})))
	f.Add([]byte(wire.Error("boom")))
	f.Add([]byte(providertest.Events(begin, start("0", `{"type":"thinking","thinking":"x\ud99c","signature":"s"}`), stopOf("0"), start("1", redacted), stopOf("1"), start("2", `{"type":"text","text":"x"}`),
		start("3", `{"type":"thinking","signature":"s"}`), why(`"end_turn"`), stop)))
	f.Add([]byte(`{"error":{"type":["x"],"message":{"raw":1},"details":[]}}`))
	f.Add([]byte(providertest.Events(`{"type":"content_block_start","index":-1,"content_block":null}`, `{"type":"content_block_delta"}`, stop)))
	f.Fuzz(func(t *testing.T, body []byte) {
		var back []byte
		m := answering(t, string(body), &back)
		a := providertest.Collect(t.Context(), t, m, providertest.Hello())
		if e, ok := a.Err.(*session.ModelError); a.Err != nil && (!ok || e.Message == "" || protocol.CharLen(e.Message) > 500 || !utf8.ValidString(e.Message) || strings.ContainsFunc(e.Message, unicode.IsControl)) {
			t.Errorf("error %#v", a.Err)
		}
		if !utf8.ValidString(a.Text + a.Reasoning) {
			t.Errorf("text %q is no valid UTF-8", a.Text+a.Reasoning)
		}
		kept := opaque(a)
		if len(kept) == 0 {
			return
		}
		const id = "claude-opus-9"
		r := session.ModelRequest{Model: id, Messages: []session.Message{
			user("hi"), {Role: session.RoleAssistant, Text: a.Text, Calls: []session.Call{call("a"), call("b")}, Reasoning: thought(id, kept...)}, answerOf("a"), answerOf("b"),
		}}
		for range m.Generate(t.Context(), r) {
		}
		if err := strict(back); err != nil {
			t.Errorf("kept %s, which makes a request that is refused: %v", kept, err)
		}
		var said struct {
			Messages []struct {
				Content []struct {
					Type string `json:"type"`
				} `json:"content"`
			} `json:"messages"`
		}
		if err := json.Unmarshal(back, &said); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, b := range said.Messages[1].Content {
			if strings.HasSuffix(b.Type, "thinking") {
				n++
			}
		}
		if n != len(kept) {
			t.Errorf("%d of %d blocks are given back: %s", n, len(kept), back)
		}
	})
}

// BenchmarkChunk is the CPU of one small chunk through the adapter, without a network: the goal is 10 µs.
func BenchmarkChunk(b *testing.B) {
	event := "event: content_block_delta\ndata: " + delta("0", `{"type":"text_delta","text":" token"}`) + "\n\n"
	m := answering(b, strings.Repeat(event, b.N)+wire.End(session.FinishStop, session.Usage{}), nil)
	providertest.MeasureChunks(b, m)
}
