package mcp

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
)

// TestWhatALyingServerAnswersCostsItsOwnCallAtMost holds each answer against what a call may end with, and then asks the server for one more.
func TestWhatALyingServerAnswersCostsItsOwnCallAtMost(t *testing.T) {
	for name, want := range map[string]struct{ status, errorType, part string }{
		"twice":   {"", "", "first"},
		"tardy":   {protocol.ToolTimedOut, protocol.ErrTimedOut, "may or may not have run"},
		"spam":    {"", "", "at last"},
		"big":     {"", "", "line of many"},
		"torn":    {protocol.ToolFailed, protocol.ErrToolOutcomeUnknown, "exit code 4"},
		"nothing": {protocol.ToolFailed, protocol.ErrToolOutcomeUnknown, "neither a result nor an error"},
		"scalar":  {protocol.ToolFailed, protocol.ErrInternal, "its result cannot be read"},
		"huge":    {protocol.ToolFailed, protocol.ErrTooLarge, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, object{"d": program("plain", nil)})
			tool, echo := h.find(t, "mcp__d__"+name), h.find(t, "mcp__d__echo")
			usual := h.all[0].entry.timeout
			if name == "tardy" {
				h.all[0].entry.timeout = 100 * time.Millisecond // of this call alone
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			r := run(t.Context(), t, tool, `{}`)
			h.all[0].entry.timeout = usual
			if r.Status != want.status || r.ErrorType != want.errorType || !strings.Contains(r.Error+text(r), want.part) {
				t.Errorf("%s %s %s %.200s", r.Status, r.ErrorType, r.Error, text(r))
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
				t.Errorf("the heap has grown by %d bytes", grown)
			}
			if n := len(h.log.String()); n > 200<<10 {
				t.Errorf("the log has %d bytes", n)
			}
			if name == "tardy" {
				seen := h.find(t, "mcp__d__cancelled") // what the server tells next comes behind the answer that nobody waits for
				testkit.Eventually(t, "the late answer", func() bool { return strings.Contains(text(run(t.Context(), t, seen, `{}`)), "answered late") })
			}
			if r := run(t.Context(), t, echo, `{"a":1}`); text(r) != `{"a":1}` {
				t.Errorf("the next call: %+v", r)
			}
		})
	}
}

// worked lets a model make calls in one turn and returns how they ended, by call, and the events of the turn.
func worked(t *testing.T, play string, more func(context.Context, *session.Turn) []session.Tool) (results map[string]*protocol.ToolResult, outputs string) {
	t.Helper()
	outputs = t.TempDir()
	p := peers.NewWorld().Launch(t, "p", script.Must(play), peers.Setting{Loop: func(*peers.Process) session.Loop {
		return session.Loop{Unattended: true, Policy: allowAll{}, More: more, Outputs: func(session.SessionID) string { return outputs }}
	}})
	defer p.End()
	results = map[string]*protocol.ToolResult{}
	for _, b := range p.Turn(t.TempDir()) {
		switch b := b.(type) {
		case *protocol.ToolResult:
			results[b.ToolCallID] = b
		case *protocol.Notice:
			results["notice"] = &protocol.ToolResult{Result: b.Severity + " " + b.Title}
		}
	}
	return results, outputs
}

// allowAll is a policy for tools that ask for nothing of themselves.
type allowAll struct{ session.Policy }

func (allowAll) Judge(_ context.Context, _ string, spec session.ToolSpec, _ session.ToolCall) (session.Verdict, error) {
	if spec.ReadOnly {
		return session.Verdict{Effect: "deny", Reason: "the hint of a server was believed"}, nil
	}
	return session.Verdict{Effect: "allow"}, nil
}

func TestALongResultIsShortenedForTheModelAndKeptWhole(t *testing.T) {
	o := employ(t, object{"d": program("liar", nil), "gone": program("exit", nil)})
	got, outputs := worked(t, `{"turns":[{"steps":[
		{"call":{"id":"big","name":"mcp__d__big","arguments":{}}},
		{"call":{"id":"safe","name":"mcp__d__safe","arguments":{}}},
		{"call":{"id":"banana","name":"mcp__d__banana","arguments":{}}},
		{"call":{"id":"nowhere","name":"mcp__d__nowhere","arguments":{}}},
		{"call":{"id":"five","name":"mcp__d__five","arguments":{}}},
		{"call":{"id":"pattern","name":"mcp__d__pattern","arguments":{}}}]},{"steps":[{"text":"Done."}]}]}`, o.Tools)
	big := got["big"]
	if big == nil || !big.More.Truncated || len(big.Result) > 10<<10 || len(big.More.ModelText) > 30<<10 {
		t.Fatalf("%+v", big)
	}
	var r struct {
		Meta struct {
			Path string `json:"output_path"`
		} `json:"meta"`
	}
	if err := json.Unmarshal([]byte(big.More.ModelText), &r); err != nil || !strings.HasPrefix(r.Meta.Path, outputs) {
		t.Errorf("%v %q", err, r.Meta.Path)
	}
	if whole, err := os.ReadFile(r.Meta.Path); err != nil || len(whole) < 300<<10 {
		t.Errorf("%d bytes, %v", len(whole), err)
	}
	if r := got["safe"]; r == nil || strings.Contains(r.Result, "believed") {
		t.Errorf("%+v", r)
	}
	for _, id := range []string{"banana", "nowhere", "five", "pattern"} { // what is no schema costs its tool
		if r := got[id]; r == nil || r.ErrorType != protocol.ErrToolNotFound && r.ErrorType != protocol.ErrInvalidArguments {
			t.Errorf("%s: %+v", id, r)
		}
	}
	if n := got["notice"]; n == nil || !strings.HasPrefix(n.Result, "warning The MCP server gone is down") {
		t.Errorf("%+v", n)
	}
}
