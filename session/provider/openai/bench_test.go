package openai_test

import (
	"strings"
	"testing"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/openai"
	"github.com/rind-dev/rind/session/provider/providertest"
)

// BenchmarkChunk is the CPU of one small chunk through the adapter, without a network: the goal is 10 µs.
func BenchmarkChunk(b *testing.B) {
	chunk := `data: {"id":"chatcmpl-9f2","object":"chat.completion.chunk","created":1760000000,"model":"gpt-x","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	event := `event: response.output_text.delta` + "\n" + `data: {"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" token","logprobs":[],"obfuscation":"abcdefgh"}` + "\n\n"
	for _, c := range []struct{ api, piece, end string }{
		{openai.Chat, chunk, providertest.OpenAIChat{}.End(session.FinishStop, session.Usage{})},
		{openai.Responses, event, providertest.OpenAIResponses{}.End(session.FinishStop, session.Usage{})},
	} {
		b.Run(c.api, func(b *testing.B) {
			body := strings.Repeat(c.piece, b.N) + c.end
			m, err := openai.New(openai.Config{BaseURL: "http://host", Transport: providertest.Canned(200, body)}, c.api)
			if err != nil {
				b.Fatal(err)
			}
			providertest.MeasureChunks(b, m)
		})
	}
}
