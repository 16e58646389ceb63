package protocol

import (
	"encoding/json"
	"slices"
)

// Bodies of what the model says.

// AssistantDelta is a piece of the answer's text.
type AssistantDelta struct {
	Text string         `json:"text"`
	More AssistantPiece `json:"-"`
}

// AssistantPiece says where a piece of text belongs.
type AssistantPiece struct {
	MessageID string `json:"m,omitempty"`
	Offset    int    `json:"o,omitempty"` // characters of the message before this piece
	Separator bool   `json:"s,omitempty"` // the portable protocol is told "\n\n" first, as an event of its own
}

func (b *AssistantDelta) appendFast(dst []byte) []byte {
	return AppendString(append(dst, `,"text":`...), b.Text)
}

func (m *AssistantPiece) appendFast(dst []byte) []byte {
	if m.MessageID != "" {
		dst = AppendString(append(dst, `,"m":`...), m.MessageID)
	}
	if m.Offset != 0 {
		dst = appendInt(append(dst, `,"o":`...), m.Offset)
	}
	if m.Separator {
		dst = append(dst, `,"s":true`...)
	}
	return dst
}

// ReasoningDelta is a piece of the model's visible reasoning.
type ReasoningDelta struct {
	Text string         `json:"text"`
	More AssistantPiece `json:"-"`
}

func (b *ReasoningDelta) appendFast(dst []byte) []byte {
	return AppendString(append(dst, `,"text":`...), b.Text)
}

// ReasoningCompleted is the reasoning of one step in full. Hidden reasoning has no event: only More.
type ReasoningCompleted struct {
	Content      string `json:"content"`
	ContentChars int    `json:"content_chars"`
	More         struct {
		MessageID string          `json:"m,omitempty"`
		Hidden    bool            `json:"hidden,omitempty"`
		Text      string          `json:"text,omitempty"`   // of hidden reasoning
		Opaque    json.RawMessage `json:"opaque,omitempty"` // signatures, encrypted content: the provider's own JSON
		Provider  string          `json:"provider,omitempty"`
		Model     string          `json:"model,omitempty"`
	} `json:"-"`
}

// TurnStepRetry says that the text of the current step is to be discarded.
type TurnStepRetry struct {
	Attempt int    `json:"attempt"`
	Reason  string `json:"reason"`
	More    struct {
		MessageID   string `json:"m,omitempty"`            // the message it abandons
		DiscardFrom int64  `json:"discard_from,omitempty"` // first portable number of the dropped text
		DelayMS     int64  `json:"delay_ms,omitempty"`
		Message     string `json:"message,omitempty"`
	} `json:"-"`
}

// Stats counts one sampling (docs/protocol/rind-v2.md section 5, token_stats_updated).
type Stats struct {
	SamplingKind          string  `json:"sampling_kind"` // assistant, compact
	InputTokens           int     `json:"input_tokens"`  // cached ones included
	CachedInputTokens     int     `json:"cached_input_tokens"`
	CacheHitRate          float64 `json:"cache_hit_rate"` // fraction
	OutputTokens          int     `json:"output_tokens"`
	ReasoningOutputTokens int     `json:"reasoning_output_tokens"`
	TotalTokens           int     `json:"total_tokens"`
	ContextWindowTokens   int     `json:"context_window_tokens"`
	ContextUsagePercent   float64 `json:"context_usage_percent"` // fraction
	Anchor                string  `json:"anchor"`                // "provider", or "estimate" where the provider told none
}

// TokenStatsUpdated tells what a sampling used.
type TokenStatsUpdated struct {
	Stats Stats `json:"stats"`
	More  struct {
		Model    string   `json:"model,omitempty"`
		Provider string   `json:"provider,omitempty"`
		Cost     *float64 `json:"cost,omitempty"`     // US dollars, where a price is known
		Estimate int      `json:"estimate,omitempty"` // tokens of the request as we counted them
		Level    bool     `json:"level,omitempty"`    // a hosted agent says how full its context is: nothing is counted as used
	} `json:"-"`
}

// AssistantMessageCompleted is one message of the assistant in full.
type AssistantMessageCompleted struct {
	Content      string `json:"content"`
	ContentChars int    `json:"content_chars"`
	MessageID    string `json:"message_id"`
	Interrupted  bool   `json:"interrupted,omitempty"`
	More         struct {
		Parallel bool `json:"parallel,omitempty"` // of mock, script, fixture: no portable event
	} `json:"-"`
}

func (b *AssistantMessageCompleted) appendFast(dst []byte) []byte {
	dst = slices.Grow(dst, len(b.Content)+len(b.Content)/16+128)
	dst = AppendString(append(dst, `,"content":`...), b.Content)
	dst = appendInt(append(dst, `,"content_chars":`...), b.ContentChars)
	dst = AppendString(append(dst, `,"message_id":`...), b.MessageID)
	if b.Interrupted {
		dst = append(dst, `,"interrupted":true`...)
	}
	return dst
}
