//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
)

// sdkPackage is the official SDK, with which testdata/agent.mjs is made: an agent nobody here wrote the wire of.
const sdkPackage = "@agentclientprotocol/sdk@2.4.0"

const sdkMark = "RIND_SDK_AGENT_TEST"

// sdkAgent installs the agent and returns what hosts it; the test is skipped where the SDK cannot be had. mark finds its processes.
func sdkAgent(t *testing.T) (args, env []string, mark string) {
	t.Helper()
	node, dir := testkit.Packages(t, sdkPackage)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	script, err := os.ReadFile("testdata/agent.mjs")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "agent.mjs")
	write(t, path, string(script)) // packages are looked for beside it
	check := exec.CommandContext(ctx, node, path)
	check.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n")
	if out, err := check.CombinedOutput(); err != nil || !strings.Contains(string(out), `"protocolVersion":1`) {
		t.Skipf("this node does not run %s: %v: %.300s", sdkPackage, err, out)
	}
	mark = filepath.Base(filepath.Dir(dir))
	return []string{"--agent", fmt.Sprintf("%q %q", node, path), "--pass-env", sdkMark}, []string{sdkMark + "=" + mark}, mark
}

// toldItem is one thing a client was told, whatever the pieces: a message, a call as it stands, a plan.
type toldItem struct{ kind, id, text string }

// tale is what a client was told, in the order in which it began. What the person said is left out: of its own prompts a client is not told.
func tale(t *testing.T, lines []*acpLine) []toldItem {
	t.Helper()
	type callState struct {
		Title, Kind, Status string
		Content, RawInput   json.RawMessage
		RawOutput           json.RawMessage
	}
	calls := map[string]*callState{}
	var all []toldItem
	at := func(kind, id string) *toldItem {
		i := slices.IndexFunc(all, func(x toldItem) bool { return x.kind == kind && x.id == id })
		if i < 0 {
			all = append(all, toldItem{kind: kind, id: id})
			i = len(all) - 1
		}
		return &all[i]
	}
	for _, l := range lines {
		var m struct {
			Params struct {
				Update struct {
					SessionUpdate, MessageID, ToolCallID, Title, Kind, Status string
					Content, RawInput, RawOutput, Entries                     json.RawMessage
				}
			}
		}
		if err := json.Unmarshal([]byte(l.raw), &m); err != nil {
			t.Fatal(err)
		}
		switch u := &m.Params.Update; u.SessionUpdate {
		case "agent_message_chunk", "agent_thought_chunk":
			at(u.SessionUpdate, u.MessageID).text += l.Params.Update.text()
		case "tool_call", "tool_call_update":
			c := calls[u.ToolCallID]
			if c == nil {
				c = &callState{}
				calls[u.ToolCallID] = c
			}
			for _, f := range []struct{ to, from *string }{{&c.Title, &u.Title}, {&c.Kind, &u.Kind}, {&c.Status, &u.Status}} {
				if *f.from != "" {
					*f.to = *f.from
				}
			}
			for _, f := range []struct{ to, from *json.RawMessage }{{&c.Content, &u.Content}, {&c.RawInput, &u.RawInput}, {&c.RawOutput, &u.RawOutput}} {
				if *f.from != nil {
					*f.to = *f.from
				}
			}
			state, _ := json.Marshal(c)
			at("call", u.ToolCallID).text = string(state)
		case "plan":
			all = append(all, toldItem{kind: "plan", text: string(u.Entries)})
		}
	}
	return all
}

func show(all []toldItem) string {
	var b strings.Builder
	for _, x := range all {
		fmt.Fprintf(&b, "%s %s %q\n", x.kind, x.id, x.text)
	}
	return b.String()
}

// endsOf counts the ends of each turn of a session.
func endsOf(t *testing.T, root, ws, id string) (ends map[string]int) {
	t.Helper()
	p := launched(t, root, ws, nil, "sessions", "export", id)
	ends = map[string]int{}
	for _, raw := range p.Rest(acpPatience) {
		var e struct {
			Turn string `json:"turn_id"`
			Kind string
		}
		if json.Unmarshal([]byte(raw), &e) != nil {
			t.Fatalf("%.200s", raw)
		}
		switch e.Kind {
		case "turn_started":
			ends[e.Turn] += 0
		case "turn_completed", "turn_failed", "turn_cancelled":
			ends[e.Turn]++
		}
	}
	if code := p.Wait(acpPatience); code != 0 || len(ends) == 0 {
		t.Fatalf("export: exit code %d, %d turns", code, len(ends))
	}
	return ends
}

