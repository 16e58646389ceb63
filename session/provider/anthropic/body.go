package anthropic

import (
	"encoding/json"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

type request struct {
	Model        string        `json:"model"`
	MaxTokens    int           `json:"max_tokens"`
	Stream       bool          `json:"stream"`
	Thinking     *thinking     `json:"thinking,omitempty"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
	Tools        []*toolSpec   `json:"tools,omitempty"`
	System       []*block      `json:"system,omitempty"`
	Messages     []*message    `json:"messages"`

	gives bool // it holds thinking of before
}

type toolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Mark        *cacheMark      `json:"cache_control,omitempty"`
}

// request builds the body. What it says of the past depends on the past alone, so that the provider finds in its cache what it was told
// before.
func (m *Model) request(r *session.ModelRequest) (*request, error) {
	p, err := m.plan(r)
	if err != nil {
		return nil, err
	}
	body := &request{Model: r.Model, MaxTokens: p.max, Stream: true, Thinking: p.thinking, OutputConfig: p.output}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, &toolSpec{Name: t.Name, Description: t.Description, Schema: modelhttp.Schema(t)})
	}
	body.System, body.Messages = m.talk(r, p.gives)
	if p.thinking != nil && p.thinking.Type == thinksOn && !beginsWithThinking(body.Messages) {
		// With a budget the step whose calls are being answered has to begin with its thinking. Where that is another model's, or there was
		// none yet, this request goes without.
		body.Thinking = nil
	}
	for _, msg := range body.Messages {
		body.gives = body.gives || msg.thinks
	}
	if !m.refuses(marks()) {
		body.mark()
	}
	return body, nil
}

// cacheMark asks the provider to remember the request up to here.
type cacheMark struct {
	Type string `json:"type"`
}

// mark sets the marks: behind the tools, behind the system's text, and behind the last two messages of the user, so that the next
// request finds what this one stored, and this one what the last did. Four are allowed.
func (b *request) mark() {
	here := &cacheMark{Type: "ephemeral"}
	if n := len(b.Tools); n > 0 {
		b.Tools[n-1].Mark = here
	}
	if n := len(b.System); n > 0 {
		b.System[n-1].Mark = here
	}
	users := 0
	for i := len(b.Messages) - 1; i >= 0 && users < 2; i-- {
		if b.Messages[i].Role != "user" {
			continue
		}
		users++
		if last, ok := b.Messages[i].Content[len(b.Messages[i].Content)-1].(*block); ok {
			last.Mark = here
		}
	}
}
