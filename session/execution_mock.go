package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Mock is the deterministic provider `mock`, and `script` with Steps (docs/protocol/portable-2026-09-02.md section 11). It keeps nothing.
type Mock struct{ Steps bool }

// mockConfig are the keys a mock looks at. A value of another type counts as absent.
type mockConfig struct {
	prefix          string
	delay           time.Duration
	approval, input bool
	artifact        string
	steps           []map[string]json.RawMessage
}

// readMockConfig reads them as they stand: a mock that is asked for nothing special costs no decoding. raw is an object of valid JSON.
func readMockConfig(raw json.RawMessage) mockConfig {
	usual := mockConfig{prefix: "Echo: ", delay: 2 * time.Millisecond}
	c := usual
	for name, v := range protocol.Members(raw) {
		switch string(name) {
		case "prefix":
			c.prefix = usual.prefix
			if text, ok := protocol.Text(v); ok {
				c.prefix = text
			}
		case "delayMs":
			c.delay = usual.delay
			if ms, err := strconv.ParseFloat(string(v), 64); err == nil && ms >= 0 {
				c.delay = time.Duration(min(ms, 1e9) * float64(time.Millisecond))
			}
		case "requireApproval":
			c.approval = string(v) == "true"
		case "requestInput":
			c.input = string(v) == "true"
		case "artifactName":
			c.artifact, _ = protocol.Text(v)
		case "steps":
			c.steps = nil
			_ = json.Unmarshal(v, &c.steps)
		}
	}
	return c
}

// Run implements Runner.
func (m Mock) Run(ctx context.Context, x *Execution) (string, error) {
	c := readMockConfig(x.Config)
	if c.approval {
		a, err := ask(ctx, x, ActionAsk{Title: "Approve mock execution"})
		if err != nil {
			return "", err
		}
		if !a.Approved {
			return "", runnerFault("Mock execution was not approved")
		}
	}
	out := c.prefix + x.Input
	if c.input {
		a, err := ask(ctx, x, ActionAsk{Input: true, Title: "Provide mock input"})
		if err != nil {
			return "", err
		}
		if a.Text != "" {
			out += " " + a.Text
		}
	}
	if m.Steps && c.steps != nil {
		var err error
		if out, err = playSteps(ctx, x, c.steps); err != nil {
			return "", err
		}
	} else {
		for _, chunk := range chunks(out) {
			if c.delay > 0 {
				if err := Pause(ctx, c.delay); err != nil {
					return "", err
				}
			}
			if err := x.Say(chunk); err != nil {
				return "", err
			}
		}
	}
	if c.artifact != "" {
		if err := x.Emit(EmitArtifact, protocol.MustMarshal(map[string]string{
			"id": "artifact-exec_" + string(x.Turn), "name": c.artifact, "mediaType": "text/plain",
		})); err != nil {
			return "", err
		}
	}
	return out, nil
}

func ask(ctx context.Context, x *Execution, a ActionAsk) (Answer, error) {
	p, err := x.Ask(a)
	if err != nil {
		return Answer{}, err
	}
	return p.Wait(ctx)
}

// space is the set of the protocol's white space, which is wider than Go's.
func space(r rune) bool {
	switch {
	case r >= '\t' && r <= '\r', r == ' ', r == '\u00a0', r == '\u1680', r >= '\u2000' && r <= '\u200a', r == '\u2028', r == '\u2029', r == '\u202f',
		r == '\u205f', r == '\u3000', r == '\ufeff':
		return true
	}
	return false
}

// chunks cuts a text into runs of non-space, each with the spaces behind it. Leading spaces are in none; a text of spaces alone is one.
func chunks(text string) []string {
	if text == "" {
		return nil
	}
	rest := strings.TrimLeftFunc(text, space)
	if rest == "" {
		return []string{text}
	}
	var out []string
	for rest != "" {
		end := strings.IndexFunc(rest, space)
		if end < 0 {
			return append(out, rest)
		}
		next := strings.IndexFunc(rest[end:], func(r rune) bool { return !space(r) })
		if next < 0 {
			return append(out, rest)
		}
		out = append(out, rest[:end+next])
		rest = rest[end+next:]
	}
	return out
}

