package portable

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// Context is what the events of an execution depend on beside its entries.
type Context struct {
	Execution string // id
	Provider  string // id
	Workspace string // absolute: the base of relative paths in uris
	// Output is the text of the whole turn, asked for when its end is told and the entry does not hold it. nil: "".
	Output func() (string, error)
}

// told is one event without its place.
type told struct {
	kind string
	data any
}

// teller makes the events of one kind of entry.
type teller func(c *Context, e *protocol.Entry, b protocol.Body) ([]told, error)

func one(kind string, data any) ([]told, error) { return []told{{kind, data}}, nil }

// pe is a provider.event of the runtime itself (docs/protocol/portable-2026-09-02.md section 12).
func pe(c *Context, method string, params any) told {
	return told{"provider.event", struct {
		Provider string `json:"provider"`
		Method   string `json:"method"`
		Params   any    `json:"params"`
	}{c.Provider, "rind." + method, params}}
}

func row[B protocol.Body](f func(c *Context, e *protocol.Entry, b B) ([]told, error)) teller {
	return func(c *Context, e *protocol.Entry, b protocol.Body) ([]told, error) { return f(c, e, b.(B)) }
}

// params of provider events are camelCase objects.
type params map[string]any

// table says what each kind of entry is told as. A kind without a row is not told, and its entries hold no event.
var table = map[protocol.Kind]teller{
	protocol.KindTurnAccepted: row(func(c *Context, _ *protocol.Entry, _ *protocol.TurnAccepted) ([]told, error) {
		return one("run.queued", params{"providerId": c.Provider})
	}),
	protocol.KindUserMessage: row(func(c *Context, _ *protocol.Entry, b *protocol.UserMessage) ([]told, error) {
		type part struct {
			Kind string `json:"kind"`
			Name string `json:"name,omitempty"`
		}
		parts := []part{}
		for _, p := range b.More.Parts {
			parts = append(parts, part{p.Kind, p.Name})
		}
		return []told{pe(c, "prompt_parts", params{"parts": parts})}, nil
	}),
	protocol.KindTurnStarted: row(func(c *Context, _ *protocol.Entry, b *protocol.TurnStarted) ([]told, error) {
		if b.Origin == protocol.OriginResume {
			return []told{pe(c, "turn_resumed", params{"attempt": b.More.Attempt})}, nil
		}
		return one("run.started", params{"providerId": c.Provider})
	}),
	protocol.KindAssistantDelta: row(func(_ *Context, _ *protocol.Entry, b *protocol.AssistantDelta) ([]told, error) {
		text := told{"output.text.delta", params{"text": b.Text}}
		if b.More.Separator {
			return []told{{"output.text.delta", params{"text": "\n\n"}}, text}, nil
		}
		return []told{text}, nil
	}),
	protocol.KindReasoningDelta: row(func(c *Context, _ *protocol.Entry, b *protocol.ReasoningDelta) ([]told, error) {
		return []told{pe(c, "reasoning", params{"text": b.Text})}, nil
	}),
	protocol.KindTurnStepRetry: row(func(c *Context, _ *protocol.Entry, b *protocol.TurnStepRetry) ([]told, error) {
		return []told{pe(c, "turn_step_retry", params{"attempt": b.Attempt, "reason": b.Reason, "discardFrom": b.More.DiscardFrom})}, nil
	}),
	protocol.KindTokenStatsUpdated: row(func(c *Context, _ *protocol.Entry, b *protocol.TokenStatsUpdated) ([]told, error) {
		s := &b.Stats
		return []told{pe(c, "usage", params{
			"inputTokens": s.InputTokens, "outputTokens": s.OutputTokens, "cachedInputTokens": s.CachedInputTokens, "totalTokens": s.TotalTokens,
			"contextWindow": s.ContextWindowTokens,
		})}, nil
	}),
	protocol.KindAssistantMessageCompleted: row(func(c *Context, _ *protocol.Entry, b *protocol.AssistantMessageCompleted) ([]told, error) {
		return []told{pe(c, "message_completed", params{"chars": b.ContentChars})}, nil
	}),
	protocol.KindToolRequested: row(func(c *Context, _ *protocol.Entry, b *protocol.ToolRequested) ([]told, error) {
		return []told{pe(c, "tool_requested", params{"toolCallId": b.ToolCallID, "toolName": b.ToolName, "arguments": b.Arguments})}, nil
	}),
	protocol.KindPlanUpdated: row(func(c *Context, _ *protocol.Entry, b *protocol.PlanUpdated) ([]told, error) {
		plan := b.Plan
		if plan == nil {
			plan = []protocol.PlanStep{}
		}
		return []told{pe(c, "plan_updated", params{"plan": plan})}, nil
	}),
	protocol.KindApprovalRequested: row(func(c *Context, e *protocol.Entry, b *protocol.ApprovalRequested) ([]told, error) {
		return one("action.required", approval(c, e, b))
	}),
	protocol.KindApprovalResolved: row(func(_ *Context, _ *protocol.Entry, b *protocol.ApprovalResolved) ([]told, error) {
		return one("action.responded", params{"actionId": ActionPrefix + b.ActionID, "approved": b.Outcome == protocol.OutcomeAllowed})
	}),
	protocol.KindToolCallStarted: row(func(c *Context, _ *protocol.Entry, b *protocol.ToolCallStarted) ([]told, error) {
		return []told{pe(c, "tool_started", params{"toolCallId": b.ToolCallID, "toolName": b.ToolName})}, nil
	}),
	protocol.KindUserQuestionRequested: row(func(c *Context, e *protocol.Entry, b *protocol.UserQuestionRequested) ([]told, error) {
		return one("action.required", question(c, e, b))
	}),
	protocol.KindUserQuestionAnswered: row(func(_ *Context, _ *protocol.Entry, b *protocol.UserQuestionAnswered) ([]told, error) {
		return one("action.responded", params{"actionId": ActionPrefix + b.More.ActionID})
	}),
	protocol.KindToolProgress: row(func(c *Context, _ *protocol.Entry, b *protocol.ToolProgress) ([]told, error) {
		message := b.Payload.Message
		if message == "" {
			message = b.More.Content
		}
		return []told{pe(c, "tool_progress", params{"toolCallId": b.ToolCallID, "message": message})}, nil
	}),
	protocol.KindFileChange: row(func(c *Context, e *protocol.Entry, b *protocol.FileChange) ([]told, error) {
		added, removed := lineCounts(b)
		out := []told{pe(c, "file_changed", params{"toolCallId": b.ToolCallID, "path": b.FilePath, "added": added, "removed": removed})}
		if b.More.First {
			out = append(out, told{"artifact.created", fileArtifact(c, e, b)})
		}
		return out, nil
	}),
	protocol.KindToolResult: row(func(c *Context, _ *protocol.Entry, b *protocol.ToolResult) ([]told, error) {
		p := params{"toolCallId": b.ToolCallID, "toolName": b.ToolName, "status": b.Status, "durationMs": b.DurationMS, "preview": b.Result, "truncated": b.More.Truncated}
		if b.ErrorType != "" {
			p["errorType"] = b.ErrorType
		}
		return []told{pe(c, "tool_result", p)}, nil
	}),
	protocol.KindArtifactCreated: row(func(c *Context, e *protocol.Entry, b *protocol.ArtifactCreated) ([]told, error) {
		a, err := providerArtifact(c, e, b)
		if err != nil {
			return nil, err
		}
		return one("artifact.created", a)
	}),
	protocol.KindProviderEvent: row(func(_ *Context, _ *protocol.Entry, b *protocol.ProviderEvent) ([]told, error) {
		return one("provider.event", b.More.Data)
	}),
	protocol.KindQueuedInputDelivered: row(func(c *Context, _ *protocol.Entry, b *protocol.QueuedInputDelivered) ([]told, error) {
		return []told{pe(c, "input_delivered", params{"inputId": b.InputID, "mode": b.Mode, "input": b.Input})}, nil
	}),
	protocol.KindContextCompacted: row(func(c *Context, _ *protocol.Entry, b *protocol.ContextCompacted) ([]told, error) {
		var record struct {
			Reason string `json:"reason"`
		}
		_ = json.Unmarshal(b.Record, &record)
		return []told{pe(c, "context_compacted", params{"reason": record.Reason})}, nil
	}),
	protocol.KindTurnCompleted: row(func(c *Context, _ *protocol.Entry, b *protocol.TurnCompleted) ([]told, error) {
		text := ""
		switch {
		case b.More.FinalOutput != nil:
			text = *b.More.FinalOutput
		case c.Output != nil:
			var err error
			if text, err = c.Output(); err != nil {
				return nil, err
			}
		}
		return []told{{"output.text.done", params{"text": text}}, {"run.completed", params{"finalOutput": text}}}, nil
	}),
	protocol.KindTurnFailed: row(func(_ *Context, _ *protocol.Entry, b *protocol.TurnFailed) ([]told, error) {
		return one("run.failed", failure(b))
	}),
	protocol.KindTurnCancelled: row(func(_ *Context, _ *protocol.Entry, b *protocol.TurnCancelled) ([]told, error) {
		p := params{}
		if reason := cancelReason(b); reason != "" {
			p["reason"] = reason
		}
		if b.More.CleanupError != "" {
			p["providerCleanupError"] = b.More.CleanupError
		}
		return one("run.cancelled", p)
	}),
	protocol.KindTaskUpdated: row(func(c *Context, _ *protocol.Entry, b *protocol.TaskUpdated) ([]told, error) {
		var task struct {
			ID     string `json:"task_id"`
			Status string `json:"status"`
		}
		_ = json.Unmarshal(b.Task, &task)
		return []told{pe(c, "task_updated", params{"taskId": task.ID, "status": task.Status})}, nil
	}),
}

