//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// stoppedScript has a turn for each moment in which its process may be stopped.
const stoppedScript = `{"turns":[
	{"match":"talk","steps":[{"text":"This is told in many small pieces, slowly, so that it can be stopped in the middle of the message. ","chunk":2,"delayMs":20}]},
	{"match":"speak","steps":[{"text":"This is told in many small pieces, slowly, and then it is waited for what lets the turn end. ","chunk":2,"delayMs":20},
		{"call":{"id":"c1","name":"bash","arguments":{"command":"until [ -e go ]; do sleep 0.05; done","yield_time_ms":60000}}},{"finish":"tool_calls"},{"text":"It is told."}]},
	{"match":"consent","steps":[{"text":"I leave a mark. "},{"call":{"id":"c1","name":"bash","arguments":{"command":"echo ran >> marks.txt"}}},{"finish":"tool_calls"},{"text":"It is made."}]},
	{"match":"tool","steps":[{"call":{"id":"c1","name":"bash","arguments":{"command":"until [ -e go ]; do sleep 0.05; done; echo ran >> marks.txt","yield_time_ms":60000}}},{"finish":"tool_calls"},{"text":"It is made."}]},
	{"match":"again","steps":[{"repeat":{"times":50,"steps":[{"text":"Still here."},{"finish":"stop"}]}}]}]}`

// stopProcess stops a process as Ctrl-Z does, and returns when it stands still.
func stopProcess(t *testing.T, w *watching) {
	t.Helper()
	if err := w.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	standsStill(t, w)
}

func standsStill(t *testing.T, w *watching) {
	t.Helper()
	for end := time.Now().Add(acpPatience); ; time.Sleep(5 * time.Millisecond) { // the state of a process rings no bell
		out, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(w.PID())).Output()
		if strings.HasPrefix(strings.TrimSpace(string(out)), "T") {
			return
		}
		if err != nil || time.Now().After(end) {
			t.Fatalf("the process does not stop: %q, %v", out, err)
		}
	}
}

