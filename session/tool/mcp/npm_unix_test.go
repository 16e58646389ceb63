//go:build unix

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
)

// installed puts npm packages into a folder; the test is skipped where none can be had.
func installed(t *testing.T, packages ...string) (node, dir string) {
	t.Helper()
	node, err1 := proc.LookPath("node")
	npm, err2 := proc.LookPath("npm")
	if err1 != nil || err2 != nil {
		t.Skip("needs node and npm")
	}
	if testing.Short() {
		t.Skip("installs packages")
	}
	dir = t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	children := proc.NewChildren("")
	defer func() { _ = children.KillAll() }()
	var out bytes.Buffer
	args := append([]string{"install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir}, packages...)
	p, err := children.Start(proc.Spec{Path: npm, Args: args, Dir: dir, Env: os.Environ(), Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(ctx); err != nil || exit.Code != 0 {
		t.Skipf("no package registry in reach: %v: %.200s", err, out.String())
	}
	return node, dir
}

// TestServersOthersWroteWork holds the client against the reference servers.
func TestServersOthersWroteWork(t *testing.T) {
	node, dir := installed(t, "@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31")
	at := func(name string) string {
		return filepath.Join(dir, "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
	}
	h := open(t, object{
		"everything": object{"command": node, "args": []any{at("server-everything"), "stdio"}},
		"files":      object{"command": node, "args": []any{at("server-filesystem"), "."}},
	}, func(c *Config) { c.waiting = time.Minute })
	call := func(name, args string) session.ToolResult {
		t.Helper()
		return run(t.Context(), t, h.find(t, name), args)
	}
	h.Tools(t.Context())
	for _, s := range h.List() {
		t.Logf("%s %s %s %v %s", s.Name, s.Server, s.State, s.Tools, s.Error)
	}
	if r := call("mcp__everything__echo", `{"message":"hi"}`); !strings.Contains(text(r), "hi") {
		t.Errorf("%+v", r)
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
	var image []string
	for _, tool := range h.Tools(t.Context()) {
		if n := tool.Spec().Name; strings.Contains(strings.ToLower(n), "image") && strings.HasPrefix(n, "mcp__everything__") {
			image = append(image, n)
		}
	}
	if len(image) > 0 {
		if r := call(image[0], `{}`); !slices.ContainsFunc(r.Attachments, func(p protocol.Part) bool { return p.Kind == "image" && len(p.Data) > 0 }) {
			t.Errorf("%s: %+v", image[0], r.Data)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