// Events tells the events of one entry, as many as its numbers say. b is its decoded body. An error names the entry.
func Events(c *Context, e *protocol.Entry, b protocol.Body) ([]Event, error) {
	if e.PortableCount == 0 {
		return nil, nil
	}
	tell := table[e.Kind]
	if tell == nil || b == nil {
		return nil, fmt.Errorf("entry %d: kind %s has no event of the portable protocol, but %d numbers", e.Seq, e.Kind, e.PortableCount)
	}
	all, err := tell(c, e, b)
	if err != nil {
		return nil, fmt.Errorf("entry %d (%s): %w", e.Seq, e.Kind, err)
	}
	if len(all) != e.PortableCount {
		return nil, fmt.Errorf("entry %d (%s): %d events, but %d numbers", e.Seq, e.Kind, len(all), e.PortableCount)
	}
	out := make([]Event, len(all))
	for i, t := range all {
		data, err := protocol.Marshal(t.data)
		if err != nil {
			return nil, fmt.Errorf("entry %d (%s): %w", e.Seq, e.Kind, err)
		}
		number := e.PortableFirst + int64(i)
		out[i] = Event{
			ID: c.Execution + ":" + strconv.FormatInt(number, 10), ExecutionID: c.Execution, Sequence: number, Type: t.kind,
			Time: FormatTime(e.Time), Data: data,
		}
	}
	return out, nil
}

