package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
)

// allows is a policy that allows what it names.
type allows struct {
	session.Policy
	name string
}

func (a allows) Judge(_ context.Context, _ string, spec session.ToolSpec, _ session.ToolCall) (session.Verdict, error) {
	if spec.Name == a.name && !spec.ReadOnly {
		return session.Verdict{Effect: "allow"}, nil
	}
	return session.Verdict{Effect: "ask", Title: spec.Name}, nil
}

func TestATurnCallsAServersToolOnlyWithConsent(t *testing.T) {
	h := open(t, object{"d": program("odd", nil)})
	play := script.Must(`{"turns":[{"steps":[
		{"call":{"id":"c1","name":"mcp__d__git_status","arguments":{"q":"x"}}},
		{"call":{"id":"c2","name":"mcp__d__git_status","arguments":{"q":5}}},
		{"call":{"id":"c3","name":"mcp__d__bare","arguments":{}}}]},{"steps":[{"text":"Done."}]}]}`)
	p := peers.NewWorld().Launch(t, "p", play, peers.Setting{Loop: func(*peers.Process) session.Loop {
		return session.Loop{More: func(ctx context.Context, _ *session.Turn) []session.Tool { return h.Tools(ctx) }, Policy: allows{name: "mcp__d__git_status"}, Unattended: true}
	}})
	defer p.End()
	got := map[string]string{}
	for _, b := range p.Turn(t.TempDir()) {
		if r, ok := b.(*protocol.ToolResult); ok {
			var j struct{ Error string }
			_ = json.Unmarshal([]byte(r.Result), &j)
			got[r.ToolCallID] = r.Status + " " + r.ErrorType + " " + j.Error
		}
	}
	for id, want := range map[string]string{
		"c1": "failed InvalidArguments The MCP server d answered with an error: Unknown tool", // the server had it, and answered
		"c2": "rejected InvalidArguments Invalid arguments for mcp__d__git_status",            // held against the server's schema
		"c3": "rejected ApprovalUnavailable",                                                  // nobody can be asked
	} {
		if !strings.HasPrefix(got[id], want) {
			t.Errorf("%s: %q, want %q", id, got[id], want)
		}
	}
}
