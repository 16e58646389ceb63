package openai

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/rind-dev/rind/session"
)

type chatRequest struct {
	Model         string         `json:"model"`
	Messages      []any          `json:"messages"`
	Tools         []chatTool     `json:"tools,omitempty"`
	Stream        bool           `json:"stream"`
	StreamOptions map[string]any `json:"stream_options,omitempty"`
	Effort        string         `json:"reasoning_effort,omitempty"`
	MaxTokens     int            `json:"max_tokens,omitempty"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type contentPart struct {
	Type     string            `json:"type"`
	Text     string            `json:"text,omitempty"`
	ImageURL map[string]string `json:"image_url,omitempty"`
}

// chatBody builds the request.
func chatBody(r session.ModelRequest, usage bool) chatRequest {
	body := chatRequest{Model: r.Model, Stream: true, Effort: r.Effort, MaxTokens: r.MaxOutput, Messages: chatMessages(r.Messages)}
	if usage {
		body.StreamOptions = map[string]any{"include_usage": true}
	}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, chatTool{Type: "function", Function: chatFunction{Name: t.Name, Description: t.Description, Parameters: t.Schema}})
	}
	return body
}

func chatMessages(msgs []session.Message) []any {
	out := make([]any, 0, len(msgs))
	var images []contentPart // of tool results: they may hold text only, so pictures follow as a user message
	flush := func() {
		if len(images) > 0 {
			out = append(out, chatMessage{Role: "user", Content: append([]contentPart{{Type: "text", Text: "Images of the tool results above:"}}, images...)})
			images = nil
		}
	}
	for _, m := range msgs {
		if m.Role != session.RoleTool {
			flush()
		}
		switch m.Role {
		case session.RoleSystem:
			out = append(out, chatMessage{Role: "system", Content: m.Text})
		case session.RoleUser:
			out = append(out, chatMessage{Role: "user", Content: userContent(m)})
		case session.RoleAssistant:
			c := chatMessage{Role: "assistant", Content: m.Text}
			if m.Text == "" && len(m.Calls) > 0 {
				c.Content = nil
			}
			for _, call := range m.Calls {
				cc := chatCall{ID: call.ID, Type: "function"}
				cc.Function.Name, cc.Function.Arguments = call.Name, string(call.Arguments)
				c.ToolCalls = append(c.ToolCalls, cc)
			}
			out = append(out, c)
		case session.RoleTool:
			out = append(out, chatMessage{Role: "tool", Content: m.Text, ToolCallID: m.CallID})
			for _, p := range m.Parts {
				if strings.HasPrefix(p.MIME, "image/") && len(p.Data) > 0 {
					images = append(images, imagePart(p.MIME, p.Data))
				}
			}
		}
	}
	flush()
	return out
}

func imagePart(mime string, data []byte) contentPart {
	return contentPart{Type: "image_url", ImageURL: map[string]string{"url": dataURL(mime, data)}}
}

func dataURL(mime string, data []byte) string {
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
}

func userContent(m session.Message) any {
	if len(m.Parts) == 0 {
		return m.Text
	}
	parts := []contentPart{{Type: "text", Text: m.Text}}
	for _, p := range m.Parts {
		switch {
		case strings.HasPrefix(p.MIME, "image/") && len(p.Data) > 0:
			parts = append(parts, imagePart(p.MIME, p.Data))
		case p.Text != "":
			parts = append(parts, contentPart{Type: "text", Text: p.Text})
		default:
			parts = append(parts, contentPart{Type: "text", Text: "[" + p.Kind + " " + p.Name + " " + p.URI + "]"})
		}
	}
	return parts
}

// chatEvent is one event of the stream; everything may be missing or null.
type chatEvent struct {
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Content          *string     `json:"content"`
			Refusal          *string     `json:"refusal"`
			ReasoningContent *string     `json:"reasoning_content"`
			Reasoning        *string     `json:"reasoning"`
			ToolCalls        []callPiece `json:"tool_calls"`
		} `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Completed struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type callPiece struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// chat makes one chat completion.
func (m *Model) chat(ctx context.Context, cancel context.CancelCauseFunc, r session.ModelRequest, yield func(session.Chunk, error) bool) error {
	_, plain := m.plain.Load("stream_options")
	s, err := m.post(ctx, cancel, "/chat/completions", chatBody(r, !plain))
	if e, ok := errors.AsType[*session.ModelError](err); ok && !plain && e.Status == 400 && strings.Contains(e.Message, "stream_options") {
		m.plain.Store("stream_options", true) // older servers know no usage in streams
		s, err = m.post(ctx, cancel, "/chat/completions", chatBody(r, false))
	}
	if err != nil {
		return err
	}
	defer s.close()
	c := &chatReader{m: m, yield: yield}
	for {
		_, data, err := s.next()
		if err != nil {
			if errors.Is(err, io.EOF) && c.finish != "" {
				return c.end() // complete though the end mark is missing
			}
			return m.broken(ctx, err, c.began)
		}
		if string(data) == "[DONE]" {
			if !c.began && c.finish == "" {
				return m.broken(ctx, io.EOF, false)
			}
			return c.end()
		}
		if err := c.event(data); err != nil {
			return err
		}
	}
}

// chatReader turns events into chunks.
type chatReader struct {
	m      *Model
	yield  func(session.Chunk, error) bool
	began  bool
	calls  []*openCall
	usage  *session.Usage
	finish session.Finish
}

type openCall struct {
	index int
	id    string // as the provider names it, made unique within this answer
	given string
	name  string
	args  strings.Builder
}

func (c *chatReader) send(chunk session.Chunk) error {
	if !c.yield(chunk, nil) {
		return errStopped
	}
	return nil
}

func (c *chatReader) event(data []byte) error {
	var e chatEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return &session.ModelError{Fault: session.FaultCut, Message: "The model's stream holds an event that is no JSON.", Cause: err}
	}
	if len(e.Error) > 0 && string(e.Error) != "null" {
		message, kind, status, _ := parseError(data)
		return c.m.fault(status, message, kind, 0)
	}
	if u := e.Usage; u != nil {
		c.usage = &session.Usage{Input: u.Prompt, Cached: u.Details.Cached, Output: u.Completion, Reasoning: u.Completed.Reasoning}
	}
	for i := range e.Choices {
		ch := &e.Choices[i]
		if ch.Index != 0 {
			continue
		}
		for _, p := range []struct {
			kind session.ChunkKind
			text *string
		}{{session.ChunkReasoning, first(ch.Delta.ReasoningContent, ch.Delta.Reasoning)}, {session.ChunkText, ch.Delta.Content}, {session.ChunkText, ch.Delta.Refusal}} {
			if p.text != nil && *p.text != "" {
				c.began = true
				if err := c.send(session.Chunk{Kind: p.kind, Text: *p.text}); err != nil {
					return err
				}
			}
		}
		for _, p := range ch.Delta.ToolCalls {
			c.began = true
			if err := c.piece(p); err != nil {
				return err
			}
		}
		if ch.FinishReason != nil {
			c.finish = finishOf(*ch.FinishReason)
		}
	}
	return nil
}