// approval shows the request of an approval as an action. One of a parallel provider belongs to no tool call: its payload is the provider's.
func approval(c *Context, e *protocol.Entry, b *protocol.ApprovalRequested) Action {
	a := Action{
		ID: ActionPrefix + b.ActionID, ExecutionID: c.Execution, Kind: "approval", Title: b.Title, Description: b.More.Description,
		CreatedAt: FormatTime(e.Time),
	}
	if b.ToolCallID == b.ActionID {
		a.Payload = b.Arguments
	} else {
		type option struct {
			ID    string `json:"optionId"`
			Label string `json:"label"`
			Kind  string `json:"kind"`
		}
		options := []option{}
		for _, o := range b.Options {
			options = append(options, option{o.ID, o.Label, o.Kind})
		}
		a.Payload = protocol.MustMarshal(params{"toolCallId": b.ToolCallID, "toolName": b.ToolName, "arguments": b.Arguments, "options": options})
	}
	if len(a.Payload) == 0 {
		a.Payload = json.RawMessage("{}")
	}
	return a
}

// question shows a question as an action.
func question(c *Context, e *protocol.Entry, b *protocol.UserQuestionRequested) Action {
	a := Action{
		ID: ActionPrefix + b.More.ActionID, ExecutionID: c.Execution, Kind: "input", Title: b.Question, Payload: json.RawMessage("{}"),
		CreatedAt: FormatTime(e.Time),
	}
	if b.ToolCallID != b.More.ActionID {
		a.Payload = protocol.MustMarshal(params{"toolCallId": b.ToolCallID, "options": b.Options})
	}
	return a
}

