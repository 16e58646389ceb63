package acp

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
)

// Bounds of what is written in one line (docs/protocol/acp.md section 3).
const (
	maxPiece    = 600 << 10 // bytes of text in one chunk: escaped, it stays below the smallest reader's line
	maxImage    = 3 << 20   // of base64
	maxRaw      = 256 << 10 // of rawInput
	maxToolText = 32 << 10  // kept of each end of a tool's text
	maxProgress = 8 << 10
	maxName     = 8 << 10  // of what names something: an address, a step of a plan, a command
	maxChanges  = maxPiece // of the texts of all changes that one call shows
)

// Kinds of session/update.
const (
	UserChunk        = "user_message_chunk"
	AgentChunk       = "agent_message_chunk"
	ThoughtChunk     = "agent_thought_chunk"
	ToolCall         = "tool_call"
	ToolCallUpdate   = "tool_call_update"
	PlanUpdate       = "plan"
	CommandsUpdate   = "available_commands_update"
	ModeUpdate       = "current_mode_update"
	OptionsUpdate    = "config_option_update"
	InfoUpdate       = "session_info_update"
	UsageUpdate      = "usage_update"
	NoticeUpdate     = "notice"
	CompactionUpdate = "compaction_update"
	CompactionChunk  = "compaction_summary_chunk"
)

// Statuses of a tool call.
const (
	StatusPending    = "pending"
	StatusInProgress = "in_progress"
	StatusCompleted  = "completed"
	StatusFailed     = "failed"
)

// Chunk is a piece of a message.
type Chunk struct {
	Kind      string
	MessageID string // "" for none
	Text      string
}

type chunkUpdate struct {
	Update    string  `json:"sessionUpdate"`
	MessageID string  `json:"messageId,omitempty"`
	Content   Content `json:"content"`
}

// Call is tool_call and tool_call_update; Title and Kind are always there in the first.
type Call struct {
	Update string `json:"sessionUpdate"`
	CallUpdate
}

// CallUpdate is what is told of a tool call; absent members stay as they are.
type CallUpdate struct {
	ID        string          `json:"toolCallId"`
	Title     string          `json:"title,omitempty"`
	Name      string          `json:"name,omitempty"`
	Kind      string          `json:"kind,omitempty"`
	Status    string          `json:"status,omitempty"`
	Content   []CallContent   `json:"content,omitempty"`
	Locations []Location      `json:"locations,omitempty"`
	RawInput  json.RawMessage `json:"rawInput,omitempty"`
	RawOutput json.RawMessage `json:"rawOutput,omitempty"`
}

// Location is a place in a file; Line counts from 1, 0 for none.
type Location struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

// CallContent is what a tool call shows: content, or a diff.
type CallContent struct {
	Content  *Content
	Diff     *Diff
	Terminal string // id of a terminal of the client
}

// Diff is a change of one file. Path is absolute; Old is nil for a file that is new.
type Diff struct {
	Path string  `json:"path"`
	Old  *string `json:"oldText"`
	New  string  `json:"newText"`
}

// MarshalJSON writes the variant that is there.
func (c CallContent) MarshalJSON() ([]byte, error) {
	if c.Terminal != "" {
		return protocol.Marshal(struct {
			Type string `json:"type"`
			ID   string `json:"terminalId"`
		}{"terminal", c.Terminal})
	}
	if c.Diff != nil {
		return protocol.Marshal(struct {
			Type string `json:"type"`
			*Diff
		}{"diff", c.Diff})
	}
	return protocol.Marshal(struct {
		Type    string   `json:"type"`
		Content *Content `json:"content"`
	}{"content", c.Content})
}

// size is about how long it is written, before escaping.
func (c *CallContent) size() int {
	n := 64
	if c.Content != nil && c.Content.Text != nil {
		n += len(*c.Content.Text)
	}
	if c.Diff != nil {
		n += len(c.Diff.Path) + len(c.Diff.New)
		if c.Diff.Old != nil {
			n += len(*c.Diff.Old)
		}
	}
	return n
}

// same reports whether two are the same text.
func (c *CallContent) same(as CallContent) bool {
	return c.Content != nil && as.Content != nil && c.Content.Text != nil && as.Content.Text != nil && *c.Content.Text == *as.Content.Text
}

func textCall(s string) []CallContent {
	c := TextContent(middle(s))
	return []CallContent{{Content: &c}}
}

// middle cuts the middle out of a long text.
func middle(s string) string {
	if len(s) <= 2*maxToolText {
		return s
	}
	return cut(s, maxToolText) + "\n[…]\n" + tail(s, maxToolText)
}

// tail is the longest end of s of at most n bytes that begins with a whole character.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}

// cut is the longest beginning of s of at most n bytes that splits no character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Encode is the update of a chunk.
func (c *Chunk) Encode() json.RawMessage {
	return protocol.MustMarshal(chunkUpdate{c.Kind, c.MessageID, TextContent(c.Text)})
}

// PlanEntry is one step of a plan.
type PlanEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// Command is one slash command, without the slash.
type Command struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Input       *InputHint `json:"input,omitempty"`
}

// InputHint says what a command takes.
type InputHint struct {
	Hint string `json:"hint"`
}

// Commands is the update that lists what can be called.
func Commands(list []Command) json.RawMessage {
	return protocol.MustMarshal(struct {
		Update string    `json:"sessionUpdate"`
		List   []Command `json:"availableCommands"`
	}{CommandsUpdate, list})
}

// OptionsChanged is the update that lists the settings of a session.
func OptionsChanged(list []Option) json.RawMessage {
	return protocol.MustMarshal(struct {
		Update string   `json:"sessionUpdate"`
		List   []Option `json:"configOptions"`
	}{OptionsUpdate, list})
}

// ModeChanged is the update that names the mode.
func ModeChanged(mode string) json.RawMessage {
	return protocol.MustMarshal(struct {
		Update string `json:"sessionUpdate"`
		Mode   string `json:"currentModeId"`
	}{ModeUpdate, mode})
}

// Notice is a line that is shown beside the conversation.
func Notice(severity, title string) json.RawMessage {
	return protocol.MustMarshal(struct {
		Update   string `json:"sessionUpdate"`
		Severity string `json:"severity"`
		Title    string `json:"title"`
	}{NoticeUpdate, severity, title})
}

// Titled is the update that names the session.
func Titled(title string) json.RawMessage {
	return protocol.MustMarshal(struct {
		Update string `json:"sessionUpdate"`
		Title  string `json:"title"`
	}{InfoUpdate, title})
}