func first(a, b *string) *string {
	if a != nil && *a != "" {
		return a
	}
	return b
}

func finishOf(reason string) session.Finish {
	switch reason {
	case "length", "max_tokens":
		return session.FinishLength
	case "content_filter":
		return session.FinishFilter
	case "tool_calls", "function_call":
		return session.FinishCalls
	}
	return session.FinishStop
}

// piece adds a piece of a call to the call it belongs to: by id where it names a new one, else by index, else to the newest.
func (c *chatReader) piece(p callPiece) error {
	call := c.find(p)
	if call == nil {
		call = &openCall{index: len(c.calls), given: p.ID, name: p.Function.Name}
		if p.Index != nil {
			call.index = *p.Index
		}
		call.id = c.unique(p.ID)
		c.calls = append(c.calls, call)
		if err := c.send(session.Chunk{Kind: session.ChunkCallStart, CallID: call.id, Name: call.name}); err != nil {
			return err
		}
	}
	if p.Function.Arguments == "" {
		return nil
	}
	call.args.WriteString(p.Function.Arguments)
	return c.send(session.Chunk{Kind: session.ChunkCallDelta, CallID: call.id, Text: p.Function.Arguments})
}

func (c *chatReader) find(p callPiece) *openCall {
	if len(c.calls) == 0 {
		return nil
	}
	newest := c.calls[len(c.calls)-1]
	if p.ID == "" {
		if p.Index == nil {
			return newest
		}
		for i := len(c.calls) - 1; i >= 0; i-- {
			if c.calls[i].index == *p.Index {
				return c.calls[i]
			}
		}
		return nil
	}
	for i := len(c.calls) - 1; i >= 0; i-- {
		call := c.calls[i]
		if call.given == p.ID && (p.Index == nil || call.index == *p.Index) {
			return call
		}
	}
	return nil
}

// unique names a call so that pieces and end find it, also when the provider gives no id or the same twice.
func (c *chatReader) unique(id string) string {
	for _, other := range c.calls {
		if other.id == id && id != "" {
			return c.unique(id + "'")
		}
	}
	if id == "" {
		id = strings.Repeat("\x00", len(c.calls)+1) // no id: the loop makes one
	}
	return id
}

// end sends what a complete answer ends with.
func (c *chatReader) end() error {
	for _, call := range c.calls {
		if err := c.send(session.Chunk{Kind: session.ChunkCallEnd, CallID: call.id, Name: call.name, Text: call.args.String()}); err != nil {
			return err
		}
	}
	if c.usage != nil {
		if err := c.send(session.Chunk{Kind: session.ChunkUsage, Usage: *c.usage}); err != nil {
			return err
		}
	}
	switch {
	case len(c.calls) > 0 && c.finish != session.FinishLength && c.finish != session.FinishFilter:
		c.finish = session.FinishCalls
	case c.finish == "":
		c.finish = session.FinishStop
	}
	return c.send(session.Chunk{Kind: session.ChunkFinish, Finish: c.finish})
}
