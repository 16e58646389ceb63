package session

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Role says who speaks in a Message.
type Role string

// The roles of a model's context.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message of a model's context. It is always valid: every call of an assistant message has exactly one
// RoleTool message behind it before the next other message, arguments are objects, text is UTF-8.
type Message struct {
	ID          string
	Role        Role
	Text        string
	Parts       []protocol.Part // user: images and resources; tool: attachments
	Reasoning   []Reasoning     // assistant
	Calls       []Call          // assistant
	CallID      string          // tool
	ToolName    string          // tool
	Failed      bool            // tool: the result says ok:false
	Interrupted bool            // assistant: cut off
}

// EndWithUser gives messages whose last word is the assistant's a user message behind it: after a resumption or a compaction the assistant
// spoke last, which endpoints take for the beginning of its next message, or refuse. Behind an answer that was cut off it says again what was
// asked, where that is short: that is what a model answers. Every provider of a network calls it.
func EndWithUser(msgs []Message) []Message {
	n := len(msgs)
	if n == 0 || msgs[n-1].Role != RoleAssistant || len(msgs[n-1].Calls) > 0 {
		return msgs
	}
	text := "[Go on.]"
	if msgs[n-1].Interrupted {
		text = "[The answer above was cut off. Go on from there.]"
		for i := n - 2; i >= 0; i-- {
			if msgs[i].Role != RoleUser {
				continue
			}
			if asked := strings.TrimSpace(msgs[i].Text); asked != "" && len(asked) <= askedAgain {
				text = asked + "\n\n" + text
			}
			break
		}
	}
	return append(msgs[:n:n], Message{Role: RoleUser, Text: text})
}

// askedAgain bounds the request that is said again behind an answer that was cut off, in bytes.
const askedAgain = 2000

// Reasoning is what a provider wants back with the message it belongs to.
type Reasoning struct {
	Text     string
	Opaque   json.RawMessage // the provider's own JSON, never looked into
	Provider string          // opaque parts go back to the same provider and model only
	Model    string
}

// Call is a tool call of the model.
type Call struct {
	ID        string
	Name      string
	Arguments json.RawMessage // a JSON object
}

// ModelRequest is one completion to be made.
type ModelRequest struct {
	Model     string
	Effort    string // "" for the model's own default
	Messages  []Message
	Tools     []ToolSpec
	MaxOutput int // tokens; 0 for the provider's default
	Session   SessionID
}

// ChunkKind says what a Chunk holds.
type ChunkKind uint8

// Kinds of chunks. A good stream is any number of the others and then exactly one ChunkFinish, last.
const (
	ChunkText      ChunkKind = iota // Text: piece of the answer
	ChunkReasoning                  // Text: piece of visible reasoning
	ChunkOpaque                     // Opaque: reasoning to be given back, complete
	ChunkCallStart                  // Call.ID, Call.Name: the model begins to write a call
	ChunkCallDelta                  // Call.ID, Text: piece of its raw arguments
	ChunkCallEnd                    // Call.ID, Call.Name, Text: the raw arguments in full
	ChunkUsage                      // Usage, counted once per request
	ChunkAlive                      // a keep-alive: the connection lives
	ChunkFinish                     // Finish
)

// Finish says why a completion ended.
type Finish string

// Ends of a completion.
const (
	FinishStop   Finish = "stop"
	FinishCalls  Finish = "tool_calls"
	FinishLength Finish = "length"
	FinishFilter Finish = "content_filter"
)

// Usage counts the tokens of one completion. Input includes Cached.
type Usage struct{ Input, Cached, Output, Reasoning int }

// Chunk is one piece of a completion.
type Chunk struct {
	Kind   ChunkKind
	Text   string
	CallID string
	Name   string
	Opaque json.RawMessage
	Usage  Usage
	Finish Finish
}

