//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/session"
)

// askingScript says something piece by piece, calls a command that leaves a mark each time it runs, and says the rest.
const askingScript = `{"turns":[
	{"match":"work","steps":[{"text":"I will leave a mark, said in many small pieces so that somebody can join in the middle. ","chunk":3,"delayMs":30},
		{"call":{"id":"c1","name":"bash","arguments":{"command":"echo ran >> marks.txt"}}},{"finish":"tool_calls"},
		{"expect":{"role":"tool"}},{"text":"The mark is made, and this is the rest of the answer.","chunk":5,"delayMs":5}]},
	{"match":"again","steps":[{"text":"Still here."}]}]}`

const (
	askedSaid = "I will leave a mark, said in many small pieces so that somebody can join in the middle. "
	restSaid  = "The mark is made, and this is the rest of the answer."
)

// watching is a rind v2 client of a process of its own.
type watching struct {
	*testkit.Process
	t    *testing.T
	next int
	seen []wireLine
}

// watchedFrom starts rind app-server and follows a session from the beginning.
func watchedFrom(t *testing.T, root, ws, id string) *watching {
	t.Helper()
	w, _ := beginning(t, root, ws)
	w.call("session/subscribe", map[string]any{"session_id": id, "after_cursor": 0})
	return w
}

// beginning starts rind app-server; session is the one it begins with.
func beginning(t *testing.T, root, ws string, env ...string) (w *watching, session string) {
	t.Helper()
	w = &watching{Process: launched(t, root, ws, env, "app-server"), t: t}
	var begun struct {
		ID string `json:"session_id"`
	}
	l := w.call("initialize", map[string]any{"client_capabilities": []string{"rind/approvals"}})
	if err := json.Unmarshal(l.Result, &begun); err != nil {
		t.Fatal(err)
	}
	return w, begun.ID
}

func (w *watching) until(what string, match func(l *wireLine) bool) *wireLine {
	w.t.Helper()
	end := time.Now().Add(acpPatience)
	for {
		raw, err := w.ReadLine(time.Until(end))
		if err != nil {
			var seen []string
			for _, l := range w.seen {
				seen = append(seen, fmt.Sprintf("%s %v %s %.120s", l.Kind, l.Cursor, eventOf(&l).Type, l.Result))
			}
			w.t.Fatalf("%s: %v; seen:\n%s\nstandard error: %s", what, err, strings.Join(seen, "\n"), w.Stderr())
		}
		var l wireLine
		if err := json.Unmarshal([]byte(raw), &l); err != nil {
			w.t.Fatalf("%s: %v", raw, err)
		}
		w.seen = append(w.seen, l)
		if match(&l) {
			return &l
		}
	}
}

func (w *watching) call(method string, params map[string]any) *wireLine {
	w.t.Helper()
	l := w.reply(method, w.ask(method, params))
	if l.Error != nil {
		w.t.Fatalf("%s: %s", method, l.Error)
	}
	return l
}

