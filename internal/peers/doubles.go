package peers

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
)

// Scripted makes a script the only model, m-1 of provider play, and lists what it is told to.
type Scripted struct {
	*script.Script
	Listed []session.ModelInfo
	Mode   string // of new sessions; "" is ask
}

// Default implements session.Models.
func (m Scripted) Default() session.Selection {
	return session.Selection{Provider: "play", Model: "m-1", Mode: cmp.Or(m.Mode, "ask")}
}

// Select implements session.Models.
func (m Scripted) Select(_ context.Context, sel session.Selection) (session.Selected, error) {
	return session.Selected{Model: m.Script, Info: session.ModelInfo{Provider: "play", ID: sel.Model, Window: 100_000}}, nil
}

// List implements session.Models.
func (m Scripted) List(_ context.Context, refresh bool) ([]session.ModelInfo, string, error) {
	if refresh {
		time.Sleep(50 * time.Millisecond) // as one that is asked over the network; bubbles have clocks of their own
	}
	return m.Listed, "", nil
}

// Tool is a tool that a test writes.
type Tool struct {
	Called string // its name
	Kind   string
	Reads  bool // and does nothing else
	Does   func(ctx context.Context, c session.ToolCall, p session.Progress) (session.ToolResult, error)
}

// Spec implements session.Tool: any object is an argument.
func (t *Tool) Spec() session.ToolSpec {
	return session.ToolSpec{Name: t.Called, Description: "d", Kind: t.Kind, ReadOnly: t.Reads, Schema: json.RawMessage(`{"type":"object"}`)}
}

// Run implements session.Tool.
func (t *Tool) Run(ctx context.Context, c session.ToolCall, p session.Progress) (session.ToolResult, error) {
	return t.Does(ctx, c, p)
}

// Asks is a tool that asks a person for a colour.
func Asks(name string, choices ...protocol.Choice) *Tool {
	return &Tool{Called: name, Kind: "think", Does: func(ctx context.Context, _ session.ToolCall, p session.Progress) (session.ToolResult, error) {
		a, err := p.Ask(ctx, "Which colour?", choices)
		return session.ToolResult{Data: map[string]string{"answer": a}}, err
	}}
}

// Stays is a tool that runs until it is cancelled.
func Stays() *Tool {
	return &Tool{Called: "stay", Kind: "think", Does: func(ctx context.Context, _ session.ToolCall, _ session.Progress) (session.ToolResult, error) {
		<-ctx.Done()
		return session.ToolResult{}, context.Cause(ctx)
	}}
}
