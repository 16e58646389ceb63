package openai

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

type chatRequest struct {
	Model         string         `json:"model"`
	Messages      []chatMessage  `json:"messages"`
	Tools         []chatTool     `json:"tools,omitempty"`
	Stream        bool           `json:"stream"`
	StreamOptions map[string]any `json:"stream_options,omitempty"`
	Effort        string         `json:"reasoning_effort,omitempty"`
	MaxTokens     int            `json:"max_tokens,omitempty"`
	MaxCompletion int            `json:"max_completion_tokens,omitempty"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
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
	Content    any        `json:"content"` // text, or []contentPart, or nil beside calls
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type contentPart struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

// Fields of a chat request some endpoints refuse.
func noUsage() refusal {
	return refusal{field: "stream_options", words: []string{"stream_options", "include_usage"}}
}

func newMax(model string) refusal {
	return refusal{field: "max_tokens", model: model, words: []string{"max_completion_tokens"}}
}

// chatBody builds the request.
func (m *Model) chatBody(r session.ModelRequest) chatRequest {
	body := chatRequest{Model: r.Model, Stream: true, Effort: r.Effort, Messages: chatMessages(r.Messages)}
	if !m.refuses(noUsage()) {
		body.StreamOptions = map[string]any{"include_usage": true}
	}
	if m.refuses(newMax(r.Model)) {
		body.MaxCompletion = r.MaxOutput
	} else {
		body.MaxTokens = r.MaxOutput
	}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, chatTool{Type: "function", Function: chatFunction{Name: t.Name, Description: t.Description, Parameters: modelhttp.Schema(t)}})
	}
	return body
}

func chatMessages(msgs []session.Message) []chatMessage {
	out := make([]chatMessage, 0, len(msgs))
	var images []contentPart // of tool results: they may hold text only, so pictures follow as a user message behind the last of them
	flush := func() {
		if len(images) > 0 {
			out = append(out, chatMessage{Role: "user", Content: images})
			images = nil
		}
	}
	for i := range msgs {
		m := &msgs[i]
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
				cc.Function.Name, cc.Function.Arguments = modelhttp.CallName(call.Name), string(call.Arguments)
				c.ToolCalls = append(c.ToolCalls, cc)
			}
			out = append(out, c)
		case session.RoleTool:
			out = append(out, chatMessage{Role: "tool", Content: m.Text, ToolCallID: m.CallID})
			for _, p := range m.Parts {
				if isImage(p) {
					images = append(images, contentPart{Type: "text", Text: "Image of the result of " + m.ToolName + " (" + m.CallID + "):"}, imagePart(p))
				}
			}
		}
	}
	flush()
	return out
}

func isImage(p protocol.Part) bool {
	return strings.HasPrefix(p.MIME, "image/") && (len(p.Data) > 0 || p.Kind == "image" && strings.HasPrefix(p.URI, "https://"))
}

func imagePart(p protocol.Part) contentPart {
	return contentPart{Type: "image_url", ImageURL: &imageURL{URL: imageAddress(p)}}
}

// imageAddress is the data of an image as a URL, or where it is to be had.
func imageAddress(p protocol.Part) string {
	if len(p.Data) == 0 {
		return p.URI
	}
	return "data:" + p.MIME + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
}

// userContent is plain text where that is all there is: small servers know no parts.
func userContent(m *session.Message) any {
	if len(m.Parts) == 0 {
		return m.Text
	}
	var parts []contentPart
	if m.Text != "" {
		parts = append(parts, contentPart{Type: "text", Text: m.Text})
	}
	for _, p := range m.Parts {
		if isImage(p) {
			parts = append(parts, imagePart(p))
		} else {
			parts = append(parts, contentPart{Type: "text", Text: modelhttp.PartText(p)})
		}
	}
	return parts
}