func failure(b *protocol.TurnFailed) Failure {
	text := b.Error
	if text == "" {
		text = "Provider failed"
	}
	return Failure{ProviderFailed, text}
}

// StopReason is the reason of what the end of the runtime cancels.
const StopReason = "runtime shutting down"

// cancelReason is what is told of why a turn was cancelled; "" for the default of an editor.
func cancelReason(b *protocol.TurnCancelled) string {
	switch {
	case b.More.Reason != "":
		return b.More.Reason
	case b.Reason == protocol.ReasonShutdown:
		return StopReason
	case b.Reason == protocol.ReasonUser:
		return ""
	}
	return b.Reason
}

func lineCounts(b *protocol.FileChange) (added, removed int) {
	if b.More.Added > 0 || b.More.Removed > 0 {
		return b.More.Added, b.More.Removed
	}
	for _, l := range b.Lines {
		switch l.Kind {
		case "added":
			added++
		case "removed":
			removed++
		}
	}
	return added, removed
}

// fileArtifact is the artifact that a changed file is.
func fileArtifact(c *Context, e *protocol.Entry, b *protocol.FileChange) Artifact {
	sum := sha256.Sum256([]byte(b.FilePath))
	slashed := filepath.ToSlash(b.FilePath)
	full := slashed
	if !filepath.IsAbs(b.FilePath) && c.Workspace != "" {
		full = path.Join(filepath.ToSlash(c.Workspace), slashed)
	}
	if !strings.HasPrefix(full, "/") {
		full = "/" + full
	}
	media := b.More.MIME
	if media == "" {
		media = mediaType(slashed)
	}
	return Artifact{
		ID: "file-" + hex.EncodeToString(sum[:8]), Name: path.Base(slashed), MediaType: media, URI: (&url.URL{Scheme: "file", Path: full}).String(),
		Metadata:    protocol.MustMarshal(params{"path": b.FilePath, "toolCallId": b.ToolCallID}),
		ExecutionID: c.Execution, CreatedAt: FormatTime(e.Time),
	}
}

// mediaTypes is our own table: the system's differs from machine to machine, and events must not.
var mediaTypes = map[string]string{
	".c": "text/plain", ".css": "text/css", ".csv": "text/csv", ".go": "text/plain", ".gif": "image/gif", ".htm": "text/html", ".html": "text/html",
	".jpeg": "image/jpeg", ".jpg": "image/jpeg", ".js": "text/javascript", ".json": "application/json", ".md": "text/markdown", ".mjs": "text/javascript",
	".pdf": "application/pdf", ".png": "image/png", ".py": "text/plain", ".rs": "text/plain", ".sh": "text/plain", ".svg": "image/svg+xml",
	".toml": "text/plain", ".ts": "text/plain", ".txt": "text/plain", ".webp": "image/webp", ".xml": "application/xml", ".yaml": "text/plain", ".yml": "text/plain",
}

func mediaType(name string) string {
	if t := mediaTypes[strings.ToLower(path.Ext(name))]; t != "" {
		return t
	}
	return "application/octet-stream"
}

// providerArtifact adds owner and time to what a provider described.
func providerArtifact(c *Context, e *protocol.Entry, b *protocol.ArtifactCreated) (Artifact, error) {
	a, ok := ReadArtifact(b.More.Artifact)
	if !ok {
		return a, fmt.Errorf("artifact: not a descriptor")
	}
	a.ExecutionID, a.CreatedAt = c.Execution, FormatTime(e.Time)
	return a, nil
}

// ReadArtifact reads a provider's descriptor; false when it is none.
func ReadArtifact(text json.RawMessage) (Artifact, bool) {
	var a Artifact
	m, ok := object(text)
	if !ok {
		return a, false
	}
	for name, to := range map[string]*string{"id": &a.ID, "name": &a.Name, "mediaType": &a.MediaType} {
		if *to, ok = m.text(name); !ok || *to == "" {
			return a, false
		}
	}
	if _, there := m["uri"]; there {
		if a.URI, ok = m.text("uri"); !ok || a.URI == "" {
			return a, false
		}
	}
	a.Metadata, ok = m.object("metadata")
	return a, ok
}
