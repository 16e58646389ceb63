package openai

import (
	"encoding/json"
	"time"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

// chatEvent is one event of the stream; everything may be missing or null.
type chatEvent struct {
	Choices []chatChoice    `json:"choices"`
	Usage   *chatUsage      `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Object  modelhttp.Loose `json:"object"`
}

type chatChoice struct {
	Index int `json:"index"`
	Delta struct {
		Content          modelhttp.Loose `json:"content"`
		Refusal          modelhttp.Loose `json:"refusal"`
		ReasoningContent modelhttp.Loose `json:"reasoning_content"`
		Reasoning        modelhttp.Loose `json:"reasoning"`
		ToolCalls        []callPiece     `json:"tool_calls"`
		FunctionCall     *function       `json:"function_call"` // how calls were told before tool_calls
	} `json:"delta"`
	FinishReason modelhttp.Loose `json:"finish_reason"`
}

type chatUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	CacheHit   int `json:"prompt_cache_hit_tokens"` // DeepSeek
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Completed struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// endGrace is how long the rest of a stream (usage, end mark) may take once the model said why it ended.
const endGrace = 3 * time.Second

// chat makes one chat completion.
func (m *Model) chat(a *modelhttp.Answer, r session.ModelRequest) error {
	build := func() any { return m.chatBody(r) }
	if err := m.ask(a, "/chat/completions", build, noUsage(), newMax(r.Model)); err != nil {
		return err
	}
	c := &chatReader{Answer: a}
	for {
		e, err := c.Next()
		switch {
		case err != nil && c.finish != "" && !c.Cancelled(): // closed, cut, or silent
			return c.end() // the model said why it ended; only the end mark is missing
		case err != nil:
			return c.Broken(err)
		case e.Comment:
			err = c.Emit(session.Chunk{Kind: session.ChunkAlive})
		case string(e.Data) == "[DONE]":
			if !c.Began && c.finish == "" {
				return &session.ModelError{Fault: session.FaultBadReply, Status: 200, Message: "The provider's answer was empty."}
			}
			if err := c.end(); err != nil {
				return err
			}
			c.Finish()
			return nil
		default:
			err = c.event(e)
		}
		if err != nil {
			return err
		}
	}
}

// chatReader turns events into chunks.
type chatReader struct {
	*modelhttp.Answer
	calls  calls
	usage  session.Usage
	finish session.Finish
}

func (c *chatReader) event(in modelhttp.Event) error {
	var e chatEvent
	if err := json.Unmarshal(in.Data, &e); err != nil {
		return c.Unreadable(err)
	}
	if len(e.Error) > 0 && string(e.Error) != "null" || e.Choices == nil && (e.Object == "error" || in.Name == "error") {
		return c.Failed(in.Data)
	}
	if u := e.Usage; u != nil && u.Prompt+u.Completion > 0 {
		c.usage = session.Usage{Input: u.Prompt, Cached: max(u.Details.Cached, u.CacheHit), Output: u.Completion, Reasoning: u.Completed.Reasoning}
	}
	for i := range e.Choices {
		if e.Choices[i].Index != 0 {
			continue // nobody asked for more than one
		}
		if err := c.choice(&e.Choices[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *chatReader) choice(ch *chatChoice) error {
	thought := ch.Delta.ReasoningContent
	if thought == "" { // where both are sent they are the same
		thought = ch.Delta.Reasoning
	}
	if thought != "" {
		if err := c.Say(session.Chunk{Kind: session.ChunkReasoning, Text: string(thought)}); err != nil {
			return err
		}
	}
	for _, text := range [...]modelhttp.Loose{ch.Delta.Content, ch.Delta.Refusal} {
		if text != "" {
			if err := c.Say(session.Chunk{Kind: session.ChunkText, Text: string(text)}); err != nil {
				return err
			}
		}
	}
	if f := ch.Delta.FunctionCall; f != nil {
		ch.Delta.ToolCalls = append(ch.Delta.ToolCalls, callPiece{Function: *f})
	}
	for _, p := range ch.Delta.ToolCalls {
		c.Began = true
		if err := c.calls.add(p, c.Say); err != nil {
			return err
		}
	}
	switch ch.FinishReason {
	case "":
		return nil
	case "error":
		return &session.ModelError{Fault: session.FaultServer, Message: "The provider ended the answer with an error it did not explain."}
	}
	c.finish = finishOf(string(ch.FinishReason))
	c.Within(endGrace)
	return nil
}

func finishOf(reason string) session.Finish {
	switch reason {
	case "length", "max_tokens", "MAX_TOKENS":
		return session.FinishLength
	case "content_filter", "SAFETY":
		return session.FinishFilter
	case "tool_calls", "function_call":
		return session.FinishCalls
	}
	return session.FinishStop
}

// end sends what a complete answer ends with.
func (c *chatReader) end() error {
	if err := c.calls.end(c.Emit); err != nil {
		return err
	}
	if c.usage != (session.Usage{}) {
		if err := c.Emit(session.Chunk{Kind: session.ChunkUsage, Usage: c.usage}); err != nil {
			return err
		}
	}
	cut := c.finish == session.FinishLength || c.finish == session.FinishFilter
	switch {
	case len(c.calls.all) > 0 && !cut:
		c.finish = session.FinishCalls // some servers say stop
	case !cut:
		c.finish = session.FinishStop
	}
	return c.Emit(session.Chunk{Kind: session.ChunkFinish, Finish: c.finish})
}
