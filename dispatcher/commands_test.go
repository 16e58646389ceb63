package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// rulebook is a Policy that only remembers.
type rulebook struct{ rules []session.Rule }

func (*rulebook) Judge(context.Context, string, session.ToolSpec, session.ToolCall) (session.Verdict, error) {
	return session.Verdict{Effect: "allow"}, nil
}
func (*rulebook) Remember(context.Context, string, json.RawMessage, bool) error { return nil }
func (b *rulebook) Rules(context.Context, string) ([]session.Rule, error)       { return b.rules, nil }

func (b *rulebook) Revoke(_ context.Context, _ string, id int64) (bool, error) {
	for i, r := range b.rules {
		if r.ID == id {
			b.rules = append(b.rules[:i:i], b.rules[i+1:]...)
			return true, nil
		}
	}
	return false, nil
}

// undoer puts back one file, whatever it is asked for.
type undoer struct{ asked []session.TurnID }

func (u *undoer) Undo(_ context.Context, _ session.SessionID, turn session.TurnID) (session.Undone, error) {
	u.asked = append(u.asked, turn)
	if turn == "nope" {
		return session.Undone{}, protocol.Errorf(protocol.NotFound, "Turn not found: nope")
	}
	return session.Undone{Turn: "t1", Files: []session.FileUndo{{Path: "a.go", Status: session.FileRestored}, {Path: "b.go", Status: session.FileChangedSince}}}, nil
}

func (*undoer) Diff(context.Context, session.SessionID, session.TurnID) (session.TurnID, []session.FileDiff, error) {
	return "", nil, nil
}

// shelf is a Guide with one document and one skill.
type shelf struct{}

func (shelf) Parts(string) []session.GuidePart {
	return []session.GuidePart{{Key: "project_doc", Label: "Project document", Text: "x", Path: "/w/RIND.md", Scope: "project", Truncated: true}}
}

func (shelf) Skills(string) []session.Skill {
	return []session.Skill{{Name: "deploy", Scope: "user", Description: "how to deploy", Path: "/d/SKILL.md", Text: "secret steps"}}
}
func (shelf) Skill(string, string) (session.Skill, bool) { return session.Skill{}, false }

