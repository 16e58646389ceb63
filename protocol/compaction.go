package protocol

// Compaction is the record of context_compacted (docs/protocol/rind-v2.md section 7.8).
type Compaction struct {
	ID                      string            `json:"id"`
	CreatedAt               string            `json:"created_at"`
	Strategy                string            `json:"strategy" enum:"llm_inline,deterministic_fallback"`
	Reason                  string            `json:"reason" enum:"manual,auto,context_length_error"`
	Phase                   string            `json:"phase"` // standalone_turn, mid_turn
	PolicyVersion           string            `json:"policy_version"`
	Source                  CompactionSource  `json:"source"`
	ContinuationUserMessage CompactionMessage `json:"continuation_user_message"`
	HandoffMessage          CompactionMessage `json:"handoff_message"`
	Usage                   *Stats            `json:"usage,omitempty"`
	FallbackError           string            `json:"fallback_error,omitempty"`
}

// CompactionSource is what a compaction stands for: messages by their index in message mode.
type CompactionSource struct {
	MessageStartIndex        int      `json:"message_start_index"`
	MessageEndIndexExclusive int      `json:"message_end_index_exclusive"`
	ToolCallIDs              []string `json:"tool_call_ids"`
	HistoryDigest            string   `json:"history_digest"` // SHA-256, hex, of the messages as message mode shows them
}

// CompactionMessage is a message a compaction leaves in the model's view.
type CompactionMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Words of a Compaction.
const (
	CompactByModel  = "llm_inline"
	CompactWithout  = "deterministic_fallback"
	CompactManual   = "manual"
	CompactAuto     = "auto"
	CompactTooLong  = "context_length_error"
	CompactAlone    = "standalone_turn"
	CompactMidTurn  = "mid_turn"
	CompactPolicy   = "compact_boundary_v3"
	SamplingCompact = "compact"
)
