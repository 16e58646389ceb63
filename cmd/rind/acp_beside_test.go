//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rind-dev/rind/internal/testkit"
)

// Two editors have one session open, each with a process of its own. The one that did not prompt is told the turn as it runs, is asked as well and
// may answer; it can neither prompt into the turn nor cancel it, and goes on with the session once the other is idle.
func TestTwoACPProcessesShareASession(t *testing.T) {
	t.Parallel()
	root, ws := playing(t, askingScript)
	a, b := openEditor(t, root, ws), openEditor(t, root, ws)
	id := a.newSession(ws)
	asked := a.ask("session/prompt", promptOf(id, "work"))
	first, _ := a.until("the first piece of text", func(l *acpLine) bool { return l.Params.Update.SessionUpdate == "agent_message_chunk" })

	_, history := b.load(id, ws)
	if said := acpSaid(history, "user_message_chunk"); said != "work" {
		t.Errorf("the prompt was told as %q", said)
	}
	askedB, live := b.permission()
	askedA, before := a.permission()
	if acpSaid(append(history, live...), "agent_message_chunk") != askedSaid || acpSaid(append([]*acpLine{first}, before...), "agent_message_chunk") != askedSaid {
		t.Errorf("told\n%q and then\n%q there, and here\n%q", acpSaid(history, "agent_message_chunk"), acpSaid(live, "agent_message_chunk"), acpSaid(before, "agent_message_chunk"))
	}
	if askedA.Params.ToolCall.ToolCallID != askedB.Params.ToolCall.ToolCallID || !slices.Equal(askedA.Params.Options, askedB.Params.Options) {
		t.Errorf("asked differently:\n%s\n%s", askedA.raw, askedB.raw)
	}
	for method, params := range map[string]any{
		"session/prompt":            promptOf(id, "again"),
		"_rind/session/continue":    map[string]any{"sessionId": id},
		"_rind/session/steer":       promptOf(id, "left"),
		"session/set_mode":          map[string]any{"sessionId": id, "modeId": "full"},
		"session/delete":            map[string]any{"sessionId": id},
		"_rind/session/follow_up":   promptOf(id, "then"),
		"session/set_config_option": map[string]any{"sessionId": id, "configId": "mode", "value": "full"},
	} {
		if l, _ := b.answer(b.ask(method, params)); l.Error == nil || l.Error.Code != -32050 {
			t.Errorf("%s beside a running turn: %s", method, l.raw)
		}
	}
	b.tell("session/cancel", map[string]any{"sessionId": id}) // of a prompt that is not its own
	b.call("session/list", map[string]any{})                  // read after it
	if marks(t, ws) != 0 {
		t.Fatal("it ran before anybody consented")
	}
	b.choose(askedB, "allow_once")
	l, after := a.answer(asked)
	if acpStop(l) != "end_turn" || acpSaid(after, "agent_message_chunk") != restSaid || !slices.ContainsFunc(after, func(l *acpLine) bool { return l.Method == "$/cancel_request" }) {
		t.Errorf("the prompt was answered %s, after %q", l.raw, acpSaid(after, "agent_message_chunk"))
	}
	rest := ""
	b.until("the rest", func(l *acpLine) bool {
		rest += acpSaid([]*acpLine{l}, "agent_message_chunk")
		return rest == restSaid
	})
	if n := marks(t, ws); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	var busy *acpLine
	testkit.Eventually(t, "the other lets go of the session, a moment after its answer", func() bool {
		busy, _ = b.answer(b.ask("session/prompt", promptOf(id, "again")))
		return busy.Error == nil || busy.Error.Code != -32050
	})
	if acpStop(busy) != "end_turn" {
		t.Errorf("once the other is idle: %s", busy.raw)
	}
	if said, _ := a.until("the other's turn", func(l *acpLine) bool { return acpSaid([]*acpLine{l}, "agent_message_chunk") == "Still here." }); said == nil {
		t.Error("the first editor was not told of it")
	}
	b.leave()
	a.leave()
}

// An editor's process is killed in the middle of an answer, again and again: what was shown is in the session that the next one loads, and the next
// prompt goes on with it.
func TestWhatAKilledACPProcessShowedIsLoadedByTheNext(t *testing.T) {
	t.Parallel()
	const rounds = 6
	var turns []string
	for i := range rounds {
		turns = append(turns, fmt.Sprintf(`{"match":"part %d.","steps":[{"reasoning":"thinking of %d","chunk":3,"delayMs":1},{"text":"This is what there is to say about part %d, piece by piece. ","chunk":3,"delayMs":2},{"hang":true}]}`, i, i, i))
	}
	root, ws := playing(t, `{"turns":[`+strings.Join(turns, ",")+`,{"match":"the end","steps":[{"text":"That was all."}]}]}`)
	e := openEditor(t, root, ws)
	id := e.newSession(ws)
	shown, prompts := "", ""
	for i := range rounds {
		text := fmt.Sprintf("part %d.", i)
		prompts += text
		e.ask("session/prompt", promptOf(id, text))
		pieces := 0
		_, told := e.until("some text", func(l *acpLine) bool {
			if l.Params.Update.SessionUpdate == "agent_message_chunk" {
				shown += l.Params.Update.text()
				pieces++
			}
			return pieces > i/2
		})
		if i > 0 && !slices.ContainsFunc(told, func(l *acpLine) bool { return strings.Contains(l.raw, "Turn failed") }) {
			t.Errorf("round %d: the turn that was cut off was not closed before the next", i)
		}
		e.Kill()
		e.Wait(acpPatience)
		for { // what was on its way was shown as well
			raw, err := e.ReadLine(acpPatience)
			if err != nil {
				break
			}
			if strings.HasSuffix(raw, "}") {
				if l := readACP(t, raw); l.Params.Update.SessionUpdate == "agent_message_chunk" {
					shown += l.Params.Update.text()
				}
			}
		}
		e = openEditor(t, root, ws)
		loaded, history := e.load(id, ws)
		if !strings.Contains(string(loaded.Result), `"status":"interrupted"`) {
			t.Errorf("round %d: the answer does not say that the turn was interrupted: %s", i, loaded.raw)
		}
		if said := acpSaid(history, "user_message_chunk"); said != prompts {
			t.Errorf("round %d: prompts %q", i, said)
		}
		said := acpSaid(history, "agent_message_chunk")
		if !strings.HasPrefix(said, shown) {
			t.Fatalf("round %d: shown was\n%q\nloaded is\n%q", i, shown, said)
		}
		shown = said // it was shown now
	}
	l, told := e.call("session/prompt", promptOf(id, "the end"))
	if acpStop(l) != "end_turn" || acpSaid(told, "agent_message_chunk") != "That was all." {
		t.Errorf("%s after %q", l.raw, acpSaid(told, "agent_message_chunk"))
	}
	e.leave()
}
