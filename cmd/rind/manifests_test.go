//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/rind-dev/rind/session/tool/shell"
)

// The description of the runtime has the members of docs/protocol/portable-2026-09-02.md section 4 and no further ones, with the levels of
// section 11; an execution that asks for what is not there is refused by them.
func TestManifestsSayWhatThisHostOffersAndPreflightGoesByThem(t *testing.T) {
	mock := map[string]string{
		"action.approval": "native", "action.input": "native", "artifact.list": "emulated", "execution.cancel": "native", "conversation.continuity": "emulated",
		"event.replay": "native", "event.streaming": "native",
	}
	script, agent := maps.Clone(mock), maps.Clone(mock)
	script["artifact.list"], script["conversation.continuity"] = "native", "unsupported"
	agent["artifact.list"], agent["conversation.continuity"] = "native", "native"
	agent["extension.mcp"], agent["extension.skills"], agent["extension.subagents"] = "native", "native", "unsupported"
	manifest := func(id, name, lane string, capabilities map[string]string) any {
		levels := map[string]any{}
		for k, v := range capabilities {
			levels[k] = v
		}
		return map[string]any{
			"id": id, "name": name, "version": version(), "protocolVersion": "2026-09-02", "topologies": []any{"embedded"}, "capabilities": levels,
			"metadata": map[string]any{"rind": map[string]any{"lane": lane}},
		}
	}
	for _, mode := range []string{shell.ModeAuto, shell.ModeOff} {
		t.Run("sandbox "+mode, func(t *testing.T) {
			sandboxed := shell.Sandboxed(shell.Config{Mode: mode})
			if mode == shell.ModeOff && sandboxed {
				t.Fatal("a sandbox that is off")
			}
			agent["extension.sandbox"] = map[bool]string{true: "native", false: "unsupported"}[sandboxed]
			root := t.TempDir()
			if err := os.WriteFile(filepath.Join(root, "settings.json"), fmt.Appendf(nil, `{"sandbox":%q}`, mode), 0o600); err != nil {
				t.Fatal(err)
			}
			s := serveHTTP(t, root)
			defer s.kill()
			var told, again map[string]any
			if _, err := s.ask("GET", "/v1/runtime", "", &told); err != nil {
				t.Fatal(err)
			}
			providers := []any{manifest("mock", "Deterministic mock", "parallel", mock), manifest("script", "Scripted steps", "parallel", script), manifest("agent", "rind agent", "serial", agent)}
			want := map[string]any{"name": "rind", "version": version(), "protocolVersion": "2026-09-02", "providers": providers}
			if !reflect.DeepEqual(told, want) {
				a, _ := json.MarshalIndent(told, "", " ")
				b, _ := json.MarshalIndent(want, "", " ")
				t.Errorf("told %s\nwant %s", a, b)
			}
			if _, err := s.ask("GET", "/v1/runtime/capabilities", "", &again); err != nil || !reflect.DeepEqual(again, map[string]any{"providers": providers}) {
				t.Errorf("the route of capabilities tells otherwise: %v, %v", again, err)
			}
			var conversation struct{ ID string }
			if _, err := s.ask("POST", "/v1/conversations", "{}", &conversation); err != nil {
				t.Fatal(err)
			}
			for name, level := range agent {
				want := 202
				if level == "unsupported" {
					want = 422
				}
				body := fmt.Sprintf(`{"conversationId":%q,"providerId":"agent","input":"","requiredCapabilities":[%q],"config":{"maxSteps":0}}`, conversation.ID, name)
				if status, err := s.ask("POST", "/v1/executions", body, nil); err != nil || status != want {
					t.Errorf("an execution that needs %s, which is %s: %d, %v", name, level, status, err)
				}
			}
		})
	}
}
