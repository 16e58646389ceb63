package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/store/memory"
)

// scripted is the one model there is.
type scripted struct{ *script.Script }

func (scripted) Default() session.Selection {
	return session.Selection{Provider: "script", Model: "m", Mode: "ask"}
}

func (m scripted) Select(context.Context, session.Selection) (session.Selected, error) {
	return session.Selected{Model: m, Info: session.ModelInfo{Provider: "script", ID: "m"}}, nil
}

func (scripted) List(context.Context, bool) ([]session.ModelInfo, string, error) { return nil, "", nil }

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
	model := scripted{script.Must(`{"turns":[{"steps":[
		{"call":{"id":"c1","name":"mcp__d__git_status","arguments":{"q":"x"}}},
		{"call":{"id":"c2","name":"mcp__d__git_status","arguments":{"q":5}}},
		{"call":{"id":"c3","name":"mcp__d__bare","arguments":{}}}]},{"steps":[{"text":"Done."}]}]}`)}
	loop, err := session.NewLoop(session.Loop{Models: model, More: func(ctx context.Context, _ *session.Turn) []session.Tool { return h.Tools(ctx) }, Policy: allows{name: "mcp__d__git_status"}, Unattended: true})
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New()
	defer store.Close()
	all := session.NewSessions(session.Config{Store: store, Agent: loop, Models: model, Now: time.Now})
	s, err := all.Draft(t.Context(), session.DraftOptions{Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	s.Prompt(session.PromptRequest{Input: "go"}, func(_ session.Outcome, err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	entries, err := store.Read(t.Context(), s.ID, 0, 1<<20, protocol.ViewAll)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for i := range entries {
		b, err := protocol.Decode(&entries[i])
		if err != nil {
			t.Fatal(err)
		}
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
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if err := all.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}
