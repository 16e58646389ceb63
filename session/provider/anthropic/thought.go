package anthropic

import (
	"encoding/json"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

// Thinking goes back as it came, to the letter and in its place: the API checks both. A block that stood first in its message is kept as
// the API wrote it; one that stood behind text or calls is kept with its place, which the message itself does not remember.

// place is where a block stood in its message.
type place struct {
	Text  int `json:"text,omitempty"`  // bytes of text before it
	Calls int `json:"calls,omitempty"` // calls before it
}

type placed struct {
	place
	Block json.RawMessage `json:"block"`
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// keep writes a block of thinking for the next request; nil for one the API would not take back.
func (o *openBlock) keep() json.RawMessage {
	block := o.whole
	if o.kind == "thinking" {
		if o.signature.Len() == 0 {
			return nil // nobody vouches for it
		}
		block = written(thinkingBlock{Type: o.kind, Thinking: o.raw.String(), Signature: o.signature.String()})
	}
	if block == nil || o.place == (place{}) {
		return block
	}
	return written(placed{place: o.place, Block: block})
}

func written(v any) json.RawMessage {
	j, err := modelhttp.Marshal(v)
	if err != nil {
		return nil // text and checked JSON only: there is no such value
	}
	return j
}

// given returns the blocks of a message that may go back to this provider and model, in their order.
func (m *Model) given(msg *session.Message, model string) []placed {
	var out []placed
	for _, re := range msg.Reasoning {
		if re.Provider == m.at.Name && re.Model == model {
			out = append(out, placedBlocks(re.Opaque)...)
		}
	}
	return out
}

// placedBlocks takes one block or a list of them, as the log keeps them together.
func placedBlocks(opaque json.RawMessage) []placed {
	var out []placed
	for _, it := range modelhttp.Items(opaque) {
		var p struct {
			placed
			Type string `json:"type"`
		}
		if json.Unmarshal(it, &p) != nil {
			continue
		}
		if p.Type != "" {
			p.placed = placed{Block: it}
		}
		if len(p.Block) > 0 && p.Block[0] == '{' {
			out = append(out, p.placed)
		}
	}
	return out
}