// Model answers one completion. Generate makes one attempt: no retries, no waiting for Retry-After. The sequence yields chunks,
// or one *ModelError as its last element; it ends without either only when the consumer stops. Cancelling ctx closes the upstream
// connection at once and yields context.Cause(ctx). A stream that ends without its end mark is a FaultCut, never a finish.
// Safe for concurrent use.
type Model interface {
	Generate(ctx context.Context, r ModelRequest) iter.Seq2[Chunk, error]
}

// Fault says what kind of failure a provider had.
type Fault string

// Faults and what the loop does with them.
const (
	FaultConfig   Fault = "configuration" // no key, bad settings, a certificate that is not trusted: not retried
	FaultAuth     Fault = "auth"          // 401, 403: not retried
	FaultModel    Fault = "unknown_model" // 404: not retried
	FaultRejected Fault = "rejected"      // 400 and other refusals: not retried
	FaultContext  Fault = "context"       // context too long, 413: never retried as it is
	FaultQuota    Fault = "quota"         // 402, insufficient_quota: not retried
	FaultRate     Fault = "rate"          // 429: retried while connecting, RetryAfter honoured
	FaultServer   Fault = "server"        // 5xx, overloaded: retried while connecting
	FaultNetwork  Fault = "network"       // refused, DNS, reset before the first chunk: retried while connecting
	FaultTimeout  Fault = "timeout"       // idle watchdog, connect timeout: retried while connecting
	FaultCut      Fault = "cut"           // stream broke or ended without end mark after it began: an interruption
	FaultBadReply Fault = "bad_reply"     // 200 that is no stream: retried while connecting
)

// ModelError is a failed completion. Message is the provider's own, one line, cut, keys removed.
type ModelError struct {
	Fault      Fault
	Status     int           // HTTP status, 0 for none
	Message    string        // fit to be shown
	RetryAfter time.Duration // what the provider asked for; 0 for nothing usable
	Cause      error         // for the log file
}

func (e *ModelError) Error() string { return fmt.Sprintf("%s: %s", e.Fault, e.Message) }

// Unwrap returns the cause.
func (e *ModelError) Unwrap() error { return e.Cause }

// ModelInfo describes a model; zero values are unknown.
type ModelInfo struct {
	Provider string
	ID       string
	Name     string
	API      string
	Efforts  []string
	Window   int // context window in tokens; 0 unknown
	Images   *bool
	Price    *Price // nil unknown
	Note     string // one line on how a figure came about, for a person; "" for none
}

// Price is what a model's tokens cost, in US dollars per million.
type Price struct{ Input, Output float64 }

// Selected is a model ready to answer a turn.
type Selected struct {
	Model    Model
	Info     ModelInfo
	BaseURL  string
	Scripted bool // of type script or demo: no network
}

// Models finds models by the user's settings, which it reads anew for every turn so that a key that was just added works.
type Models interface {
	// Default is the provider and model of a new session, and its effort and mode.
	Default() Selection
	// Select returns the model of a turn. A missing key is a *ModelError with FaultConfig that names the variable and `rind login`.
	Select(ctx context.Context, sel Selection) (Selected, error)
	// List returns the models that can be chosen, and a warning when a provider could not be asked.
	List(ctx context.Context, refresh bool) (models []ModelInfo, warning string, err error)
}

// WorkspaceModels is what a Models may offer beside: new sessions of a workspace (absolute, links resolved) begin with defaults of its own. A
// Models without it begins them all with Default.
type WorkspaceModels interface {
	DefaultIn(workspace string) Selection
}

// ProviderModels is what a Models may offer beside: what a session begins with that names a provider and no model. ok is false for a provider
// that is not known; the session then begins with the model of the default.
type ProviderModels interface {
	DefaultOf(provider string) (model, effort string, ok bool)
}

// Selection is what a session is set to.
type Selection struct {
	Provider string
	Model    string
	Effort   string
	Mode     string // ask, edit, read, full
}
