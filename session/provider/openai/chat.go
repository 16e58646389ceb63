package openai

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/rind-dev/rind/session"
)

// chatEvent is one event of the stream; everything may be missing or null.
type chatEvent struct {
	Choices []chatChoice    `json:"choices"`
	Usage   *chatUsage      `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Object  loose           `json:"object"`
}

type chatChoice struct {
	Index int `json:"index"`
	Delta struct {
		Content          loose       `json:"content"`
		Refusal          loose       `json:"refusal"`
		ReasoningContent loose       `json:"reasoning_content"`
		Reasoning        loose       `json:"reasoning"`
		ToolCalls        []callPiece `json:"tool_calls"`
		FunctionCall     *function   `json:"function_call"` // how calls were told before tool_calls
	} `json:"delta"`
	FinishReason loose `json:"finish_reason"`
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

// chat makes one chat completion.
func (m *Model) chat(ctx context.Context, cancel context.CancelCauseFunc, r session.ModelRequest, yield func(session.Chunk, error) bool) error {
	build := func() any { return m.chatBody(r) }
	s, err := m.ask(ctx, cancel, "/chat/completions", build, noUsage(), newMax(r.Model))
	if err != nil {
		return err
	}
	defer s.close()
	c := &chatReader{m: m, stream: s, yield: yield}
	for {
		e, err := s.next()
		switch {
		case err != nil && c.finish != "" && c.over():
			return c.end() // the model said why it ended; only the end mark is missing
		case err != nil:
			return m.broken(ctx, err, c.began)
		case e.comment:
			err = c.emit(session.Chunk{Kind: session.ChunkAlive})
		case string(e.data) == "[DONE]":
			if !c.began && c.finish == "" {
				return &session.ModelError{Fault: session.FaultBadReply, Status: 200, Message: "The provider's answer was empty."}
			}
			if err := c.end(); err != nil {
				return err
			}
			s.finish()
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
	m      *Model
	stream *stream
	yield  func(session.Chunk, error) bool
	began  bool // something of the answer came
	calls  calls
	usage  session.Usage
	finish session.Finish
}

// over tells whether a stream that said why it ended may end so: closed, cut, or silent, but not cancelled.
func (c *chatReader) over() bool {
	cause := context.Cause(c.stream.ctx)
	return cause == nil || errors.Is(cause, errIdle)
}

func (c *chatReader) emit(chunk session.Chunk) error {
	if !c.yield(chunk, nil) {
		return errStopped
	}
	return nil
}

// say emits a piece of the answer.
func (c *chatReader) say(chunk session.Chunk) error {
	c.began = true
	err := c.emit(chunk)
	c.stream.dog.feed()
	return err
}

func (c *chatReader) event(in event) error {
	var e chatEvent
	if err := json.Unmarshal(in.data, &e); err != nil {
		return c.m.unreadable(err, c.began)
	}
	if len(e.Error) > 0 && string(e.Error) != "null" || e.Choices == nil && (e.Object == "error" || in.name == "error") {
		return c.m.failed(in.data)
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
		if err := c.say(session.Chunk{Kind: session.ChunkReasoning, Text: string(thought)}); err != nil {
			return err
		}
	}
	for _, text := range [...]loose{ch.Delta.Content, ch.Delta.Refusal} {
		if text != "" {
			if err := c.say(session.Chunk{Kind: session.ChunkText, Text: string(text)}); err != nil {
				return err
			}
		}
	}
	if f := ch.Delta.FunctionCall; f != nil {
		ch.Delta.ToolCalls = append(ch.Delta.ToolCalls, callPiece{Function: *f})
	}
	for _, p := range ch.Delta.ToolCalls {
		c.began = true
		if err := c.calls.add(p, c.say); err != nil {
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
	c.stream.dog.within(endGrace)
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
	if err := c.calls.end(c.emit); err != nil {
		return err
	}
	if c.usage != (session.Usage{}) {
		if err := c.emit(session.Chunk{Kind: session.ChunkUsage, Usage: c.usage}); err != nil {
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
	return c.emit(session.Chunk{Kind: session.ChunkFinish, Finish: c.finish})
}

// failed is an error inside the stream.
func (m *Model) failed(data []byte) error {
	t, ok := parseError(data)
	if !ok {
		t.message = string(data)
	}
	return m.fault(t, 0)
}

// unreadable is an event that is no JSON.
func (m *Model) unreadable(err error, began bool) error {
	e := &session.ModelError{Fault: session.FaultBadReply, Status: 200, Message: "The provider's stream holds an event that cannot be read.", Cause: m.redacted(err)}
	if began {
		e.Fault = session.FaultCut
	}
	return e
}
