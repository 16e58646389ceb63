//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
)

// TestServersOthersWroteWork holds the client against the reference servers.
func TestServersOthersWroteWork(t *testing.T) {
	node, dir := testkit.Packages(t, "@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31")
	at := func(name string) string {
		return filepath.Join(dir, "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
	}
	address := overHTTP(t, node, at("server-everything"))
	h := open(t, object{
		"web":        object{"url": address},
		"everything": object{"command": node, "args": []any{at("server-everything"), "stdio"}},
		"files":      object{"command": node, "args": []any{at("server-filesystem"), "."}},
	}, func(c *Config) { c.Wait = time.Minute })
	call := func(name, args string) session.ToolResult {
		t.Helper()
		return run(t.Context(), t, h.find(t, name), args)
	}
	h.Tools(t.Context())
	for _, s := range h.List() {
		t.Logf("%s %s %s %v %s", s.Name, s.Server, s.State, s.Tools, s.Error)
	}
	if err := os.WriteFile(filepath.Join(h.dir, "a.txt"), []byte("from the workspace"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := call("mcp__files__read_text_file", `{"path":"`+filepath.Join(h.dir, "a.txt")+`"}`); !strings.Contains(string(mustJSON(t, r.Data)), "from the workspace") {
		t.Errorf("%+v", r)
	}
	if r := call("mcp__files__read_text_file", `{"path":"/etc/passwd"}`); r.ErrorType == "" || !strings.Contains(r.Error, "denied") {
		t.Errorf("%+v", r)
	}
	for _, server := range []string{"everything", "web"} { // the same over either transport
		t.Run(server, func(t *testing.T) {
			name := "mcp__" + server + "__"
			if r := call(name+"echo", `{"message":"h\u00ef"}`); !strings.Contains(text(r), "hï") {
				t.Errorf("%+v", r)
			}
			if r := call(name+"echo", `{"message":5}`); r.ErrorType == "" {
				t.Errorf("%+v", r)
			}
			if r := call(name+"get-tiny-image", `{}`); !slices.ContainsFunc(r.Attachments, func(p protocol.Part) bool { return p.Kind == "image" && len(p.Data) > 0 }) {
				t.Errorf("%+v", r)
			}
			if r := call(name+"get-structured-content", `{"location":"Chicago"}`); !strings.Contains(string(mustJSON(t, r.Data)), `"temperature":`) {
				t.Errorf("%+v", r)
			}
			if r := call(name+"get-env", `{}`); strings.Contains(text(r), "OPENAI_API_KEY") || r.ErrorType != "" {
				t.Errorf("%+v", r)
			}
			out := &said{}
			args := json.RawMessage(`{"duration":0.5,"steps":2}`)
			if r, err := h.find(t, name+"trigger-long-running-operation").Run(t.Context(), session.ToolCall{Arguments: args}, out); err != nil || r.ErrorType != "" || len(out.lines) == 0 {
				t.Errorf("%v %+v %q", err, r, out.lines)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			args = json.RawMessage(`{"duration":30,"steps":2}`)
			if _, err := h.find(t, name+"trigger-long-running-operation").Run(ctx, session.ToolCall{Arguments: args}, out); err == nil {
				t.Error("a cancelled call has a result")
			}
			if r := call(name+"get-roots-list", `{}`); !strings.Contains(text(r), "file://"+h.dir) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// overHTTP starts the reference server on a free port and returns its address.
func overHTTP(t *testing.T, node, script string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(address)
	children := proc.NewChildren("")
	t.Cleanup(func() {
		if err := children.KillAll(); err != nil {
			t.Error(err)
		}
	})
	if _, err := children.Start(proc.Spec{Path: node, Args: []string{script, "streamableHttp"}, Dir: t.TempDir(), Env: append(os.Environ(), "PORT="+port)}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the server listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		_ = conn.Close()
		return true
	})
	return "http://" + address + "/mcp"
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
