package openai

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/rind-dev/rind/session"
)

type responsesRequest struct {
	Model     string          `json:"model"`
	Input     []any           `json:"input"`
	Tools     []responsesTool `json:"tools,omitempty"`
	Stream    bool            `json:"stream"`
	Store     bool            `json:"store"`
	Include   []string        `json:"include,omitempty"`
	Reasoning map[string]any  `json:"reasoning,omitempty"`
	MaxOutput int             `json:"max_output_tokens,omitempty"`
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

type inputItem struct {
	Type      string `json:"type"`
	Role      string `json:"role,omitempty"`
	Content   any    `json:"content,omitempty"`
	CallID    string `json:"call_id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Output    any    `json:"output,omitempty"`
}

type inputPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
}

// responsesBody builds the request. Nothing is stored at the provider: reasoning comes back encrypted and is sent again with its step.
func (m *Model) responsesBody(r session.ModelRequest) responsesRequest {
	body := responsesRequest{Model: r.Model, Stream: true, MaxOutput: r.MaxOutput, Input: []any{}, Include: []string{"reasoning.encrypted_content"}}
	if r.Effort != "" {
		body.Reasoning = map[string]any{"effort": r.Effort, "summary": "auto"}
	}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, responsesTool{Type: "function", Name: t.Name, Description: t.Description, Parameters: t.Schema})
	}
	for _, msg := range r.Messages {
		body.Input = append(body.Input, m.inputItems(msg, r.Model)...)
	}
	return body
}

func (m *Model) inputItems(msg session.Message, model string) []any {
	switch msg.Role {
	case session.RoleSystem:
		return []any{inputItem{Type: "message", Role: "developer", Content: []inputPart{{Type: "input_text", Text: msg.Text}}}}
	case session.RoleUser:
		parts := []inputPart{{Type: "input_text", Text: msg.Text}}
		for _, p := range msg.Parts {
			switch {
			case strings.HasPrefix(p.MIME, "image/") && len(p.Data) > 0:
				parts = append(parts, inputPart{Type: "input_image", ImageURL: dataURL(p.MIME, p.Data)})
			case p.Text != "":
				parts = append(parts, inputPart{Type: "input_text", Text: p.Text})
			default:
				parts = append(parts, inputPart{Type: "input_text", Text: "[" + p.Kind + " " + p.Name + " " + p.URI + "]"})
			}
		}
		return []any{inputItem{Type: "message", Role: "user", Content: parts}}
	case session.RoleTool:
		item := inputItem{Type: "function_call_output", CallID: msg.CallID, Output: msg.Text}
		var parts []inputPart
		for _, p := range msg.Parts {
			if strings.HasPrefix(p.MIME, "image/") && len(p.Data) > 0 {
				parts = append(parts, inputPart{Type: "input_image", ImageURL: dataURL(p.MIME, p.Data)})
			}
		}
		if parts != nil {
			item.Output = append([]inputPart{{Type: "input_text", Text: msg.Text}}, parts...)
		}
		return []any{item}
	case session.RoleAssistant:
	}
	var out []any
	for _, re := range msg.Reasoning {
		var items []json.RawMessage
		if re.Provider == m.cfg.Name && re.Model == model && json.Unmarshal(re.Opaque, &items) == nil {
			for _, it := range items {
				out = append(out, it)
			}
		}
	}
	if msg.Text != "" {
		out = append(out, inputItem{Type: "message", Role: "assistant", Content: []inputPart{{Type: "output_text", Text: msg.Text}}})
	}
	for _, c := range msg.Calls {
		out = append(out, inputItem{Type: "function_call", CallID: c.ID, Name: c.Name, Arguments: string(c.Arguments)})
	}
	return out
}

type responsesEvent struct {
	Type        string          `json:"type"`
	Delta       string          `json:"delta"`
	ItemID      string          `json:"item_id"`
	OutputIndex int             `json:"output_index"`
	Item        json.RawMessage `json:"item"`
	Response    struct {
		Usage *struct {
			Input   int `json:"input_tokens"`
			Output  int `json:"output_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
			OutputDetails struct {
				Reasoning int `json:"reasoning_tokens"`
			} `json:"output_tokens_details"`
		} `json:"usage"`
		Error      json.RawMessage `json:"error"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
	} `json:"response"`
	Message string          `json:"message"`
	Code    json.RawMessage `json:"code"`
}

type outputItem struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// responses makes one completion over the Responses API.
func (m *Model) responses(ctx context.Context, cancel context.CancelCauseFunc, r session.ModelRequest, yield func(session.Chunk, error) bool) error {
	s, err := m.post(ctx, cancel, "/responses", m.responsesBody(r))
	if err != nil {
		return err
	}
	defer s.close()
	p := &responsesReader{m: m, yield: yield, ids: map[string]string{}}
	for {
		_, data, err := s.next()
		if err != nil {
			return m.broken(ctx, err, p.began)
		}
		if string(data) == "[DONE]" {
			return m.broken(ctx, io.EOF, p.began)
		}
		done, err := p.event(data)
		if err != nil || done {
			return err
		}
	}
}

type responsesReader struct {
	m     *Model
	yield func(session.Chunk, error) bool
	began bool
	calls int
	ids   map[string]string // item id -> call id
}

func (p *responsesReader) send(c session.Chunk) error {
	p.began = true
	if !p.yield(c, nil) {
		return errStopped
	}
	return nil
}

func (p *responsesReader) event(data []byte) (done bool, err error) {
	var e responsesEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return false, &session.ModelError{Fault: session.FaultCut, Message: "The model's stream holds an event that is no JSON.", Cause: err}
	}
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta":
		return false, p.send(session.Chunk{Kind: session.ChunkText, Text: e.Delta})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return false, p.send(session.Chunk{Kind: session.ChunkReasoning, Text: e.Delta})
	case "response.output_item.added", "response.output_item.done":
		return false, p.item(e)
	case "response.function_call_arguments.delta":
		return false, p.send(session.Chunk{Kind: session.ChunkCallDelta, CallID: p.ids[e.ItemID], Text: e.Delta})
	case "response.completed", "response.incomplete":
		return true, p.end(e)
	case "response.failed", "error":
		message, kind, status, ok := parseError([]byte(`{"error":` + string(orNull(e.Response.Error)) + `}`))
		if !ok {
			message, kind = e.Message, string(e.Code)
		}
		return true, p.m.fault(status, message, kind, 0)
	}
	return false, nil
}

func orNull(j json.RawMessage) json.RawMessage {
	if len(j) == 0 {
		return json.RawMessage("null")
	}
	return j
}

func (p *responsesReader) item(e responsesEvent) error {
	var it outputItem
	if err := json.Unmarshal(e.Item, &it); err != nil {
		return &session.ModelError{Fault: session.FaultCut, Message: "The model's stream holds an item that is not readable.", Cause: err}
	}
	ended := e.Type == "response.output_item.done"
	switch {
	case it.Type == "function_call" && !ended:
		p.ids[it.ID] = it.CallID
		p.calls++
		return p.send(session.Chunk{Kind: session.ChunkCallStart, CallID: it.CallID, Name: it.Name})
	case it.Type == "function_call":
		return p.send(session.Chunk{Kind: session.ChunkCallEnd, CallID: it.CallID, Name: it.Name, Text: it.Arguments})
	case it.Type == "reasoning" && ended:
		return p.send(session.Chunk{Kind: session.ChunkOpaque, Opaque: e.Item})
	}
	return nil
}

func (p *responsesReader) end(e responsesEvent) error {
	if u := e.Response.Usage; u != nil {
		if err := p.send(session.Chunk{Kind: session.ChunkUsage, Usage: session.Usage{
			Input: u.Input, Cached: u.Details.Cached, Output: u.Output, Reasoning: u.OutputDetails.Reasoning,
		}}); err != nil {
			return err
		}
	}
	f := session.FinishStop
	switch {
	case e.Response.Incomplete.Reason == "max_output_tokens":
		f = session.FinishLength
	case e.Response.Incomplete.Reason == "content_filter":
		f = session.FinishFilter
	case e.Type == "response.incomplete":
		return &session.ModelError{Fault: session.FaultCut, Message: "The model's answer is incomplete."}
	case p.calls > 0:
		f = session.FinishCalls
	}
	return p.send(session.Chunk{Kind: session.ChunkFinish, Finish: f})
}
