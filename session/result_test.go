package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

func TestAResultThatIsCutSaysSoAndNamesTheFileThatHoldsTheWhole(t *testing.T) {
	list := func(n int) any {
		var l []map[string]any
		for i := range n {
			l = append(l, map[string]any{"path": fmt.Sprintf("folder/\"é\" %d.txt", i), "size": i})
		}
		return l
	}
	wide := map[string]any{}
	for i := range 5000 {
		wide[fmt.Sprintf("member %d", i)] = i
	}
	line := "é\"\\\x01\u2028😀 "
	for _, c := range []struct {
		name          string
		result        session.ToolResult
		client, model bool // which of them is cut
		kind          string
	}{
		{"a list that fits", session.ToolResult{Data: list(100), Meta: map[string]any{"truncated": false}}, false, false, "list"},
		{"a list that only the model is given whole", session.ToolResult{Data: list(300), Meta: map[string]any{"truncated": false}}, true, false, "list"},
		{"a list too long for both", session.ToolResult{Data: list(3000), Meta: map[string]any{"truncated": false}}, true, true, "list"},
		{"a text of odd characters", session.ToolResult{Data: strings.Repeat(line, 5000)}, true, true, "text"},
		{"a list of lines", session.ToolResult{Data: strings.Split(strings.Repeat("\n ", 4000), " ")}, true, true, "list"},
		{"many texts in an object", session.ToolResult{Data: map[string]any{"stdout": strings.Repeat(line, 4000), "stderr": strings.Repeat(line, 4000)}}, true, true, "object"},
		{"an object with a file of its own", session.ToolResult{Data: map[string]any{"stdout": strings.Repeat("x", 9000)}, Meta: map[string]any{"output_path": "/its/own"}}, true, false, "object"},
		{"thousands of members", session.ToolResult{Data: wide}, true, true, "none"},
		{"an error with much to show", session.ToolResult{Status: "failed", ErrorType: protocol.ErrTimedOut, Error: "too slow", Data: wide}, true, true, "none"},
		{"a long error", session.ToolResult{Status: "failed", ErrorType: protocol.ErrInternal, Error: strings.Repeat(line, 5000)}, true, true, "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, full := range []bool{false, true} { // the disk
				dir := filepath.Join(t.TempDir(), "outputs")
				if full {
					dir = filepath.Join(os.DevNull, "outputs")
				}
				synctest.Test(t, func(t *testing.T) {
					look := readTool("look", nil)
					look.run = func(context.Context, session.ToolCall, session.Progress) (session.ToolResult, error) {
						return c.result, nil
					}
					m := say(append(callChunks("c1", "look", `{}`), finish(session.FinishCalls)), done())
					loop, err := session.NewLoop(session.Loop{Models: m, Tools: []session.Tool{look}, Outputs: func(session.SessionID) string { return dir }})
					if err != nil {
						t.Fatal(err)
					}
					store := memory.New()
					h := &house{t: t, store: store, model: m}
					h.all = session.NewSessions(session.Config{Store: store, Agent: loop, Models: m})
					s := h.draft()
					h.prompt(s, "x")
					given := m.requests[1].Messages
					for who, j := range map[string]string{"the client": results(t, h.entries(s.ID))[0].Result, "the model": given[len(given)-1].Text} {
						cut, limit := c.client, 8<<10
						if who == "the model" {
							cut, limit = c.model, 25<<10
						}
						var r struct {
							OK        bool
							Error     string
							ErrorType string `json:"error_type"`
							Data      any
							Meta      struct {
								Truncated bool
								Path      string `json:"output_path"`
							}
						}
						if err := json.Unmarshal([]byte(j), &r); err != nil || len(j) > limit || who == "the model" && strings.Count(j, `\n`) > 2000 {
							t.Fatalf("%s gets %d bytes, %v", who, len(j), err)
						}
						kind := map[string]string{"[]interface {}": "list", "string": "text", "map[string]interface {}": "object", "<nil>": "none"}[fmt.Sprintf("%T", r.Data)]
						if r.OK != (c.result.ErrorType == "") || r.ErrorType != c.result.ErrorType || (r.Error == "") != (c.result.Error == "") || kind != c.kind || r.Meta.Truncated != cut {
							t.Errorf("%s gets %s, cut %v: %.200s … %s", who, kind, r.Meta.Truncated, j, j[max(0, len(j)-200):])
						}
						whole := ""
						if c.model && !full {
							b, err := os.ReadFile(r.Meta.Path)
							if whole = string(b); err != nil {
								t.Errorf("%s is led to %q: %v", who, r.Meta.Path, err)
							}
							var all struct {
								Data  any
								Error string
							}
							if want := protocol.MustMarshal(c.result.Data); json.Unmarshal(b, &all) != nil || !bytes.Equal(protocol.MustMarshal(all.Data), sorted(want)) || all.Error != c.result.Error {
								t.Errorf("the file holds %d bytes of %d", len(whole), len(want))
							}
							if info, err := os.Stat(r.Meta.Path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
								t.Errorf("anybody may read it: %v", info.Mode())
							}
						} else if own, _ := c.result.Meta["output_path"].(string); r.Meta.Path != own {
							t.Errorf("%s is led to %q", who, r.Meta.Path)
						}
					}
					h.close()
				})
			}
		})
	}
}

// sorted is JSON with its keys in order.
func sorted(j []byte) []byte {
	var v any
	_ = json.Unmarshal(j, &v)
	return protocol.MustMarshal(v)
}
