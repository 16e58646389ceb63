package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/internal/testkit"
)

// sessionWith makes a session whose servers the editor names.
func (e *editor) sessionWith(cwd string, servers ...any) string {
	e.t.Helper()
	l, _ := e.call("session/new", map[string]any{"cwd": cwd, "mcpServers": servers})
	var r struct{ SessionID string }
	if json.Unmarshal(l.Result, &r) != nil || r.SessionID == "" {
		e.t.Fatalf("session/new: %s", l.raw)
	}
	return r.SessionID
}

// openNoticing is openEditor of an editor that shows notices.
func openNoticing(t *testing.T, root, ws string) *editor {
	t.Helper()
	e := &editor{Process: launched(t, root, ws, nil, "acp"), t: t}
	e.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{"session": map[string]any{"notices": map[string]any{}}}})
	return e
}

func TestAnEditorsServerIsCalledWithConsentAndADeadOneIsSaid(t *testing.T) {
	root, ws := playing(t, `{"turns":[{"steps":[{"call":{"name":"mcp__sums__add","arguments":{"a":1}}}]},{"steps":[{"text":"Done."}]}]}`)
	e := openNoticing(t, root, ws)
	id := e.sessionWith(
		ws, map[string]any{"type": "http", "name": "sums", "url": oneTool(t), "headers": []any{map[string]any{"name": "X-Thing", "value": "plain-canary"}}},
		map[string]any{"name": "dead", "command": "no-such-program-anywhere", "args": []any{}, "env": []any{map[string]any{"name": "K", "value": "plain-canary"}}},
	)
	ask := e.ask("session/prompt", promptOf(id, "add"))
	asked, before := e.permission()
	var notices []string
	for _, l := range before {
		if l.Params.Update.SessionUpdate == "notice" {
			notices = append(notices, l.Params.Update.Title)
		}
	}
	if len(notices) != 1 || !strings.Contains(notices[0], "The MCP server dead is down, its tools are missing: there is no program no-such-program-anywhere") {
		t.Errorf("%q", notices)
	}
	e.choose(asked, "allow_once")
	done, told := e.answer(ask)
	if acpStop(done) != "end_turn" || acpSaid(told, "agent_message_chunk") != "Done." {
		t.Errorf("%s", done.raw)
	}
	found := false
	for _, l := range told {
		found = found || l.Params.Update.Status == "completed" && strings.Contains(l.raw, "the sum")
	}
	if !found {
		t.Error("the server's answer was not told")
	}
	other := e.newSession(ws)
	ask = e.ask("session/prompt", promptOf(other, "add"))
	done, told = e.answer(ask)
	if acpStop(done) != "end_turn" || !strings.Contains(raws(told), "There is no tool") {
		t.Errorf("another session has the server: %s", raws(told))
	}
	e.call("session/close", map[string]any{"sessionId": id})
	e.leave()
	log, _ := os.ReadFile(filepath.Join(root, "logs", "rind.log"))
	if strings.Contains(string(log)+e.Stderr(), "canary") || !strings.Contains(string(log), "mcp server is connected") {
		t.Errorf("the log: %s", log)
	}
}

func raws(lines []*acpLine) string {
	var all []string
	for _, l := range lines {
		all = append(all, l.raw)
	}
	return strings.Join(all, "\n")
}

// TestAReferenceServerNamedByAnEditorWorks runs a server that others wrote.
func TestAReferenceServerNamedByAnEditorWorks(t *testing.T) {
	node, dir := testkit.Packages(t, "@modelcontextprotocol/server-everything@2026.8.31")
	root, ws := playing(t, `{"turns":[{"steps":[{"call":{"name":"mcp__everything__echo","arguments":{"message":"h\u00ef"}}}]},{"steps":[{"text":"Done."}]}]}`)
	e := openNoticing(t, root, ws)
	id := e.sessionWith(ws, map[string]any{
		"name": "everything", "command": node, "args": []any{filepath.Join(dir, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js"), "stdio"}, "env": []any{},
	})
	ask := e.ask("session/prompt", promptOf(id, "echo"))
	asked, _ := e.permission()
	e.choose(asked, "allow_once")
	done, told := e.answer(ask)
	if acpStop(done) != "end_turn" || !strings.Contains(raws(told), "Echo: hï") {
		t.Errorf("%s\n%s", done.raw, raws(told))
	}
	e.leave()
}

func TestServersThatSettingsNameMeanwhileAreThereInTheNextTurn(t *testing.T) {
	root, ws := playing(t, `{"turns":[{"steps":[{"call":{"name":"mcp__sums__add","arguments":{}}}]},{"steps":[{"text":"Done."}]}]}`)
	e := openEditor(t, root, ws)
	id := e.newSession(ws)
	if _, told := e.call("session/prompt", promptOf(id, "add")); !strings.Contains(raws(told), "There is no tool") {
		t.Fatalf("%s", raws(told))
	}
	path := filepath.Join(root, "settings.json")
	data, err := os.ReadFile(path)
	var set map[string]any
	if err != nil || json.Unmarshal(data, &set) != nil {
		t.Fatal(err)
	}
	set["mcpServers"] = map[string]any{"sums": map[string]any{"url": oneTool(t)}}
	text, _ := json.Marshal(set)
	write(t, path, string(text))
	id = e.newSession(ws)
	ask := e.ask("session/prompt", promptOf(id, "add"))
	asked, _ := e.permission()
	e.choose(asked, "allow_once")
	if _, told := e.answer(ask); !strings.Contains(raws(told), "the sum") {
		t.Errorf("%s", raws(told))
	}
	e.leave()
}

func TestAServerThatIsDownIsSaidAtTheTerminalAndAsAnEvent(t *testing.T) {
	root, ws := dataAndWorkspace(t, `{"provider":"demo","providers":{"demo":{"type":"demo","model":"demo"}},"mcpServers":{"dead":{"command":"no-such-program-anywhere"}}}`)
	const want = "The MCP server dead is down, its tools are missing: there is no program no-such-program-anywhere; install it or correct command."
	p := launched(t, root, ws, nil, "prompt", "hello")
	p.CloseStdin()
	p.Rest(acpPatience)
	if code := p.Wait(acpPatience); code != exitOK || strings.Count(p.Stderr(), want) != 1 {
		t.Errorf("%d: %s", code, p.Stderr())
	}
	p = launched(t, root, ws, nil, "prompt", "--json", "hello")
	p.CloseStdin()
	out := strings.Join(p.Rest(acpPatience), "\n")
	if code := p.Wait(acpPatience); code != exitOK || !strings.Contains(out, `"type":"notice"`) || !strings.Contains(out, `"severity":"warning","title":"`+want+`"`) {
		t.Errorf("%d: %s %s", code, out, p.Stderr())
	}
}