// player plays the steps of a script.
type player struct {
	x     *Execution
	said  strings.Builder
	final *string
	tools int
}

func playSteps(ctx context.Context, x *Execution, steps []map[string]json.RawMessage) (string, error) {
	p := &player{x: x}
	for _, step := range steps {
		if err := p.play(ctx, step); err != nil {
			return "", err
		}
	}
	if p.final != nil {
		return *p.final, nil
	}
	return p.said.String(), nil
}

var errStep error = runnerFault("Unknown script step")

func (p *player) play(ctx context.Context, step map[string]json.RawMessage) error {
	if len(step) != 1 {
		return errStep
	}
	for name, raw := range step {
		switch name {
		case "delta", "fail", "final":
			var s *string
			if json.Unmarshal(raw, &s) != nil || s == nil {
				return errStep
			}
			switch name {
			case "fail":
				return errors.New(*s)
			case "final":
				p.final = s
				return nil
			}
			return p.say(*s)
		case "sleepMs":
			var ms float64
			if json.Unmarshal(raw, &ms) != nil || ms < 0 {
				return errStep
			}
			return Pause(ctx, time.Duration(min(ms, 1e9)*float64(time.Millisecond)))
		case "event":
			var e struct {
				Method *string         `json:"method"`
				Params json.RawMessage `json:"params"`
			}
			if json.Unmarshal(raw, &e) != nil || e.Method == nil {
				return errStep
			}
			return p.event(*e.Method, e.Params)
		case "artifact":
			return p.x.Emit(EmitArtifact, raw)
		case "approval", "input":
			return p.ask(ctx, name == "input", raw)
		case "tool":
			return p.tool(raw)
		}
	}
	return errStep
}

func (p *player) say(text string) error {
	p.said.WriteString(text)
	return p.x.Say(text)
}

func (p *player) event(method string, params json.RawMessage) error {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	return p.x.Emit(EmitEvent, protocol.MustMarshal(struct {
		Provider string          `json:"provider"`
		Method   string          `json:"method"`
		Params   json.RawMessage `json:"params"`
	}{"script", method, params}))
}

func (p *player) ask(ctx context.Context, input bool, raw json.RawMessage) error {
	var a struct {
		Title   string          `json:"title"`
		Payload json.RawMessage `json:"payload"`
	}
	if json.Unmarshal(raw, &a) != nil {
		return errStep
	}
	got, err := ask(ctx, p.x, ActionAsk{Input: input, Title: a.Title, Payload: a.Payload})
	switch {
	case err != nil:
		return err
	case input && got.Text != "":
		return p.say(got.Text)
	case !input && !got.Approved:
		return runnerFault("Script step was not approved")
	}
	return nil
}

// tool tells a call as the agent's calls are told.
func (p *player) tool(raw json.RawMessage) error {
	var t struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Result    string          `json:"result"`
		Status    string          `json:"status"`
	}
	if json.Unmarshal(raw, &t) != nil || t.Name == "" {
		return errStep
	}
	if t.Status == "" {
		t.Status = protocol.ToolCompleted
	}
	if len(t.Arguments) == 0 {
		t.Arguments = json.RawMessage("{}")
	}
	p.tools++
	id := fmt.Sprintf("call_%d", p.tools)
	for _, e := range []struct {
		method string
		params map[string]any
	}{
		{"rind.tool_requested", map[string]any{"toolCallId": id, "toolName": t.Name, "arguments": t.Arguments}},
		{"rind.tool_started", map[string]any{"toolCallId": id, "toolName": t.Name}},
		{"rind.tool_result", map[string]any{
			"toolCallId": id, "toolName": t.Name, "status": t.Status, "durationMs": 0, "preview": firstBytes(t.Result, clientResultBytes),
			"truncated": len(t.Result) > clientResultBytes,
		}},
	} {
		if err := p.event(e.method, protocol.MustMarshal(e.params)); err != nil {
			return err
		}
	}
	return nil
}
