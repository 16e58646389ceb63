package providertest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rind-dev/rind/session"
)

// Wire is how a family of providers says things: each method returns the bytes of events.
type Wire interface {
	// Begin is what comes before everything else.
	Begin() string
	// Text is one piece of the answer.
	Text(piece string) string
	// Calls are whole calls, each with its raw arguments in pieces.
	Calls(calls ...WireCall) string
	// End is everything a good stream ends with.
	End(f session.Finish, u session.Usage) string
	// Error is an error inside the stream that says message, of the kind "overloaded".
	Error(message string) string
}

// WireCall is a call as a provider writes it.
type WireCall struct {
	ID, Name  string
	Arguments []string // raw, in pieces
}

func quote(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("providertest: " + err.Error()) // strings and numbers only
	}
	return strings.TrimSpace(b.String())
}

// named writes an event with its type as name, as Anthropic and Responses do.
func named(kind, data string) string { return "event: " + kind + "\ndata: " + data + "\n\n" }

// OpenAIChat is the wire of chat completions.
type OpenAIChat struct{}

// Begin implements Wire.
func (OpenAIChat) Begin() string {
	return Events(`{"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}`)
}

// Text implements Wire.
func (OpenAIChat) Text(piece string) string {
	return Events(`{"choices":[{"index":0,"delta":{"content":` + quote(piece) + `},"finish_reason":null}]}`)
}

// Calls implements Wire.
func (OpenAIChat) Calls(calls ...WireCall) string {
	var b strings.Builder
	for i, c := range calls {
		b.WriteString(Events(fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}}]}`, i, quote(c.ID), quote(c.Name))))
		for _, a := range c.Arguments {
			b.WriteString(Events(fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}}]}`, i, quote(a))))
		}
	}
	return b.String()
}

// End implements Wire.
func (OpenAIChat) End(f session.Finish, u session.Usage) string {
	return Events(
		`{"choices":[{"index":0,"delta":{},"finish_reason":`+quote(f)+`}]}`,
		fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}}`, u.Input, u.Output, u.Cached, u.Reasoning),
		"[DONE]",
	)
}

// Error implements Wire.
func (OpenAIChat) Error(message string) string {
	return Events(`{"error":{"message":` + quote(message) + `,"type":"overloaded","code":503}}`)
}

// OpenAIResponses is the wire of the Responses API.
type OpenAIResponses struct{}

// Begin implements Wire.
func (OpenAIResponses) Begin() string {
	return named("response.created", `{"type":"response.created","response":{"id":"resp_1","status":"in_progress","output":[],"usage":null,"error":null,"incomplete_details":null}}`)
}

// Text implements Wire.
func (OpenAIResponses) Text(piece string) string {
	return named("response.output_text.delta", `{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":`+quote(piece)+`}`)
}

// Calls implements Wire.
func (OpenAIResponses) Calls(calls ...WireCall) string {
	var b strings.Builder
	for i, c := range calls {
		item := func(arguments string) string {
			return fmt.Sprintf(`{"type":"function_call","id":"fc_%d","call_id":%s,"name":%s,"arguments":%s}`, i, quote(c.ID), quote(c.Name), quote(arguments))
		}
		b.WriteString(named("response.output_item.added", fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, i+1, item(""))))
		for _, a := range c.Arguments {
			b.WriteString(named("response.function_call_arguments.delta", fmt.Sprintf(`{"type":"response.function_call_arguments.delta","item_id":"fc_%d","output_index":%d,"delta":%s}`, i, i+1, quote(a))))
		}
		b.WriteString(named("response.output_item.done", fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i+1, item(strings.Join(c.Arguments, "")))))
	}
	return b.String()
}

// End implements Wire.
func (OpenAIResponses) End(f session.Finish, u session.Usage) string {
	kind, why := "response.completed", "null"
	switch f {
	case session.FinishLength:
		kind, why = "response.incomplete", `{"reason":"max_output_tokens"}`
	case session.FinishFilter:
		kind, why = "response.incomplete", `{"reason":"content_filter"}`
	}
	return named(kind, fmt.Sprintf(`{"type":%q,"response":{"id":"resp_1","error":null,"incomplete_details":%s,"usage":{"input_tokens":%d,"output_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens_details":{"reasoning_tokens":%d}}}}`,
		kind, why, u.Input, u.Output, u.Cached, u.Reasoning))
}

// Error implements Wire.
func (OpenAIResponses) Error(message string) string {
	return named("error", `{"type":"error","code":"server_error","message":`+quote(message)+`}`)
}

// Anthropic is the wire of Anthropic's Messages API.
type Anthropic struct{}

// Begin implements Wire.
func (Anthropic) Begin() string {
	return named("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}}`)
}

// Text implements Wire. Each piece is a block of its own.
func (Anthropic) Text(piece string) string {
	return named("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
		named("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+quote(piece)+`}}`) +
		named("content_block_stop", `{"type":"content_block_stop","index":0}`)
}

// Calls implements Wire.
func (Anthropic) Calls(calls ...WireCall) string {
	var b strings.Builder
	for i, c := range calls {
		b.WriteString(named("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%s,"name":%s,"input":{}}}`, i+1, quote(c.ID), quote(c.Name))))
		for _, a := range c.Arguments {
			b.WriteString(named("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, i+1, quote(a))))
		}
		b.WriteString(named("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i+1)))
	}
	return b.String()
}

// End implements Wire.
func (Anthropic) End(f session.Finish, u session.Usage) string {
	why := map[session.Finish]string{session.FinishStop: "end_turn", session.FinishCalls: "tool_use", session.FinishLength: "max_tokens", session.FinishFilter: "refusal"}[f]
	return named("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d,"output_tokens_details":{"thinking_tokens":%d}}}`,
		why, u.Input-u.Cached, u.Cached, u.Output, u.Reasoning)) + named("message_stop", `{"type":"message_stop"}`)
}

// Error implements Wire.
func (Anthropic) Error(message string) string {
	return named("error", `{"type":"error","error":{"type":"overloaded_error","message":`+quote(message)+`}}`)
}