// TestAnAgentOfTheOfficialSDKIsHostedAndWhatItSaidIsKeptToTheCharacter drives such an agent through rind as an editor does, and kills each of the two
// in the middle of a turn.
func TestAnAgentOfTheOfficialSDKIsHostedAndWhatItSaidIsKeptToTheCharacter(t *testing.T) {
	args, env, mark := sdkAgent(t)
	opened := func(root, ws string) *editor {
		e := &editor{Process: launched(t, root, ws, env, append([]string{"acp"}, args...)...), t: t}
		e.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}})
		return e
	}
	gone := func() {
		t.Helper()
		if !eventually(20*time.Second, func() bool { return len(processesOf(sdkMark, mark)) == 0 }) {
			t.Errorf("left behind: %+v", processesOf(sdkMark, mark))
		}
	}
	root, ws := dataAndWorkspace(t, `{}`)
	e := opened(root, ws)
	id := e.newSession(ws)
	var told []toldItem

	// A turn with everything, consent given; then one with consent refused.
	for _, turn := range []struct{ option, want string }{{"yes", "It is done."}, {"no", "I left it."}} {
		ask := e.ask("session/prompt", promptOf(id, "change it"))
		permission, before := e.permission()
		if n := len(permission.Params.Options); n != 3 || !strings.Contains(permission.raw, `"type":"diff"`) || !strings.Contains(permission.raw, `"kind":"edit"`) {
			t.Errorf("the dialog does not show what is asked: %s", permission.raw)
		}
		e.choose(permission, turn.option)
		l, after := e.answer(ask)
		if turn.option == "no" && !strings.Contains(after[0].raw+after[1].raw+after[2].raw, "The user rejected this.") {
			t.Errorf("what was refused is not said: %s", after[0].raw)
		}
		if acpStop(l) != "end_turn" || !strings.HasSuffix(acpSaid(after, "agent_message_chunk"), turn.want) {
			t.Fatalf("%s: %s %q", turn.option, l.raw, acpSaid(after, "agent_message_chunk"))
		}
		told = append(told, tale(t, append(before, after...))...)
	}
	if text, err := os.ReadFile(filepath.Join(ws, "config.txt")); err != nil || string(text) != "colour = \"blau\"\n" {
		t.Errorf("%q %v", text, err)
	}
	if _, again := e.load(id, ws); show(tale(t, again)) != show(told) {
		t.Fatalf("loaded\n%s\ntold\n%s", show(tale(t, again)), show(told))
	}

	// The agent is killed in mid-turn: its turn fails with what was said, and the next prompt starts another.
	ask := e.ask("session/prompt", promptOf(id, "slowly"))
	openCall := func() []*acpLine {
		l, before := e.until("an open call", func(l *acpLine) bool { return l.Params.Update.SessionUpdate == "tool_call" })
		return append(before, l)
	}
	before := openCall()
	for _, p := range processesOf(sdkMark, mark) {
		if p.pid != e.PID() {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
	l, after := e.answer(ask)
	if l.Error == nil || l.Error.Code != -32603 || !strings.Contains(l.raw, `"reason":"provider_crashed"`) {
		t.Fatalf("%s", l.raw)
	}
	told = append(told, tale(t, append(before, after...))...)
	_, again := e.load(id, ws)
	failed := tale(t, again)
	last := failed[len(failed)-1]
	if show(failed[:len(failed)-1]) != show(told) || last.kind != "agent_thought_chunk" || !strings.HasPrefix(last.text, "Turn failed: The agent was ended by signal killed") {
		t.Fatalf("loaded\n%s\ntold\n%s", show(failed), show(told))
	}

	// rind is killed in mid-turn: the next process shows what was told, and at most a piece more that was not told any more.
	e.ask("session/prompt", promptOf(id, "slowly"))
	before = openCall()
	e.Kill()
	for _, raw := range e.Rest(acpPatience) {
		if json.Valid([]byte(raw)) { // the last line may be torn
			before = append(before, readACP(t, raw))
		}
	}
	e.Wait(acpPatience)
	cut := tale(t, before)
	e = opened(root, ws)
	answer, again := e.load(id, ws)
	if !strings.Contains(string(answer.Result), `"status":"interrupted"`) {
		t.Errorf("%s", answer.raw)
	}
	loaded := tale(t, again)[len(failed):]
	pieces := len(loaded)
	if n := len(cut); len(loaded) == n+1 && loaded[n].kind == "agent_message_chunk" && len(loaded[n].text) <= 2048 { // that piece began a message
		loaded = loaded[:n]
	}
	if len(loaded) != len(cut) {
		t.Fatalf("loaded\n%s\ntold\n%s", show(loaded), show(cut))
	}
	for i, x := range cut {
		got := loaded[i]
		switch {
		case x.kind == "call":
			if got.id != x.id || !strings.Contains(got.text, `"Status":"failed"`) {
				t.Errorf("call %s is loaded as %s %s", x.id, got.id, got.text)
			}
		case got.kind != x.kind || got.id != x.id || !strings.HasPrefix(got.text, x.text):
			t.Errorf("told %+v, loaded %+v", x, got)
		case len(got.text) > len(x.text)+2048:
			t.Errorf("%d bytes were told, %d are loaded", len(x.text), len(got.text))
		}
	}
	ask = e.ask("session/prompt", promptOf(id, "change it"))
	permission, before := e.permission()
	e.choose(permission, "yes")
	if l, after := e.answer(ask); acpStop(l) != "end_turn" {
		t.Fatalf("%s", l.raw)
	} else {
		before = append(before, after...)
	}
	told = tale(t, append(again, before...)) // what was loaded, and what came then
	if _, again = e.load(id, ws); show(tale(t, again)) != show(told) {
		t.Errorf("loaded\n%s\ntold\n%s", show(tale(t, again)), show(told))
	}
	if end := told[len(failed)+pieces]; end.text != "Turn failed: The runtime stopped before this turn finished." {
		t.Errorf("%+v", end)
	}
	e.leave()
	gone()
	ends := endsOf(t, root, ws, id)
	if len(ends) != 5 {
		t.Errorf("%d turns", len(ends))
	}
	for turn, n := range ends {
		if n != 1 {
			t.Errorf("turn %s has %d ends", turn, n)
		}
	}
}
