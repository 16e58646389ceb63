package portable

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// States of an execution.
const (
	Queued           = "queued"
	Starting         = "starting"
	Running          = "running"
	AwaitingApproval = "awaiting_approval"
	AwaitingInput    = "awaiting_input"
	Cancelling       = "cancelling"
	Succeeded        = "succeeded"
	Failed           = "failed"
	Cancelled        = "cancelled"
)

// FormatTime writes a time as this protocol does: UTC, exactly three fraction digits.
func FormatTime(t time.Time) string { return string(appendTime(nil, t)) }

// appendTime is FormatTime for the many: it asks no layout what comes next.
func appendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.Truncate(time.Millisecond).AppendFormat(dst, "2006-01-02T15:04:05.000Z")
	}
	hour, minute, second := t.Clock()
	ms := t.Nanosecond() / 1e6
	text := [...]byte{
		byte('0' + year/1000), byte('0' + year/100%10), byte('0' + year/10%10), byte('0' + year%10), '-', byte('0' + month/10), byte('0' + month%10), '-',
		byte('0' + day/10), byte('0' + day%10), 'T', byte('0' + hour/10), byte('0' + hour%10), ':', byte('0' + minute/10), byte('0' + minute%10), ':',
		byte('0' + second/10), byte('0' + second%10), '.', byte('0' + ms/100), byte('0' + ms/10%10), byte('0' + ms%10), 'Z',
	}
	return append(dst, text[:]...)
}

// Conversation is a session, as clients see it.
type Conversation struct {
	ID        string          `json:"id"`
	CreatedAt string          `json:"createdAt"`
	Metadata  json.RawMessage `json:"metadata"`
}

// NewConversation shows a session. Metadata nil is {}.
func NewConversation(id string, created time.Time, metadata json.RawMessage) Conversation {
	if len(metadata) == 0 || string(metadata) == "null" { // as versions up to 0.1 stored none
		metadata = json.RawMessage("{}")
	}
	return Conversation{ID: id, CreatedAt: FormatTime(created), Metadata: metadata}
}

// Failure is the error of a failed execution and the data of run.failed.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Execution is a turn, as clients see it.
type Execution struct {
	ID              string          `json:"id"`
	ConversationID  string          `json:"conversationId"`
	ProviderID      string          `json:"providerId"`
	State           string          `json:"state"`
	Input           string          `json:"input"`
	Capabilities    []string        `json:"requiredCapabilities"`
	EffectiveConfig json.RawMessage `json:"effectiveConfig"`
	CreatedAt       string          `json:"createdAt"`
	UpdatedAt       string          `json:"updatedAt"`
	StartedAt       string          `json:"startedAt,omitempty"`
	EndedAt         string          `json:"endedAt,omitempty"`
	FinalOutput     *string         `json:"finalOutput,omitempty"`
	Error           *Failure        `json:"error,omitempty"`
}

// Event is one event of an execution. Data is an object.
type Event struct {
	ID          string          `json:"id"`
	ExecutionID string          `json:"executionId"`
	Sequence    int64           `json:"sequence"`
	Type        string          `json:"type"`
	Time        string          `json:"time"`
	Data        json.RawMessage `json:"data"`
}

// Terminal reports whether events of a type are the last of their execution.
func Terminal(kind string) bool {
	return kind == "run.completed" || kind == "run.failed" || kind == "run.cancelled"
}

// EventList is a page of events.
type EventList struct {
	Events     []Event `json:"events"`
	NextCursor int64   `json:"nextCursor"`
}

// Action is an approval or a question that waits for an answer.
type Action struct {
	ID          string          `json:"id"`
	ExecutionID string          `json:"executionId"`
	Kind        string          `json:"kind"` // approval, input
	Title       string          `json:"title"`
	Description string          `json:"description,omitempty"`
	Payload     json.RawMessage `json:"payload"`
	CreatedAt   string          `json:"createdAt"`
}

// Artifact describes something an execution made.
type Artifact struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	MediaType   string          `json:"mediaType"`
	URI         string          `json:"uri,omitempty"`
	Metadata    json.RawMessage `json:"metadata"`
	ExecutionID string          `json:"executionId"`
	CreatedAt   string          `json:"createdAt"`
}

// Levels of a capability.
const (
	Native   = "native"
	Emulated = "emulated"
	Degraded = "degraded"
	Absent   = "unsupported"
)

// Manifest describes a provider.
type Manifest struct {
	ID              string            `json:"id"`
	Name            string            `json:"name"`
	Version         string            `json:"version"`
	ProtocolVersion string            `json:"protocolVersion"`
	Topologies      []string          `json:"topologies"`
	Capabilities    map[string]string `json:"capabilities"`
	Metadata        map[string]any    `json:"metadata,omitempty"`
}

// Description describes the runtime.
type Description struct {
	Name            string     `json:"name"`
	Version         string     `json:"version"`
	ProtocolVersion string     `json:"protocolVersion"`
	Providers       []Manifest `json:"providers"`
}

// NewManifest fills in what all manifests share. lane is "parallel" or "serial".
func NewManifest(id, name, version, topology, lane string, capabilities map[string]string) Manifest {
	return Manifest{
		ID: id, Name: name, Version: version, ProtocolVersion: Version, Topologies: []string{topology}, Capabilities: capabilities,
		Metadata: map[string]any{"rind": map[string]any{"lane": lane}},
	}
}

// Missing lists the required capabilities the provider does not offer, sorted: those that are no key of its map, by exact case, and those
// it says are unsupported.
func (m *Manifest) Missing(required []string) []string {
	var out []string
	for _, name := range required {
		if level, ok := m.Capabilities[name]; !ok || level == Absent {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Preflight refuses what the provider cannot do; nil when it can all of it.
func (m *Manifest) Preflight(required []string) *Error {
	missing := m.Missing(required)
	if len(missing) == 0 {
		return nil
	}
	return &Error{
		Code: Unsupported, Message: "Provider " + protocol.Prefix(m.ID, 200) + " does not support required capabilities",
		Details: map[string]any{"providerId": m.ID, "capabilities": missing},
	}
}

// TurnID returns the turn of an execution id; false when it is none of ours.
func TurnID(execution string) (protocol.TurnID, bool) {
	return hexID[protocol.TurnID](execution, ExecutionPrefix)
}

// ActionID returns our id of an action; false when it is none of ours.
func ActionID(action string) (string, bool) { return hexID[string](action, ActionPrefix) }

func hexID[T ~string](id, prefix string) (T, bool) {
	if len(id) != len(prefix)+32 || id[:len(prefix)] != prefix {
		return "", false
	}
	for _, c := range id[len(prefix):] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", false
		}
	}
	return T(id[len(prefix):]), true
}
