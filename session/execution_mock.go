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
	steps           []json.RawMessage
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
			if d, ok := milliseconds(v); ok {
				c.delay = d
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

func playSteps(ctx context.Context, x *Execution, steps []json.RawMessage) (string, error) {
	p := &player{x: x}
	for _, raw := range steps {
		play, ok := readStep(raw)
		if !ok {
			return "", runnerFault("Unknown script step")
		}
		if err := play(ctx, p); err != nil {
			return "", err
		}
	}
	if p.final != nil {
		return *p.final, nil
	}
	return p.said.String(), nil
}

// step plays one step of a script.
type step func(ctx context.Context, p *player) error

// stepKinds read what stands behind the one name that a step has.
var stepKinds = map[string]func(value json.RawMessage) (step, bool){
	"delta": textStep(func(p *player, text string) error { return p.say(text) }),
	"fail":  textStep(func(_ *player, text string) error { return errors.New(text) }),
	"final": textStep(func(p *player, text string) error {
		p.final = &text
		return nil
	}),
	"sleepMs":  sleepStep,
	"event":    eventStep,
	"artifact": artifactStep,
	"approval": approvalStep,
	"input":    inputStep,
	"tool":     toolStep,
}

// readStep reads a step, of which the shape is held as that of a request is: exact names, null is not absent.
func readStep(raw json.RawMessage) (step, bool) {
	named, ok := fieldsOf(raw)
	if !ok || len(named) != 1 {
		return nil, false
	}
	for kind, value := range named {
		if read := stepKinds[kind]; read != nil {
			return read(value)
		}
	}
	return nil, false
}

func textStep(play func(p *player, text string) error) func(json.RawMessage) (step, bool) {
	return func(value json.RawMessage) (step, bool) {
		text, ok := protocol.Text(value)
		return func(_ context.Context, p *player) error { return play(p, text) }, ok
	}
}

func sleepStep(value json.RawMessage) (step, bool) {
	d, ok := milliseconds(value)
	return func(ctx context.Context, _ *player) error { return Pause(ctx, d) }, ok
}

func eventStep(value json.RawMessage) (step, bool) {
	f, _ := fieldsOf(value)
	method, named := f.text("method")
	params, ok := f.object("params")
	return func(_ context.Context, p *player) error { return p.event(method, params) }, named && ok
}

// artifactStep takes any object: what is no descriptor is told apart where it is emitted.
func artifactStep(value json.RawMessage) (step, bool) {
	return func(_ context.Context, p *player) error { return p.x.Emit(EmitArtifact, value) }, protocol.IsObject(value)
}

// approvalStep leaves an empty title, or a payload that is no object, to Ask.
func approvalStep(value json.RawMessage) (step, bool) {
	f, _ := fieldsOf(value)
	title, ok := f.text("title")
	return func(ctx context.Context, p *player) error {
		got, err := ask(ctx, p.x, ActionAsk{Title: title, Payload: f["payload"]})
		if err == nil && !got.Approved {
			err = runnerFault("Script step was not approved")
		}
		return err
	}, ok
}

func inputStep(value json.RawMessage) (step, bool) {
	f, _ := fieldsOf(value)
	title, ok := f.text("title")
	return func(ctx context.Context, p *player) error {
		got, err := ask(ctx, p.x, ActionAsk{Input: true, Title: title})
		if err != nil || got.Text == "" {
			return err
		}
		return p.say(got.Text)
	}, ok
}

// scriptedTool is a call that a script tells.
type scriptedTool struct {
	name, result, status string
	arguments            json.RawMessage
}

func toolStep(value json.RawMessage) (step, bool) {
	f, _ := fieldsOf(value)
	t := scriptedTool{status: protocol.ToolCompleted}
	var named, ended, given bool
	stated := true
	t.name, named = f.text("name")
	t.result, ended = f.text("result")
	t.arguments, given = f.object("arguments")
	if f["status"] != nil {
		t.status, stated = f.text("status")
	}
	return func(_ context.Context, p *player) error { return p.tool(&t) }, named && ended && given && stated && t.name != "" && t.status != ""
}

func (p *player) say(text string) error {
	p.said.WriteString(text)
	return p.x.Say(text)
}

func (p *player) event(method string, params json.RawMessage) error {
	return p.x.Emit(EmitEvent, protocol.MustMarshal(struct {
		Provider string          `json:"provider"`
		Method   string          `json:"method"`
		Params   json.RawMessage `json:"params"`
	}{"script", method, params}))
}

// tool tells a call as the agent's calls are told.
func (p *player) tool(t *scriptedTool) error {
	p.tools++
	id := fmt.Sprintf("call_%d", p.tools)
	for _, e := range []struct {
		method string
		params map[string]any
	}{
		{"rind.tool_requested", map[string]any{"toolCallId": id, "toolName": t.name, "arguments": t.arguments}},
		{"rind.tool_started", map[string]any{"toolCallId": id, "toolName": t.name}},
		{"rind.tool_result", map[string]any{
			"toolCallId": id, "toolName": t.name, "status": t.status, "durationMs": 0, "preview": firstBytes(t.result, clientResultBytes),
			"truncated": len(t.result) > clientResultBytes,
		}},
	} {
		if err := p.event(e.method, protocol.MustMarshal(e.params)); err != nil {
			return err
		}
	}
	return nil
}

// fields are the members of an object by their exact names; the last of a repeated one stands.
type fields map[string]json.RawMessage

// fieldsOf reads an object; false for any other value, which has no fields. value is valid JSON.
func fieldsOf(value json.RawMessage) (fields, bool) {
	if !protocol.IsObject(value) {
		return nil, false
	}
	f := fields{}
	for name, v := range protocol.Members(value) {
		f[string(name)] = v
	}
	return f, true
}

// text is a string that has to be there.
func (f fields) text(name string) (string, bool) { return protocol.Text(f[name]) }

// object is an object as it stands, {} where there is none.
func (f fields) object(name string) (json.RawMessage, bool) {
	v := f[name]
	if v == nil {
		return json.RawMessage("{}"), true
	}
	return v, protocol.IsObject(v)
}

// longestPause bounds what a config can ask to be slept, in milliseconds.
const longestPause = 1e9

// milliseconds reads a number that is not negative.
func milliseconds(value json.RawMessage) (time.Duration, bool) {
	ms, err := strconv.ParseFloat(string(value), 64)
	return time.Duration(min(ms, longestPause) * float64(time.Millisecond)), err == nil && ms >= 0
}
