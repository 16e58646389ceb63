package openai

import (
	"encoding/json"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

type responsesRequest struct {
	Model     string          `json:"model"`
	Input     []any           `json:"input"` // inputItem, or reasoning as it was given
	Tools     []responsesTool `json:"tools,omitempty"`
	Stream    bool            `json:"stream"`
	Store     bool            `json:"store"`
	Include   []string        `json:"include,omitempty"`
	Reasoning *reasoningWish  `json:"reasoning,omitempty"`
	MaxOutput int             `json:"max_output_tokens,omitempty"`
}

type reasoningWish struct {
	Effort  string `json:"effort"`
	Summary string `json:"summary,omitempty"`
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// inputItem is a message, a call (arguments, also empty ones, are text) or a result.
type inputItem struct {
	Type      string  `json:"type"`
	Role      string  `json:"role,omitempty"`
	Content   any     `json:"content,omitempty"`
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
	Output    any     `json:"output,omitempty"`
}

type inputPart struct {
	Type     string  `json:"type"`
	Text     *string `json:"text,omitempty"`
	ImageURL string  `json:"image_url,omitempty"`
}

func inputText(text string) inputPart { return inputPart{Type: "input_text", Text: &text} }

// Fields of a Responses request some models and accounts refuse.
// noEncrypted also takes out the reasoning given back: what a provider cannot use any more must not end the session.
func noEncrypted(model string) refusal {
	return refusal{field: "include", model: model, words: []string{"encrypted content", "encrypted_content", "of type 'reasoning'"}}
}

func noSummary(model string) refusal {
	return refusal{field: "summary", model: model, words: []string{"reasoning.summary", "reasoning summar"}}
}

// responsesBody builds the request. Nothing is stored at the provider: reasoning comes back encrypted and is sent again with its step.
func (m *Model) responsesBody(r session.ModelRequest) responsesRequest {
	body := responsesRequest{Model: r.Model, Stream: true, MaxOutput: r.MaxOutput, Input: []any{}}
	if !m.refuses(noEncrypted(r.Model)) {
		body.Include = []string{"reasoning.encrypted_content"}
	}
	if r.Effort != "" {
		body.Reasoning = &reasoningWish{Effort: r.Effort}
		if !m.refuses(noSummary(r.Model)) {
			body.Reasoning.Summary = "auto"
		}
	}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, responsesTool{Type: "function", Name: t.Name, Description: t.Description, Parameters: modelhttp.Schema(t)})
	}
	for i := range r.Messages {
		body.Input = append(body.Input, m.inputItems(&r.Messages[i], r.Model)...)
	}
	return body
}

func (m *Model) inputItems(msg *session.Message, model string) []any {
	switch msg.Role {
	case session.RoleSystem:
		return []any{inputItem{Type: "message", Role: "developer", Content: []inputPart{inputText(msg.Text)}}}
	case session.RoleUser:
		var parts []inputPart
		if msg.Text != "" {
			parts = append(parts, inputText(msg.Text))
		}
		for _, p := range msg.Parts {
			if isImage(p) {
				parts = append(parts, inputPart{Type: "input_image", ImageURL: imageAddress(p)})
			} else {
				parts = append(parts, inputText(modelhttp.PartText(p)))
			}
		}
		return []any{inputItem{Type: "message", Role: "user", Content: parts}}
	case session.RoleTool:
		item := inputItem{Type: "function_call_output", CallID: modelhttp.CallID(msg.CallID), Output: msg.Text}
		parts := []inputPart{inputText(msg.Text)}
		for _, p := range msg.Parts {
			if isImage(p) {
				parts = append(parts, inputPart{Type: "input_image", ImageURL: imageAddress(p)})
			}
		}
		if len(parts) > 1 {
			item.Output = parts
		}
		return []any{item}
	}
	return m.saidItems(msg, model)
}

// saidItems is a message of the assistant.
func (m *Model) saidItems(msg *session.Message, model string) []any {
	var out []any
	// Reasoning without the item it led to is refused, and so is that of another model.
	whole := !msg.Interrupted && (msg.Text != "" || len(msg.Calls) > 0) && !m.refuses(noEncrypted(model))
	for _, re := range msg.Reasoning {
		if whole && re.Provider == m.at.Name && re.Model == model {
			for _, item := range modelhttp.Items(re.Opaque) {
				out = append(out, item)
			}
		}
	}
	if msg.Text != "" {
		out = append(out, inputItem{Type: "message", Role: "assistant", Content: []inputPart{{Type: "output_text", Text: &msg.Text}}})
	}
	for _, c := range msg.Calls {
		arguments := string(c.Arguments)
		out = append(out, inputItem{Type: "function_call", CallID: modelhttp.CallID(c.ID), Name: modelhttp.CallName(c.Name), Arguments: &arguments})
	}
	return out
}
