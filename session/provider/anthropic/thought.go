package anthropic

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/rind-dev/rind/session"
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
	j, err := marshal(v)
	if err != nil {
		return nil // text and checked JSON only: there is no such value
	}
	return bytes.TrimSpace(j)
}

// given returns the blocks of a message that may go back to this provider and model, in their order.
func (m *Model) given(msg *session.Message, model string) []placed {
	var out []placed
	for _, re := range msg.Reasoning {
		if re.Provider == m.cfg.Name && re.Model == model {
			out = append(out, placedBlocks(re.Opaque)...)
		}
	}
	return out
}

// placedBlocks takes one block or a list of them, as the log keeps them together.
func placedBlocks(opaque json.RawMessage) []placed {
	var items []json.RawMessage
	if trimmed := bytes.TrimSpace(opaque); len(trimmed) > 0 && trimmed[0] == '{' {
		items = []json.RawMessage{trimmed}
	} else if json.Unmarshal(opaque, &items) != nil {
		return nil
	}
	out := make([]placed, 0, len(items))
	for _, it := range items {
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

// wellFormed makes JSON from outside fit for strict readers: valid UTF-8, no half of a surrogate pair. What is so already stays to the byte.
func wellFormed(j json.RawMessage) json.RawMessage {
	if utf8.Valid(j) && !bytes.Contains(j, []byte(`\ud`)) && !bytes.Contains(j, []byte(`\uD`)) {
		return bytes.Clone(j)
	}
	dec := json.NewDecoder(bytes.NewReader(j))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	return written(v)
}