func TestCommandsOnTheWorkspace(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		rules := &rulebook{[]session.Rule{{ID: 4, Tool: "bash", Pattern: "git commit *", Allow: true, Created: at}, {ID: 9, Tool: "bash", Pattern: "rm *", Created: at}}}
		undo := &undoer{}
		p := launch(t, peers.NewWorld(), "a", `[{"text":"ok"}]`, "")
		var trust error
		p.d = dispatcher.New(dispatcher.Config{
			Sessions: p.All, Workspace: "/w", Version: "0.0.0", Policy: rules, Undo: undo, Guide: shelf{}, DataRoot: "/home/u/.rind", Sandbox: "no sandbox",
			Trust: func(string) ([]string, error) { return []string{".rind/settings.json"}, trust },
		})
		c := p.connect(env)
		c.hello()
		for _, row := range []struct{ input, want string }{
			{"/permissions", `{"text":"4. allow bash: git commit *\n9. deny bash: rm *","display":{"type":"permissions","rules":[{"id":4,"tool":"bash","pattern":"git commit *","effect":"allow","created_at":"2026-01-02T03:04:05.000000+00:00"},{"id":9,"tool":"bash","pattern":"rm *","effect":"deny","created_at":"2026-01-02T03:04:05.000000+00:00"}]}}`},
			{"/permissions revoke 5", `{"text":"There is no rule 5 in this workspace. /permissions lists them."}`},
			{"/permissions revoke 4", `{"text":"Rule 4 is forgotten.\n9. deny bash: rm *","display":{"type":"permissions","rules":[{"id":9,"tool":"bash","pattern":"rm *","effect":"deny","created_at":"2026-01-02T03:04:05.000000+00:00"}]}}`},
			{"/permissions revoke 9", `{"text":"Rule 9 is forgotten.\nNo rules are remembered for this workspace.","display":{"type":"permissions","rules":[]}}`},
			{"/permissions revoke x", `{"text":"Usage: /permissions [revoke <n>]"}`},
			{"/permissions forget", `{"text":"Usage: /permissions [revoke <n>]"}`},
			{"/trust", `{"text":"Trusted: /w\nThis enables:\n- .rind/settings.json","display":{"type":"trust","workspace_root":"/w","trusted":true,"files":[".rind/settings.json"]}}`},
			{"/trust me", `{"text":"Usage: /trust"}`},
			{"/undo", `{"text":"Nothing to undo.","display":{"type":"undo","turn_id":"","files":[]}}`}, // a draft
			{"/undo a b", `{"text":"Usage: /undo [turn_id]"}`},
			{"/skill", `{"text":"deploy (user)  how to deploy","display":{"type":"skills","skills":[{"name":"deploy","scope":"user","description":"how to deploy","path":"/d/SKILL.md"}]}}`},
			{"/skill list", `{"text":"deploy (user)  how to deploy","display":{"type":"skills","skills":[{"name":"deploy","scope":"user","description":"how to deploy","path":"/d/SKILL.md"}]}}`},
			{"/skill deploy", `{"text":"Usage: /skill [list]"}`},
			{" /skill:deploy  to prod", `{"text":"","next_prompt":{"input":" /skill:deploy  to prod"}}`},
			{"/init everything", `{"text":"Usage: /init [project|user]"}`},
			{"/model set a\u00a0b", `{"text":"Command failed: Model name must be 1 to 128 characters without spaces."}`},
			{"/model set 'a\nb'", `{"text":"Command failed: Model name must be 1 to 128 characters without spaces."}`},
			{"/model set ''", `{"text":"Command failed: Model name must be 1 to 128 characters without spaces."}`},
			{"/model set " + strings.Repeat("é", 129), `{"text":"Command failed: Model name must be 1 to 128 characters without spaces."}`},
			{"/" + strings.Repeat("x", 1<<20), `{"text":"Unknown command: /` + strings.Repeat("x", 200) + `\nRun /help to see available commands."}`},
			{"/help /nope", `{"text":"Unknown command: /nope\nRun /help to see available commands."}`},
			{"/help 'open", `{"text":"Command failed: No closing quotation"}`},
		} {
			if got := string(c.call("rind/command/execute", `{"input":`+quoted(row.input)+`}`).result); got != row.want {
				t.Errorf("%s:\n got %s\nwant %s", row.input, got, row.want)
			}
		}
		long := strings.Repeat("é", 200)
		if got := c.call("session/create", `{"name":"  `+long+`é "}`); !strings.Contains(string(got.result), `"title":"`+long+`"`) {
			t.Errorf("a long name of a new session: %s", got.raw)
		}
		if got := string(c.call("rind/command/execute", `{"input":"/rename `+long+`é"}`).result); !strings.Contains(got, `"title":"`+long+`"`) {
			t.Errorf("a long name of a session: %s", got)
		}
		for scope, path := range map[string]string{"project": "/w/RIND.md", "user": "/home/u/.rind/RIND.md"} {
			var res rindv2.CommandResult
			if err := json.Unmarshal(c.call("rind/command/execute", `{"input":"/init `+scope+`"}`).result, &res); err != nil {
				t.Fatal(err)
			}
			if res.Text != "Initializing "+scope+" RIND.md: "+path || res.NextPrompt.Input != "Initialize "+scope+" RIND.md at "+path ||
				len(res.NextPrompt.Transient) != 1 || res.NextPrompt.Transient[0].Kind != "rind_init" || res.NextPrompt.Transient[0].Role != "system" {
				t.Errorf("/init %s: %+v", scope, res)
			}
		}
		trust = errors.New("the settings file cannot be written: disk full\nmore")
		if got := string(c.call("rind/command/execute", `{"input":"/trust"}`).result); got != `{"text":"Command failed: the settings file cannot be written: disk full"}` {
			t.Errorf("/trust that fails: %s", got)
		}
		var status struct {
			Display struct {
				Entries []struct{ Label, Value, State string }
			}
		}
		if err := json.Unmarshal(c.call("rind/command/execute", `{"input":"/status"}`).result, &status); err != nil {
			t.Fatal(err)
		}
		seen := map[string]string{}
		for _, e := range status.Display.Entries {
			seen[e.Label] = e.Value + " " + e.State
		}
		if seen["sandbox"] != "no sandbox " || seen["Project document"] != "/w/RIND.md truncated" || seen["approvalMode"] != "ask " {
			t.Errorf("/status shows %v", seen)
		}
		p.end()
	})
}