func continued(t *testing.T, w *watching) {
	t.Helper()
	if err := w.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// outcomeOf is how a prompt ended.
func outcomeOf(l *wireLine) string {
	var r struct{ Outcome string }
	_ = json.Unmarshal(l.Result, &r)
	return r.Outcome + string(l.Error)
}

// refusedAs fails unless a request that was sent is refused with this type of error, within a time.
func refusedAs(t *testing.T, w *watching, kind protocol.ErrorKind, within time.Duration, method string, request int) {
	t.Helper()
	began := time.Now()
	l := w.reply(method, request)
	if took := time.Since(began); !strings.Contains(string(l.Error), `"type":"`+string(kind)+`"`) || took > within {
		t.Errorf("%s: %s %s, after %v", method, l.Result, l.Error, took)
	}
}

// The process that works in a session is stopped. Others still read all of it; what only its process can do is refused in bounded time, and leaves
// nothing behind. When it goes on, it goes on as if nothing had been.
func TestAStoppedOwnerKeepsItsSessionAndGoesOnAsIfNothingHadBeen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		input, at, heard, mode string
		marks                  int
	}{
		{"speak", "assistant_delta", "assistant_delta", "full", 0},
		{"consent", "approval_requested", "approval_requested", "ask", 1},
		{"tool", "tool_call_started", "tool_requested", "full", 1},
	} {
		t.Run(c.input, func(t *testing.T) {
			t.Parallel()
			root, ws := playing(t, stoppedScript)
			owner, id := beginning(t, root, ws)
			owner.call("rind/session/set_mode", map[string]any{"mode": c.mode})
			prompt := owner.ask("session/prompt", map[string]any{"input": c.input, "idempotency_key": "k"})
			owner.event(c.at)
			w, own := beginning(t, root, ws)
			w.call("session/subscribe", map[string]any{"session_id": id, "after_cursor": 0})
			w.event(c.heard)
			stopProcess(t, owner)
			write(t, filepath.Join(ws, "go"), "") // the turn cannot have ended before

			at := map[string]any{"session_id": id}
			with := func(more map[string]any) map[string]any {
				maps.Copy(more, at)
				return more
			}
			if l := w.call("session/list", map[string]any{}); !strings.Contains(string(l.Result), id) {
				t.Errorf("the list is %s", l.Result)
			}
			for cursor, event := range w.replayed(id) {
				if told, ok := ofSession(w, id)[cursor]; ok && told != event {
					t.Errorf("event %d was told as\n%s\nand is replayed as\n%s", cursor, told, event)
				}
			}
			const soon, patient = 5 * time.Second, 20 * time.Second // the owner has 5 s to take up a letter
			for method, params := range map[string]map[string]any{
				"session/prompt": {"input": "again"}, "session/delete": {}, "rind/session/set_mode": {"mode": "edit"}, "rind/session/steer": {"input": "x"},
				"rind/session/follow_up": {"input": "x"}, "rind/goal/set": {"objective": "x"}, "model/set": {"model": "scripted"},
			} {
				refusedAs(t, w, protocol.SessionBusy, soon, method, w.ask(method, with(params)))
			}
			refusedAs(t, w, protocol.SessionBusy, soon, "session/prompt", w.ask("session/prompt", with(map[string]any{"resume": true})))
			cancel := w.ask("session/cancel", with(map[string]any{}))
			action := ""
			if c.input == "consent" {
				_, approval := w.event("approval_requested")
				action = approval.Action
				answer := w.ask("rind/approval/respond", with(map[string]any{"action_id": action, "option_id": "allow_once"}))
				refusedAs(t, w, protocol.SessionBusy, patient, "rind/approval/respond", answer)
			}
			refusedAs(t, w, protocol.SessionBusy, patient, "session/cancel", cancel)
			key := w.ask("session/prompt", with(map[string]any{"input": c.input, "idempotency_key": "k"})) // waits for the end of the turn
			if l := w.call("session/prompt", map[string]any{"session_id": own, "input": "again"}); outcomeOf(l) != "completed" {
				t.Errorf("its own session: %s", l.Result)
			}

			continued(t, owner)
			if action != "" {
				w.call("rind/approval/respond", with(map[string]any{"action_id": action, "option_id": "allow_once"}))
			}
			for _, l := range []*wireLine{owner.reply("session/prompt", prompt), w.reply("session/prompt", key)} {
				if outcomeOf(l) != "completed" {
					t.Errorf("the turn ended %s", outcomeOf(l))
				}
			}
			ended, _ := owner.event("turn_completed")
			if n := marks(t, ws); n != c.marks {
				t.Errorf("the command ran %d times", n)
			}
			var next *wireLine
			testkit.Eventually(t, "the owner lets go of the session, a moment after its answer", func() bool {
				next = w.reply("session/prompt", w.ask("session/prompt", with(map[string]any{"input": "again"})))
				return !strings.Contains(string(next.Error), string(protocol.SessionBusy))
			})
			if outcomeOf(next) != "completed" {
				t.Errorf("the next prompt: %s", outcomeOf(next))
			}
			all := w.replayed(id)
			toldAlike(t, "the stopped process", owner.durable(), all, ended.Cursor)
			toldAlike(t, "the other", ofSession(w, id), all, ended.Cursor)
			kinds := map[string]int{}
			for _, event := range all {
				var e watchedEvent
				_ = json.Unmarshal([]byte(event), &e)
				kinds[e.Type]++
			}
			if kinds["turn_started"] != 2 || kinds["turn_completed"] != 2 || kinds["turn_cancelled"] != 0 || kinds["session_settings_changed"] > 1 {
				t.Errorf("what was refused left something behind: %v", kinds)
			}
			if n := openLetters(t, root, id); n != 0 {
				t.Errorf("%d letters are still open", n)
			}
		})
	}
}

// ofSession are the durable events that a process was told of one session.
func ofSession(w *watching, id string) map[session.Seq]string {
	told := map[session.Seq]string{}
	for _, l := range w.seen {
		if l.Kind == "event" && l.Durability == "durable" && l.Cursor > 0 && strings.Contains(string(l.Event), `"session_id":"`+id+`"`) {
			told[l.Cursor] = string(l.Event)
		}
	}
	return told
}

// toldAlike fails unless a process was told the events of a session up to a cursor as they are replayed.
func toldAlike(t *testing.T, who string, told, replayed map[session.Seq]string, upTo session.Seq) {
	t.Helper()
	for cursor, event := range replayed {
		if got, ok := told[cursor]; cursor <= upTo && got != event {
			t.Errorf("%s was told of event %d (%v)\n%s\nand it is replayed as\n%s", who, cursor, ok, got, event)
		}
	}
}

