package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session/settings"
	"github.com/rind-dev/rind/session/tool/mcp"
)

// opened are the servers of a process as compose makes them.
type opened struct{ *mcp.Servers }

func (o opened) States() []serverState {
	var all []serverState
	for _, s := range o.List() {
		all = append(all, serverState(s))
	}
	return all
}

func runMCP(t *testing.T, ws string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := mcpCommand(&streams{nil, &stdout, &stderr}, func(rt *process) toolServers {
		entries, _, err := serverEntries(rt.path, rt.workspace)
		if err != nil {
			t.Fatal(err)
		}
		return opened{mcp.New(mcp.Config{Servers: entries, Children: rt.children, Log: rt.log, Dir: rt.workspace})}
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(args, "--cwd", ws))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		code = 1
		if e, ok := err.(*exit); ok {
			code = e.code
		}
	}
	return code, stdout.String(), stderr.String()
}

// oneTool is a server over HTTP with the tool add.
func oneTool(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		answer := map[string]string{
			"initialize": `{"protocolVersion":"2025-03-26","serverInfo":{"name":"sums","version":"2"}}`, "tools/list": `{"tools":[{"name":"add","inputSchema":{}}]}`,
			"tools/call": `{"content":[{"type":"text","text":"the sum"}]}`,
		}[m.Method]
		if answer == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + answer + `}`))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestServersAreListedWithToolsAndFaults(t *testing.T) {
	root, ws := t.TempDir(), t.TempDir()
	t.Setenv("RIND_HOME", root)
	write := func(servers map[string]any) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, "settings.json"), protocol.MustMarshal(map[string]any{"mcpServers": servers}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, _ := runMCP(t, ws); code != 0 || !strings.HasPrefix(out, "No servers.") {
		t.Errorf("%d %q", code, out)
	}
	good := map[string]any{"url": oneTool(t)}
	write(map[string]any{"sums": good, "off": map[string]any{"command": "x", "disabled": true}})
	if code, out, errs := runMCP(t, ws, "list"); code != 0 || !strings.Contains(out, "1 tool ") || !strings.Contains(out, "\nsums:\n  mcp__sums__add\n") || errs != "" {
		t.Errorf("%d %q %q", code, out, errs)
	}
	write(map[string]any{"sums": good, "gone": map[string]any{"command": "no-such-program-anywhere"}})
	code, out, _ := runMCP(t, ws, "list", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 1 || len(lines) != 2 || !strings.Contains(lines[0], `"name":"gone","state":"failed"`) || !strings.Contains(lines[1], `"tools":["mcp__sums__add"]`) {
		t.Errorf("%d %q", code, out)
	}
	if code, out, _ := runMCP(t, ws); code != 1 || !strings.Contains(out, "gone: there is no program no-such-program-anywhere") {
		t.Errorf("%d %q", code, out)
	}
}

func TestAWorkspacesServersCountWhenItIsTrusted(t *testing.T) {
	root := t.TempDir()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "settings.json")
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(file, `{"mcpServers":{"mine":{"command":"m","env":{"K":"secret"}},"both":{"command":"user"}}}`)
	put(filepath.Join(ws, ".mcp.json"), `{"mcpServers":{"both":{"command":"file"},"three":{"command":"file"},"theirs":{"url":"http://x"}}}`)
	put(filepath.Join(ws, ".rind", "settings.json"), `{"mcpServers":{"three":{"command":"settings"}}}`)
	names := func() string {
		t.Helper()
		entries, problems, err := serverEntries(file, ws)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, n := range slices.Sorted(maps.Keys(entries)) {
			all = append(all, n+"="+string(entries[n]))
		}
		return strings.Join(append(all, problems...), " ")
	}
	if got := names(); got != `both={"command":"user"} mine={"command":"m","env":{"K":"secret"}}` {
		t.Error("before:", got)
	}
	trust := func() {
		t.Helper()
		content, err := enabledBy(ws)
		if err == nil {
			err = settings.Trust(file, ws, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	trust()
	if got := names(); got != `both={"command":"file"} mine={"command":"m","env":{"K":"secret"}} theirs={"url":"http://x"} three={"command":"settings"}` {
		t.Error("trusted:", got)
	}
	put(filepath.Join(ws, ".mcp.json"), `[]`)
	if got := names(); strings.Contains(got, "settings") {
		t.Error("changed:", got)
	}
	trust()
	if got := names(); !strings.Contains(got, "three=") || !strings.Contains(got, ".mcp.json of the workspace is left out") {
		t.Error("broken:", got)
	}
}
