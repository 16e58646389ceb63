//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
)

const hostedScript = `{"turns":[
	{"match":"mark","steps":[{"text":"I will leave a mark. "},{"call":{"id":"c1","name":"bash","arguments":{"command":"echo ran >> marks.txt"}}},
		{"finish":"tool_calls"},{"text":"The mark is made."}]},
	{"match":"slow","steps":[{"text":"This is said so slowly that it can be cut anywhere at all.","chunk":4,"delayMs":60},{"hang":true}]},
	{"steps":[{"repeat":{"times":20,"steps":[{"text":"Fine, that is done.","chunk":6},{"finish":"stop"}]}}]}]}`

// inside makes the command line of a rind that another one hosts, with a data folder of its own; its model is a script.
func inside(t *testing.T) (line string, args []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.json")
	write(t, path, hostedScript)
	root, _ := dataAndWorkspace(t, fmt.Sprintf(`{"provider":"play","providers":{"play":{"type":"script","model":"scripted","script":%q}}}`, path))
	program, _ := program(t)
	return fmt.Sprintf("%q acp --data %q", program, root), []string{"--pass-env", "RIND_TEST_CHILD"}
}

// updates are the updates of a replay without what differs between processes.
func updates(lines []*acpLine) string {
	var out []string
	for _, l := range lines {
		switch u := &l.Params.Update; u.SessionUpdate {
		case "", "available_commands_update", "usage_update":
		default:
			raw, _ := json.Marshal(u)
			out = append(out, string(raw))
		}
	}
	return strings.Join(out, "\n")
}

// childOf is the process a process started.
func childOf(t *testing.T, pid int) int {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, task := range glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) {
			data, _ := os.ReadFile(task)
			var child int
			if _, err := fmt.Sscan(string(data), &child); err == nil {
				return child
			}
		}
	}
	t.Skip("this system does not tell children")
	return 0
}

func glob(pattern string) []string {
	found, _ := filepath.Glob(pattern)
	return found
}

