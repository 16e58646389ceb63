package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// tool is one tool of a server, as the server described it last.
type tool struct {
	server      *server
	original    string
	description string
	schema      json.RawMessage
}

// newTool reads one item of a list of tools. A tool that cannot be offered gives an error.
func newTool(s *server, raw json.RawMessage) (*tool, error) {
	var w struct {
		Name        string          `json:"name"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"inputSchema"`
		Hints       struct {
			ReadOnly bool `json:"readOnlyHint"`
		} `json:"annotations"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("a tool cannot be read: %w", err)
	}
	if w.Name == "" || len(w.Name) > 256 {
		return nil, errors.New("a tool has no name, or one longer than 256 bytes")
	}
	schema, err := offeredSchema(w.Schema)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", clean(w.Name, 80), err)
	}
	about := w.Description
	if about == "" {
		about = w.Title
	}
	if about == "" {
		about = w.Name
	}
	lead := fmt.Sprintf("Tool of the MCP server %s, in its own words: ", clean(s.name, 64))
	tail := ""
	if w.Hints.ReadOnly {
		tail = " (It says of itself that it only reads.)"
	}
	room := maxDescription - protocol.CharLen(lead+tail)
	return &tool{server: s, original: w.Name, description: lead + described(about, room) + tail, schema: schema}, nil
}

// described is a description of at most n characters that keeps its lines and holds nothing unseen.
func described(s string, n int) string {
	lines := strings.Split(protocol.Prefix(strings.ReplaceAll(s, "\r\n", "\n"), 4*n), "\n")
	for i := range lines {
		lines[i] = clean(lines[i], n)
	}
	s = strings.TrimSpace(strings.Join(lines, "\n"))
	if protocol.CharLen(s) > n {
		s = protocol.Prefix(s, n-1) + "…"
	}
	return s
}

// offeredSchema makes a schema of arguments one that every provider takes: an object with properties, and at its top none of the words
// for alternatives, which providers refuse the whole request for. The server checks its arguments itself.
func offeredSchema(raw json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(raw)) == 0 || string(raw) == "null" {
		raw = json.RawMessage(`{}`)
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("its schema is longer than %d KiB", maxSchema>>10)
	}
	if protocol.Deeper([]byte(raw), maxDepth) {
		return nil, fmt.Errorf("its schema is nested deeper than %d levels", maxDepth)
	}
	v, err := decode(raw)
	top, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil, errors.New("its schema is no object")
	}
	if kind, ok := top["type"]; ok && kind != "object" {
		return nil, errors.New("its schema is not that of an object")
	}
	for _, word := range []string{"$schema", "$id", "anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else"} {
		delete(top, word)
	}
	top["type"] = "object"
	if _, ok := top["properties"].(map[string]any); !ok {
		top["properties"] = map[string]any{}
	}
	for name := range top["properties"].(map[string]any) {
		if !parameter().MatchString(name) {
			return nil, fmt.Errorf("its parameter %q has a name that models do not take", clean(name, 80))
		}
	}
	told(top)
	out, err := protocol.Marshal(top)
	if err != nil {
		return nil, fmt.Errorf("write its schema: %w", err)
	}
	if len(out) > maxSchema {
		return nil, fmt.Errorf("its schema is longer than %d KiB", maxSchema>>10)
	}
	return out, nil
}

const maxDepth = 32 // levels of a schema

// parameter is what every provider takes as the name of one.
var parameter = pattern(`^[a-zA-Z0-9_.-]{1,64}$`)

// told cleans the texts of a schema that are for a reader.
func told(v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			told(one)
		}
	case map[string]any:
		for k, one := range v {
			if text, ok := one.(string); ok && (k == "description" || k == "title" || k == "$comment") {
				v[k] = described(text, maxDescription)
				continue
			}
			told(one)
		}
	}
}

// namedTool is a tool under the name the model knows it by.
type namedTool struct {
	*tool
	name string
}

// Spec implements session.Tool. ReadOnly is false whatever the server says: its hints are not a promise.
func (t *namedTool) Spec() session.ToolSpec {
	return session.ToolSpec{Name: t.name, Description: t.description, Schema: t.schema, Kind: "other"}
}

var errSlow = errors.New("no answer in time")

// Run implements session.Tool. Data is the text of the result, or what the server gave as structured content.
func (t *namedTool) Run(ctx context.Context, call session.ToolCall, out session.Progress) (session.ToolResult, error) {
	limit, most := t.server.entry.timeout, t.server.cfg.call
	defer t.server.use()()
	bound, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	timer := time.AfterFunc(limit, func() { cancel(errSlow) })
	defer timer.Stop()
	p, err := t.server.await(bound)
	if err != nil {
		return t.failed(ctx, err, false, began)
	}
	say := teller(out)
	defer say.close()
	raw, err := p.call(bound, "tools/call", func(token int64) any {
		return map[string]any{"name": t.original, "arguments": call.Arguments, "_meta": map[string]any{"progressToken": token}}
	}, func(told progress) {
		if left := max(limit, most) - time.Since(began); left > 0 {
			timer.Reset(min(limit, left))
		}
		say.tell(told)
	})
	if err != nil {
		return t.failed(ctx, err, true, began)
	}
	return t.result(raw), nil
}

// failed says why a call gave nothing. sent: the server may have worked on it.
func (t *namedTool) failed(ctx context.Context, err error, sent bool, began time.Time) (session.ToolResult, error) {
	if ctx.Err() != nil {
		return session.ToolResult{}, context.Cause(ctx)
	}
	r := session.ToolResult{Status: protocol.ToolFailed, ErrorType: protocol.ErrToolOutcomeUnknown}
	name := clean(t.server.name, 64)
	if errors.Is(err, errSlow) {
		r.Status, r.ErrorType = protocol.ToolTimedOut, protocol.ErrTimedOut
		r.Error = fmt.Sprintf("The MCP server %s did not answer within %v.", name, time.Since(began).Round(100*time.Millisecond))
		if sent {
			r.Error += " The call may or may not have run; check before repeating it."
		} else {
			r.Error = fmt.Sprintf("The MCP server %s was not connected again within %v; the call did not run.", name, time.Since(began).Round(100*time.Millisecond))
		}
		return r, nil
	}
	if e, ok := errors.AsType[*remoteError](err); ok {
		r.ErrorType = protocol.ErrInternal
		if e.Code == -32602 {
			r.ErrorType = protocol.ErrInvalidArguments
		}
		r.Error = fmt.Sprintf("The MCP server %s answered with an error: %s (error %d)", name, clean(t.server.entry.hide.Replace(e.Message), 500), e.Code)
		return r, nil
	}
	text := strings.TrimSuffix(clean(t.server.entry.hide.Replace(err.Error()), 500), ".")
	if _, ok := errors.AsType[*errDown](err); ok || !sent {
		r.Status, r.ErrorType = protocol.ToolUnavailable, protocol.ErrNotFound
		r.Error = fmt.Sprintf("The MCP server %s is not connected: %s. The call did not run; 'rind mcp list' shows the servers.", name, text)
		return r, nil
	}
	if errors.Is(err, errTooLong) {
		r.ErrorType = protocol.ErrTooLarge
	}
	r.Error = fmt.Sprintf("The MCP server %s gave no answer: %s. The call may or may not have run; check before repeating it.", name, text)
	return r, nil
}

// telling passes progress on, at most one line a second, and nothing once the call is over.
type telling struct {
	mu   sync.Mutex
	out  session.Progress
	last time.Time
	over bool
}

func teller(out session.Progress) *telling { return &telling{out: out} }

func (s *telling) tell(p progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || time.Since(s.last) < time.Second {
		return
	}
	text := clean(p.Message, 200)
	if text == "" {
		text = clean(string(p.Progress), 30)
		if p.Total != "" {
			text += " of " + clean(string(p.Total), 30)
		}
	}
	if text != "" {
		s.last = time.Now()
		s.out.Say(text)
	}
}

func (s *telling) close() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
}