func TestUndoIsAskedForASavedSessionAndRefusedDuringATurn(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		undo := &undoer{}
		p := launch(t, peers.NewWorld(), "a", `{"turns":[{"match":"stay","steps":[{"hang":true}]},{"steps":[{"text":"ok"}]}]}`, "")
		p.d = dispatcher.New(dispatcher.Config{Sessions: p.All, Workspace: "/w", Version: "0.0.0", Undo: undo})
		c := p.connect(env)
		c.hello()
		c.call("session/prompt", `{"input":"hi"}`)
		for input, want := range map[string]string{
			"/undo":      `{"text":"Undo of turn t1:\n- a.go  restored\n- b.go  left alone: changed since","display":{"type":"undo","turn_id":"t1","files":[{"path":"a.go","status":"restored"},{"path":"b.go","status":"changed_since"}]}}`,
			"/undo nope": `{"text":"Command failed: Turn not found: nope"}`,
		} {
			if got := string(c.call("rind/command/execute", `{"input":"`+input+`"}`).result); got != want {
				t.Errorf("%s:\n got %s\nwant %s", input, got, want)
			}
		}
		asked := len(undo.asked)
		id := c.send("session/prompt", `{"input":"stay"}`)
		c.event("turn_started")
		c.settle()
		if got := string(c.call("rind/command/execute", `{"input":"/undo"}`).result); got != `{"text":"Cannot undo while a turn is running. Wait for it to finish or interrupt it first."}` {
			t.Errorf("/undo during a turn: %s", got)
		}
		if len(undo.asked) != asked {
			t.Error("it undid during a turn")
		}
		c.call("session/cancel", `{}`)
		c.response(id)
		p.end()
	})
}

func TestCommandsDuringATurnSayWhatTheyDoToItAndWhatTheyDoNot(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "a", `{"turns":[{"match":"stay","steps":[{"text":"part"},{"hang":true}]},{"steps":[{"repeat":{"times":9,"steps":[{"text":"ok"},{"finish":"stop"}]}}]}]}`, "")
		c := p.connect(env)
		c.hello()
		says := func(input, want string) {
			t.Helper()
			if got := c.call("rind/command/execute", `{"input":`+quoted(input)+`}`).text("text"); got != want {
				t.Errorf("%s:\n got %q\nwant %q", input, got, want)
			}
		}
		says("/compact", "Command failed: Not enough messages to compact. Send a message first.")
		says("/skill", "No skills found.")
		c.call("rind/goal/set", `{"objective":"aim"}`)
		c.call("rind/goal/status", `{"status":"paused"}`)
		id := c.send("session/prompt", `{"input":"stay"}`)
		c.event("assistant_delta")
		says("/compact", "Cannot compact while a turn is running. Wait for it to finish or interrupt it first.")
		c.refused("rind/session/compact", `{}`, "TurnActive", "Cannot compact context while a turn is active.")
		c.refused("rind/goal/set", `{"objective":"other"}`, "TurnActive", "Cannot replace a goal while a turn is active.")
		says("/model set m-2", "Session model updated.\n- session model: m-2\n- default model: m-1 (unchanged)\n- active turn: unchanged; the new model applies to the next turn")
		says("/rename during", "Session renamed: during")
		before := len(c.settle())
		c.call("rind/goal/clear", `{}`)
		if l := c.response(id); l.text("outcome") != "cancelled" {
			t.Errorf("the prompt ended with %s", l.raw)
		}
		if lines := c.settle()[before:]; place(lines, func(l *line) bool { return l.has("turn_cancelled") && l.text("reason") == "Goal cleared" }) < 0 ||
			place(lines, func(l *line) bool { return l.has("turn_started") }) >= 0 {
			t.Errorf("the goal was cleared:\n%s", c.dump())
		}
		c.call("session/prompt", `{"input":"go on"}`)
		got := c.call("rind/command/execute", `{"input":"/compact"}`).text("text")
		var e struct{ Record protocol.Compaction }
		if err := json.Unmarshal(c.event("context_compacted").event, &e); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("Compact complete.\n- id: %s\n- source: messages[1:%d]\n- tool calls: 0", e.Record.ID, e.Record.Source.MessageEndIndexExclusive); got != want {
			t.Errorf("/compact says %q, want %q", got, want)
		}
		says("/compact", "Command failed: Not enough messages to compact. Send a message first.")
		p.end()
	})
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