func TestAHostedAgentsSessionOutlivesTheEndOfBothProcesses(t *testing.T) {
	line, more := inside(t)
	root, ws := dataAndWorkspace(t, `{}`)
	args := append([]string{"--agent", line}, more...)
	e := openEditor(t, root, ws, args...)
	id := e.newSession(ws)
	ask := e.ask("session/prompt", promptOf(id, "leave a mark"))
	asked, _ := e.permission()
	e.choose(asked, "allow_once")
	if l, _ := e.answer(ask); acpStop(l) != "end_turn" {
		t.Fatalf("%s", l.raw)
	}
	if marks(t, ws) != 1 {
		t.Error("the command of the hosted agent did not run")
	}

	// The child is killed in mid-turn: the turn fails, the session goes on with a new child.
	ask = e.ask("session/prompt", promptOf(id, "slow"))
	e.until("the first words", func(l *acpLine) bool { return l.Params.Update.SessionUpdate == "agent_message_chunk" })
	if err := syscall.Kill(childOf(t, e.PID()), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if l, _ := e.answer(ask); l.Error == nil || l.Error.Code != -32603 || !strings.Contains(l.raw, `"reason":"provider_crashed"`) {
		t.Fatalf("%s", l.raw)
	}
	if l, _ := e.call("session/prompt", promptOf(id, "go on")); acpStop(l) != "end_turn" {
		t.Fatalf("%s", l.raw)
	}

	// The host is killed in mid-turn: the next one shows exactly what was, and goes on.
	e.ask("session/prompt", promptOf(id, "slow"))
	_, said := e.until("some words", func(l *acpLine) bool { return strings.Contains(l.Params.Update.text(), "slow") })
	words := acpSaid(said, "agent_message_chunk")
	child := childOf(t, e.PID())
	e.Kill()
	e.Wait(acpPatience)
	e = openEditor(t, root, ws, args...)
	_, first := e.load(id, ws)
	if !strings.Contains(acpSaid(first, "agent_message_chunk"), words) || !strings.Contains(acpSaid(first, "agent_message_chunk"), "The mark is made.") {
		t.Errorf("what was told is lost: %q of %q", words, acpSaid(first, "agent_message_chunk"))
	}
	_, second := e.load(id, ws)
	if updates(first) != updates(second) {
		t.Errorf("two loads differ:\n%s\n\n%s", updates(first), updates(second))
	}
	if l, _ := e.answer(e.ask("_rind/session/continue", map[string]any{"sessionId": id})); l.Error == nil || l.Error.Code != -32052 {
		t.Errorf("continue: %s", l.raw)
	}
	if l, _ := e.call("session/prompt", promptOf(id, "go on")); acpStop(l) != "end_turn" {
		t.Fatalf("%s", l.raw)
	}
	if marks(t, ws) != 1 {
		t.Error("the command ran again")
	}
	testkit.Eventually(t, "the child of the killed host ends", func() bool { return syscall.Kill(child, 0) != nil })
	last := childOf(t, e.PID())
	e.leave()
	if syscall.Kill(last, 0) == nil {
		t.Error("the child is left after a clean end")
	}
}

func TestAProviderOfTypeACPAnswersEverySurface(t *testing.T) {
	root, ws := hostingRind(t)
	p := launched(t, root, ws, nil, "prompt", "--json", "hello")
	p.CloseStdin()
	told := strings.Join(p.Rest(acpPatience), "\n")
	if code := p.Wait(acpPatience); code != exitOK || !strings.Contains(told, "Fine, that is done.") {
		t.Fatalf("prompt: exit %d\n%s\n%s", code, told, p.Stderr())
	}

	e := openEditor(t, root, ws)
	l, _ := e.call("session/new", map[string]any{"cwd": ws, "mcpServers": []any{}})
	if !strings.Contains(l.raw, `"currentValue":"other/default"`) {
		t.Errorf("%s", l.raw)
	}
	var r struct{ SessionID string }
	_ = json.Unmarshal(l.Result, &r)
	if l, before := e.call("session/prompt", promptOf(r.SessionID, "hello")); acpStop(l) != "end_turn" || acpSaid(before, "agent_message_chunk") != "Fine, that is done." {
		t.Errorf("%s", l.raw)
	}
	e.leave()

	w := &watching{Process: launched(t, root, ws, nil, "app-server"), t: t}
	w.call("initialize", map[string]any{"client_capabilities": []string{"rind/approvals"}})
	var made struct {
		ID string `json:"session_id"`
	}
	if err := json.Unmarshal(w.call("session/create", map[string]any{"workspace_root": ws}).Result, &made); err != nil {
		t.Fatal(err)
	}
	got := w.call("session/prompt", map[string]any{"session_id": made.ID, "input": "hello"})
	if !strings.Contains(string(got.Result), `"outcome":"completed"`) {
		t.Errorf("%s", got.Result)
	}

	// The portable commands on the same lines: the prompt is an execution of the agent's, and further ones can be started.
	var conv struct {
		Conversation struct{ ID string }
	}
	_ = json.Unmarshal(w.call("rind/conversation/create", map[string]any{}).Result, &conv)
	var x struct{ ID string }
	_ = json.Unmarshal(w.call("rind/execution/start", map[string]any{"conversationId": conv.Conversation.ID, "providerId": "acp.other", "input": "hello"}).Result, &x)
	for end := time.Now().Add(acpPatience); ; time.Sleep(10 * time.Millisecond) {
		events := string(w.call("rind/execution/events", map[string]any{"execution_id": x.ID}).Result)
		if strings.Contains(events, `"finalOutput":"Fine, that is done."`) || strings.Contains(events, `"text":"Fine, that is done."`) {
			break
		}
		if time.Now().After(end) || strings.Contains(events, "run.failed") {
			t.Fatalf("%s", events)
		}
	}
	var turn struct {
		ID string `json:"turn_id"`
	}
	_ = json.Unmarshal(got.Result, &turn)
	if own := w.call("rind/execution/read", map[string]any{"execution_id": "exec_" + turn.ID}); !strings.Contains(string(own.Result), `"providerId":"acp.other"`) {
		t.Errorf("%s", own.Result)
	}
}

func TestAgentFlagsThatCannotBeUsedAreUsage(t *testing.T) {
	root, ws := dataAndWorkspace(t, `{}`)
	for _, args := range [][]string{{"--agent", ""}, {"--agent", `a "b`}, {"--pass-env", "X"}, {"--agent", "x", "--pass-env", "A=b"}} {
		p := launched(t, root, ws, nil, append([]string{"acp"}, args...)...)
		if code := p.Wait(acpPatience); code != exitUsage || !strings.HasPrefix(p.Stderr(), "usage: rind acp [--agent") {
			t.Errorf("%q: exit %d %s", args, code, p.Stderr())
		}
	}
}

func TestTheServersOfASessionAreThoseOfItsHostedAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script.json")
	write(t, path, `{"turns":[{"match":"settings","steps":[{"call":{"name":"mcp__sums__add","arguments":{"a":1}}},{"finish":"tool_calls"},{"text":"Done."}]},
		{"match":"editor","steps":[{"call":{"name":"mcp__own__add","arguments":{"a":1}}},{"finish":"tool_calls"},{"text":"Done."}]}]}`)
	inner, _ := dataAndWorkspace(t, fmt.Sprintf(`{"provider":"play","providers":{"play":{"type":"script","model":"scripted","script":%q}}}`, path))
	program, _ := program(t)
	root, ws := dataAndWorkspace(t, fmt.Sprintf(`{"mcpServers":{"sums":{"url":%q,"headers":{"Authorization":"Bearer ${SUMS_TOKEN}"}}}}`, oneTool(t)))
	e := &editor{Process: launched(t, root, ws, []string{"SUMS_TOKEN=sesame-sesame"}, "acp", "--agent", fmt.Sprintf("%q acp --data %q", program, inner), "--pass-env", "RIND_TEST_CHILD"), t: t}
	e.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}})
	id := e.sessionWith(ws, map[string]any{"type": "http", "name": "own", "url": oneTool(t), "headers": []any{}})
	for _, input := range []string{"settings", "editor"} {
		ask := e.ask("session/prompt", promptOf(id, input))
		asked, _ := e.permission()
		e.choose(asked, "allow_once")
		done, told := e.answer(ask)
		if acpStop(done) != "end_turn" || !strings.Contains(raws(told), "the sum") {
			t.Errorf("%s: %s\n%s", input, done.raw, raws(told))
		}
	}
	e.leave()
	for _, dir := range []string{root, inner} {
		for _, name := range append(glob(filepath.Join(dir, "logs", "*")), glob(filepath.Join(dir, "sessions", "*"))...) {
			if data, _ := os.ReadFile(name); strings.Contains(string(data), "sesame-sesame") {
				t.Errorf("what a header held is in %s", name)
			}
		}
	}
}