// openLetters is how much is asked of the owner of a session.
func openLetters(t *testing.T, root, id string) int {
	t.Helper()
	store, err := openStore(filepath.Join(root, "sessions", "rind.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	open, err := store.Open(t.Context(), session.SessionID(id))
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// A person answers in an editor that follows the session of a stopped process. The dialog is gone, so the answer is kept for as long as it takes.
func TestAnAnswerInAnEditorWaitsForAStoppedOwner(t *testing.T) {
	t.Parallel()
	root, ws := playing(t, stoppedScript)
	owner, id := beginning(t, root, ws)
	prompt := owner.ask("session/prompt", map[string]any{"input": "consent"})
	owner.event("approval_requested")
	e := openEditor(t, root, ws)
	e.load(id, ws)
	asked, _ := e.permission()
	stopProcess(t, owner)
	e.choose(asked, "allow_once")
	for _, want := range []int{1, 0} { // it is asked, and then no more: its time is over
		for end := time.Now().Add(acpPatience); openLetters(t, root, id) != want; time.Sleep(50 * time.Millisecond) { // a letter rings no bell here
			if time.Now().After(end) {
				t.Fatalf("%d letters are open, want %d", openLetters(t, root, id), want)
			}
		}
	}
	if n := marks(t, ws); n != 0 {
		t.Fatalf("the command ran %d times while its process stood still", n)
	}
	continued(t, owner)
	if l := owner.reply("session/prompt", prompt); outcomeOf(l) != "completed" || marks(t, ws) != 1 {
		t.Errorf("the turn ended %s; the command ran %d times", outcomeOf(l), marks(t, ws))
	}
	e.until("the rest of the answer", func(l *acpLine) bool { return strings.Contains(l.Params.Update.text(), "It is made.") })
	for _, l := range e.leave() {
		if l.Method == "session/request_permission" || l.Method == "$/cancel_request" {
			t.Errorf("behind its answer: %s", l.raw)
		}
	}
	if n := openLetters(t, root, id); n != 0 {
		t.Errorf("%d letters are still open", n)
	}
}

// The process is stopped in the middle of a write, with the store in its hands: nobody else can write, which is said in bounded time and as what it
// is; all of them read. When it goes on, the write is done, and so is theirs.
func TestAProcessStoppedInTheMiddleOfAWriteHoldsUpOnlyWriters(t *testing.T) {
	t.Parallel()
	root, ws := playing(t, stoppedScript)
	w, own := beginning(t, root, ws)
	w.call("session/prompt", map[string]any{"input": "again"})
	owner, id := beginning(t, root, ws, "RIND_TEST_KILL=stop-before-commit:8")
	prompt := owner.ask("session/prompt", map[string]any{"input": "talk"})
	standsStill(t, owner)

	if l := w.call("session/list", map[string]any{}); !strings.Contains(string(l.Result), id) {
		t.Errorf("the list is %s", l.Result)
	}
	before := w.replayed(id)
	if len(before) == 0 {
		t.Error("nothing of the session can be read")
	}
	const patient = 20 * time.Second // a write has 5 s
	asked := map[string]int{
		"session/prompt": w.ask("session/prompt", map[string]any{"session_id": own, "input": "again"}),
		"session/cancel": w.ask("session/cancel", map[string]any{"session_id": id}),
		"session/delete": w.ask("session/delete", map[string]any{"session_id": id}),
	}
	for method, request := range asked {
		refusedAs(t, w, protocol.PersistenceError, patient, method, request)
		if l := w.reply(method, request); !strings.Contains(string(l.Error), "locked by another process") {
			t.Errorf("%s: %s", method, l.Error)
		}
	}
	waits := w.ask("session/prompt", map[string]any{"session_id": own, "input": "again"}) // this one will not wait for so long
	continued(t, owner)
	for _, l := range []*wireLine{w.reply("session/prompt", waits), owner.reply("session/prompt", prompt)} {
		if outcomeOf(l) != "completed" {
			t.Errorf("behind the write: %s", outcomeOf(l))
		}
	}
	ended, _ := owner.event("turn_completed")
	all := w.replayed(id)
	toldAlike(t, "the stopped process", owner.durable(), all, ended.Cursor)
	for cursor, event := range before {
		if all[cursor] != event {
			t.Errorf("event %d was\n%s\nand is\n%s", cursor, event, all[cursor])
		}
	}
	if n := openLetters(t, root, id); n != 0 {
		t.Errorf("%d letters are still open", n)
	}
}
