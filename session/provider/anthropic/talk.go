package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

type message struct {
	Role    string `json:"role"`
	Content []any  `json:"content"` // *block, or thinking as it was given: json.RawMessage

	thinks bool // it begins with thinking, or holds some
}

// block is a piece of a message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Source    *source         `json:"source,omitempty"`      // image
	ID        string          `json:"id,omitempty"`          // tool_use
	Name      string          `json:"name,omitempty"`        // tool_use
	Input     json.RawMessage `json:"input,omitempty"`       // tool_use
	ToolUseID string          `json:"tool_use_id,omitempty"` // tool_result
	Content   any             `json:"content,omitempty"`     // tool_result: text, or []*block
	IsError   bool            `json:"is_error,omitempty"`    // tool_result
	Mark      *cacheMark      `json:"cache_control,omitempty"`
}

type source struct {
	Type  string `json:"type"` // base64, url
	Media string `json:"media_type,omitempty"`
	Data  string `json:"data,omitempty"`
	URL   string `json:"url,omitempty"`
}

// goOn stands where the API wants the user to speak and nobody did: before an assistant that begins, and behind one where session.EndWithUser
// saw a message and the API takes none, as it was blank.
const goOn = "Go on."

// talk splits messages into the system's text, as far as it stands before everything else, and turns of the user and the assistant. A
// system message further on stays where it is, in the user's turn: moved to the front it would change all that is cached behind it.
func (m *Model) talk(r *session.ModelRequest, gives bool) (system []*block, out []*message) {
	turn := func(role string, content ...any) *message {
		if n := len(out); n == 0 || out[n-1].Role != role {
			out = append(out, &message{Role: role})
		}
		last := out[len(out)-1]
		last.Content = append(last.Content, content...)
		return last
	}
	for i := range r.Messages {
		msg := &r.Messages[i]
		switch {
		case msg.Role == session.RoleSystem && len(out) == 0:
			system = append(system, textBlocks(msg.Text)...)
		case msg.Role == session.RoleAssistant:
			said, thinks := m.said(msg, r.Model, gives)
			if len(said) == 0 {
				continue // nothing but blanks
			}
			if len(out) == 0 {
				turn("user", text(goOn))
			}
			turn("assistant", said...).thinks = thinks
		case msg.Role == session.RoleTool:
			turn("user", result(msg))
		default:
			if content := heard(msg); len(content) > 0 {
				turn("user", content...)
			}
		}
	}
	if n := len(out); n == 0 || out[n-1].Role == "assistant" {
		turn("user", text(goOn))
	}
	return system, out
}

func text(s string) *block { return &block{Type: "text", Text: s} }

// textBlocks is text as a block, or none: the API takes no blank ones.
func textBlocks(s string) []*block {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return []*block{text(s)}
}

// heard is a message of the user.
func heard(msg *session.Message) []any {
	var out []any
	for _, b := range textBlocks(msg.Text) {
		out = append(out, b)
	}
	for _, p := range msg.Parts {
		if b := image(p); b != nil {
			out = append(out, b)
		} else {
			out = append(out, text(modelhttp.PartText(p)))
		}
	}
	return out
}

// result is what a tool answered. An error has to say something.
func result(msg *session.Message) *block {
	b := &block{Type: "tool_result", ToolUseID: modelhttp.CallID(msg.CallID), IsError: msg.Failed}
	var parts []*block
	for _, p := range msg.Parts {
		if img := image(p); img != nil {
			parts = append(parts, img)
		}
	}
	said := textBlocks(msg.Text)
	switch {
	case len(parts) > 0:
		b.Content = append(said, parts...)
	case len(said) > 0:
		b.Content = msg.Text
	case msg.Failed:
		b.Content = "The tool failed and said nothing."
	}
	return b
}

// said is a message of the assistant, and whether thinking is in it. Thinking goes back with calls only: elsewhere the API has no use for it.
func (m *Model) said(msg *session.Message, model string, gives bool) (out []any, thinks bool) {
	said, calls := 0, 0
	upTo := func(bytes, n int) {
		bytes, n = min(max(bytes, said), len(msg.Text)), min(max(n, calls), len(msg.Calls))
		for _, b := range textBlocks(msg.Text[said:bytes]) {
			out = append(out, b)
		}
		for _, c := range msg.Calls[calls:n] {
			out = append(out, &block{Type: "tool_use", ID: modelhttp.CallID(c.ID), Name: modelhttp.CallName(c.Name), Input: c.Arguments})
		}
		said, calls = bytes, n
	}
	if gives && !msg.Interrupted && len(msg.Calls) > 0 {
		for _, p := range m.given(msg, model) {
			upTo(p.Text, p.Calls)
			out, thinks = append(out, p.Block), true
		}
	}
	upTo(len(msg.Text), len(msg.Calls))
	return out, thinks
}

// beginsWithThinking tells whether the step the user's last words led to begins with thinking, or has not begun.
func beginsWithThinking(msgs []*message) bool {
	begun := len(msgs)
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Role == "assistant" {
			begun = i
		} else if b, ok := msgs[i].Content[0].(*block); !ok || b.Type != "tool_result" {
			break
		}
	}
	if begun == len(msgs) {
		return true
	}
	_, thinking := msgs[begun].Content[0].(json.RawMessage)
	return thinking
}

// pictures are the types of images the API reads.
var pictures = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// image is a part as a picture, nil for anything else.
func image(p protocol.Part) *block {
	switch {
	case len(p.Data) > 0 && slices.Contains(pictures, p.MIME):
		return &block{Type: "image", Source: &source{Type: "base64", Media: p.MIME, Data: base64.StdEncoding.EncodeToString(p.Data)}}
	case len(p.Data) == 0 && p.Kind == "image" && strings.HasPrefix(p.URI, "https://"):
		return &block{Type: "image", Source: &source{Type: "url", URL: p.URI}}
	}
	return nil
}
