//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// hostingRind makes a data folder whose provider "other" is another rind, and a workspace.
func hostingRind(t *testing.T) (root, ws string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.json")
	write(t, path, hostedScript)
	inner, _ := dataAndWorkspace(t, fmt.Sprintf(`{"provider":"play","providers":{"play":{"type":"script","model":"scripted","script":%q}}}`, path))
	program, _ := program(t)
	return dataAndWorkspace(t, fmt.Sprintf(
		`{"provider":"other","providers":{"other":{"type":"acp","command":%q,"args":["acp","--data",%q],"env":{"RIND_TEST_CHILD":"1"}},"gone":{"type":"acp","command":"no-such-agent"}}}`, program, inner))
}

// said runs a command and returns its output.
func said(t *testing.T, root, ws string, args ...string) string {
	t.Helper()
	p := launched(t, root, ws, nil, args...)
	p.CloseStdin()
	text := strings.Join(p.Rest(acpPatience), "\n")
	p.Wait(acpPatience)
	return text
}

func TestWhatAHostedAgentCanDoIsToldWithoutStartingIt(t *testing.T) {
	root, ws := hostingRind(t)
	for _, command := range []string{"doctor", "models"} {
		if text := said(t, root, ws, command); !strings.Contains(text, "other has not run yet") {
			t.Errorf("%s: %s", command, text)
		}
	}
	if text := said(t, root, ws, "doctor"); !strings.Contains(text, "gone: there is no program no-such-agent") {
		t.Errorf("%s", text)
	}
	e := openEditor(t, root, ws)
	id := e.newSession(ws)
	e.call("session/prompt", promptOf(id, "hello"))
	if _, before := e.call("session/prompt", promptOf(id, "/status")); !strings.Contains(acpSaid(before, "agent_message_chunk"), "\nAgent: Rind ") {
		t.Errorf("%q", acpSaid(before, "agent_message_chunk"))
	}
	e.leave()

	// Other processes know it now, and none of them starts it.
	for _, command := range []string{"doctor", "models"} {
		if text := said(t, root, ws, command); !strings.Contains(text, " as other, seen ") || !strings.Contains(text, "steer, streaming") {
			t.Errorf("%s: %s", command, text)
		}
	}
	if text := said(t, root, ws, "models", "--json"); !strings.Contains(text, `"id":"play/scripted"`) || !strings.Contains(text, `"steer":"native"`) {
		t.Errorf("%s", text)
	}
	w := &watching{Process: launched(t, root, ws, nil, "app-server"), t: t}
	w.call("initialize", map[string]any{})
	var made struct {
		ID string `json:"session_id"`
	}
	_ = json.Unmarshal(w.call("session/create", map[string]any{"workspace_root": ws}).Result, &made)
	if got := w.call("rind/command/execute", map[string]any{"session_id": made.ID, "input": "/status"}); !strings.Contains(string(got.Result), `{"label":"agent","value":"Rind `) {
		t.Errorf("%s", got.Result)
	}
	if n := childrenOf(w.PID()); n != 0 {
		t.Errorf("%d processes were started", n)
	}
}

func TestTheAgentsOwnCompactIsWhatCompactsItsSession(t *testing.T) {
	root, ws := hostingRind(t)
	e := openEditor(t, root, ws)
	id := e.newSession(ws)
	_, before := e.call("session/prompt", promptOf(id, "hello"))
	offered := 0
	for _, l := range before {
		if strings.Contains(l.raw, "available_commands_update") {
			offered += strings.Count(l.raw, `"name":"compact"`)
		}
	}
	if offered != 1 { // ours is not told; the agent's is
		t.Errorf("compact is offered %d times", offered)
	}
	if _, before = e.call("session/prompt", promptOf(id, "/compact")); acpSaid(before, "agent_thought_chunk") != "The conversation was summarised to make room.\n" || !strings.Contains(acpSaid(before, "agent_message_chunk"), "is a summary") {
		t.Errorf("%q %q", acpSaid(before, "agent_thought_chunk"), acpSaid(before, "agent_message_chunk"))
	}
	e.leave()

	// In a process where the agent does not run yet it is still the agent's: the client is asked to send it as a prompt.
	w := &watching{Process: launched(t, root, ws, nil, "app-server"), t: t}
	w.call("initialize", map[string]any{})
	w.call("session/switch", map[string]any{"session_id": id})
	if got := w.call("rind/command/execute", map[string]any{"session_id": id, "input": "/compact"}); !strings.Contains(string(got.Result), `"next_prompt":{"input":"/compact"}`) {
		t.Errorf("%s", got.Result)
	}
}

func TestSteeringGoesThroughToAHostedRind(t *testing.T) {
	root, ws := hostingRind(t)
	e := openEditor(t, root, ws)
	id := e.newSession(ws)
	ask := e.ask("session/prompt", promptOf(id, "leave a mark"))
	permission, _ := e.permission()
	steered, _ := e.call("_rind/session/steer", map[string]any{"sessionId": id, "prompt": []any{map[string]any{"type": "text", "text": "look here"}}})
	var in struct{ InputID, Mode string }
	if err := json.Unmarshal(steered.Result, &in); err != nil || in.Mode != "steering" {
		t.Fatalf("%s", steered.raw)
	}
	e.choose(permission, "allow_once")
	l, before := e.answer(ask)
	if acpStop(l) != "end_turn" {
		t.Fatalf("%s", l.raw)
	}
	var order []string
	for _, l := range before {
		switch u := &l.Params.Update; {
		case u.SessionUpdate == "user_message_chunk" && u.text() == "look here" && strings.Contains(l.raw, `"messageId":"`+in.InputID+`"`):
			order = append(order, "input")
		case u.SessionUpdate == "tool_call_update" && u.Status == "completed":
			order = append(order, "result")
		case u.SessionUpdate == "agent_message_chunk" && strings.Contains(u.text(), "Fine"):
			order = append(order, "answer")
		}
	}
	if got := strings.Join(order, " "); got != "result input answer" { // behind the batch of calls, before the next words
		t.Errorf("%s", got)
	}
	e.leave()
}