// ask sends a request and returns its id.
func (w *watching) ask(method string, params map[string]any) int {
	w.t.Helper()
	w.next++
	id := w.next
	line, err := json.Marshal(map[string]any{"kind": "request", "request_id": id, "method": method, "params": params})
	if err == nil {
		err = w.WriteLine(string(line))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// reply is the answer to a request: one that came already, or the next that comes.
func (w *watching) reply(method string, id int) *wireLine {
	w.t.Helper()
	is := func(l *wireLine) bool { return l.Kind == "response" && l.RequestID == id }
	for i := range w.seen {
		if is(&w.seen[i]) {
			return &w.seen[i]
		}
	}
	return w.until(method, is)
}

// watchedEvent is the part of an event that the tests look at.
type watchedEvent struct {
	Type, Text, Content string
	Action              string `json:"action_id"`
	Call                string `json:"tool_call_id"`
	Status              string
	Turn                session.TurnID `json:"turn_id"`
}

func eventOf(l *wireLine) (e watchedEvent) {
	_ = json.Unmarshal(l.Event, &e)
	return e
}

// event is the first event of a kind: one it was told already, since answers may be overtaken, or the next that comes.
func (w *watching) event(kind string) (*wireLine, watchedEvent) {
	w.t.Helper()
	is := func(l *wireLine) bool { return eventOf(l).Type == kind }
	for i := range w.seen {
		if is(&w.seen[i]) {
			return &w.seen[i], eventOf(&w.seen[i])
		}
	}
	l := w.until("event "+kind, is)
	return l, eventOf(l)
}

// text adds up what was streamed to the watcher, and messages are the whole ones it was told.
func (w *watching) text() (streamed string, messages []string) {
	for i := range w.seen {
		switch e := eventOf(&w.seen[i]); e.Type {
		case "assistant_delta":
			streamed += e.Text
		case "assistant_message_completed":
			messages = append(messages, e.Content)
		}
	}
	return streamed, messages
}

// durable are the durable events it was told, by cursor.
func (w *watching) durable() map[session.Seq]string {
	told := map[session.Seq]string{}
	for _, l := range w.seen {
		if l.Kind == "event" && l.Durability == "durable" && l.Cursor > 0 {
			told[l.Cursor] = string(l.Event)
		}
	}
	return told
}

// replayed are the durable events of a session as replay tells them.
func (w *watching) replayed(id string) map[session.Seq]string {
	w.t.Helper()
	events, after := map[session.Seq]string{}, session.Seq(0)
	for {
		var page struct {
			Events []wireLine  `json:"events"`
			Cursor session.Seq `json:"cursor"`
			More   bool        `json:"has_more"`
		}
		l := w.call("session/replay", map[string]any{"session_id": id, "after_cursor": after, "limit": 3})
		if err := json.Unmarshal(l.Result, &page); err != nil {
			w.t.Fatal(err)
		}
		for _, e := range page.Events {
			events[e.Cursor] = string(e.Event)
		}
		if after = page.Cursor; !page.More {
			return events
		}
	}
}

// marks is how often the command has run.
func marks(t *testing.T, ws string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(ws, "marks.txt"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "ran\n")
}

// A turn that an editor asked for over ACP is followed over rind v2 from another process while it runs, and what it asks is answered there;
// the rest is told to both, and both tell the same.
func TestAnACPTurnIsFollowedAndAnsweredFromAnotherProcess(t *testing.T) {
	t.Parallel()
	root, ws := playing(t, askingScript)
	e := openEditor(t, root, ws)
	id := e.newSession(ws)
	asked := e.ask("session/prompt", promptOf(id, "work"))
	first, _ := e.until("the first piece of text", func(l *acpLine) bool { return l.Params.Update.SessionUpdate == "agent_message_chunk" })

	w := watchedFrom(t, root, ws, id) // in the middle of the message
	_, approval := w.event("approval_requested")
	permission, before := e.permission()
	if permission.Params.ToolCall.ToolCallID != approval.Call || approval.Call != "c1" {
		t.Errorf("asked about %s here and %s there", permission.Params.ToolCall.ToolCallID, approval.Call)
	}
	if marks(t, ws) != 0 {
		t.Fatal("it ran before anybody consented")
	}
	w.call("rind/approval/respond", map[string]any{"session_id": id, "action_id": approval.Action, "option_id": "allow_once"})
	w.event("approval_resolved")
	ended, _ := w.event("turn_completed")

	answer, after := e.answer(asked)
	if acpStop(answer) != "end_turn" {
		t.Errorf("the prompt was answered %s", answer.raw)
	}
	all := append(append([]*acpLine{first}, before...), after...)
	withdrawn := slices.ContainsFunc(after, func(l *acpLine) bool { return l.Method == "$/cancel_request" })
	if !withdrawn {
		t.Error("the editor's dialog was not withdrawn")
	}
	if statuses := acpStatuses(all, "c1"); !slices.Equal(statuses, []string{"pending", "in_progress", "completed"}) {
		t.Errorf("the call went %v", statuses)
	}
	said := acpSaid(all, "agent_message_chunk")
	streamed, messages := w.text()
	if said != askedSaid+restSaid || streamed != said || strings.Join(messages, "") != said {
		t.Errorf("the editor was told\n%q\nthe other process\n%q\nas messages\n%q", said, streamed, messages)
	}
	if n := marks(t, ws); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	var meta struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	var cursor string
	if json.Unmarshal(answer.Result, &meta) != nil || json.Unmarshal(meta.Meta["rind/cursor"], &cursor) != nil || cursor != fmt.Sprint(ended.Cursor) {
		t.Errorf("the turn ended at %s here and at %v there", cursor, ended.Cursor)
	}
	live, again := w.durable(), w.replayed(id)
	for at, event := range again {
		if live[at] != event {
			t.Errorf("event %v was told as\n%s\nand is replayed as\n%s", at, live[at], event)
		}
	}
	if len(again) == 0 || len(live) != len(again) {
		t.Errorf("%d events told live, %d replayed", len(live), len(again))
	}
	if left := e.leave(); len(left) > 0 {
		t.Errorf("behind the answer: %s", left[0].raw)
	}
}

// acpStatuses are the statuses a call was told to have, one after the other.
func acpStatuses(lines []*acpLine, call string) []string {
	var all []string
	for _, l := range lines {
		if u := l.Params.Update; u.ToolCallID == call && u.Status != "" && (len(all) == 0 || all[len(all)-1] != u.Status) {
			all = append(all, u.Status)
		}
	}
	return all
}

// The process that asked dies with its question open. The next one that loads the session asks it again, under the same id and with the same
// options; the answer, from there or from a third process, goes on with the turn, and the tool runs once.
func TestAQuestionOfAKilledACPProcessIsAskedAgainAndTheToolRunsOnce(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{false, true} {
		t.Run(map[bool]string{false: "answered in the editor", true: "answered in another process"}[elsewhere], func(t *testing.T) {
			t.Parallel()
			root, ws := playing(t, askingScript)
			e := openEditor(t, root, ws)
			id := e.newSession(ws)
			e.ask("session/prompt", promptOf(id, "work"))
			first, told := e.permission()
			e.Kill()
			e.Wait(acpPatience)

			e = openEditor(t, root, ws)
			loaded, history := e.load(id, ws)
			if !strings.Contains(string(loaded.Result), `"status":"waiting"`) {
				t.Errorf("the answer does not say that a turn waits: %s", loaded.raw)
			}
			if said := acpSaid(history, "agent_message_chunk"); said != askedSaid || acpSaid(told, "agent_message_chunk") != askedSaid {
				t.Errorf("the history tells %q", said)
			}
			if statuses := acpStatuses(history, "c1"); !slices.Equal(statuses, []string{"pending"}) {
				t.Errorf("the history has the call %v", statuses)
			}
			if slices.ContainsFunc(history, func(l *acpLine) bool { return l.Method == "session/request_permission" }) {
				t.Error("it asked before the answer to load")
			}
			again, _ := e.permission()
			if again.Params.ToolCall.ToolCallID != first.Params.ToolCall.ToolCallID || !slices.Equal(again.Params.Options, first.Params.Options) {
				t.Errorf("asked again differently:\n%s\n%s", first.raw, again.raw)
			}
			if marks(t, ws) != 0 {
				t.Fatal("it ran before anybody consented")
			}
			if elsewhere {
				w := watchedFrom(t, root, ws, id)
				_, approval := w.event("approval_requested")
				w.call("rind/approval/respond", map[string]any{"session_id": id, "action_id": approval.Action, "option_id": "allow_once"})
				defer w.event("turn_completed")
			} else {
				e.choose(again, "allow_once")
			}
			rest := ""
			_, told = e.until("the rest of the answer", func(l *acpLine) bool {
				rest += acpSaid([]*acpLine{l}, "agent_message_chunk")
				return rest == restSaid
			})
			if statuses := acpStatuses(told, "c1"); !slices.Equal(statuses, []string{"in_progress", "completed"}) {
				t.Errorf("the call went on %v", statuses)
			}
			if n := marks(t, ws); n != 1 {
				t.Errorf("the command ran %d times", n)
			}
			if elsewhere {
				return // the turn is the other process's: until its end is stored, this one may not prompt
			}
			l, _ := e.call("session/prompt", promptOf(id, "again"))
			if acpStop(l) != "end_turn" {
				t.Errorf("the next prompt was answered %s", l.raw)
			}
			e.leave()
		})
	}
}
