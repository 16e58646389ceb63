package rindv2_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
)

// A new kind fails here until told.go says what is told of it.
func TestEveryKindOfEntryIsToldAsTheCatalogueSays(t *testing.T) {
	for k := range protocol.Catalogue {
		kind := protocol.Kind(k)
		if !kind.Known() {
			continue
		}
		info := kind.Info()
		name, told, mapped := rindv2.ToldOf(kind)
		switch {
		case !mapped:
			t.Errorf("%s has no row", kind)
			continue
		case told != info.Told:
			t.Errorf("%s is told as %d, the catalogue says %d", kind, told, info.Told)
		case told != protocol.NotTold && name != info.Name:
			t.Errorf("%s is told as %q", kind, name)
		case told == protocol.NotTold && name != "":
			t.Errorf("%s is not told, and named %q", kind, name)
		}
		body := info.New()
		e := entry(t, 41, "91", body)
		env, ok := rindv2.EnvelopeOf("s1", &e)
		if ok != (info.Told != protocol.NotTold) {
			t.Errorf("%s: told %v", kind, ok)
			continue
		}
		cursor, task := protocol.Seq(0), protocol.Seq(0)
		switch info.Told {
		case protocol.Durable:
			cursor = 41
		case protocol.DurableTask:
			task = 41
		}
		if env.Cursor != cursor || env.TaskCursor != task || env.Durable != (cursor+task > 0) || string(env.Event) != string(e.Event) {
			t.Errorf("%s: %+v", kind, env)
		}
		turn := protocol.TurnID("5e")
		if info.Told == protocol.DurableTask {
			turn = "" // as its event says, wherever the entry lies
		}
		if ok && (env.Session != "s1" || env.Turn != turn) {
			t.Errorf("%s: told of %s, %s", kind, env.Session, env.Turn)
		}
	}
}

func TestTheTableOfEventsIsTheContracts(t *testing.T) {
	doc, err := os.ReadFile("../../docs/protocol/rind-v2.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "\n| type | | own fields |")
	table, _, _ = strings.Cut(table, "\n\n")
	contract := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([a-z_ /]+?)(?: \(ours\))? \| (D T|D|I)`).FindAllStringSubmatch(table, -1) {
		for i, name := range strings.Split(m[1], " / ") {
			if i > 0 && strings.HasPrefix(name, "_") {
				name = "tool_input" + name
			}
			contract[name] = m[2]
		}
	}
	if len(contract) < 30 {
		t.Fatalf("only %d events found", len(contract))
	}
	letters := map[protocol.Durability]string{protocol.Durable: "D", protocol.DurableTask: "D T", protocol.Incremental: "I"}
	for k := range protocol.Catalogue {
		name, told, _ := rindv2.ToldOf(protocol.Kind(k))
		if told == protocol.NotTold {
			continue
		}
		if contract[name] != letters[told] {
			t.Errorf("%s is told as %s, the contract says %q", name, letters[told], contract[name])
		}
		delete(contract, name)
	}
	for name := range contract {
		if _, loose := rindv2.Loose[name]; !loose {
			t.Errorf("nobody tells %s", name)
		}
	}
}

func TestWhatIsNotForThisDialectIsNotTold(t *testing.T) {
	var hidden protocol.ReasoningCompleted
	hidden.More.Hidden, hidden.More.Text = true, "secret"
	e := entry(t, 1, "a", &hidden)
	newer := protocol.Entry{Seq: 2, Kind: 250, Event: json.RawMessage(`{"type":"x"}`)}
	for _, e := range []protocol.Entry{e, newer, {Seq: 3}} {
		if env, ok := rindv2.EnvelopeOf("s1", &e); ok || env.Event != nil {
			t.Errorf("%s is told as %s", e.Kind, env.Event)
		}
		if line, ok := rindv2.Replayed("s1", &e); ok || line != nil {
			t.Errorf("%s is replayed as %s", e.Kind, line)
		}
	}
}

func approval(t testing.TB) protocol.Entry {
	a := protocol.ApprovalRequested{
		ActionID: "c3", ToolCallID: "call_9", ToolName: "bash", Title: "Run: npm publish", Arguments: json.RawMessage(`{"command":"npm publish"}`),
		Options: []protocol.Option{{ID: "allow_once", Label: "Allow once", Kind: "allow_once"}, {ID: "reject_once", Label: "Reject once", Kind: "reject_once"}},
	}
	a.More.QuestionEventID = "77"
	return entry(t, 9, "91", &a)
}

func TestANoticeIsToldToClientsThatShowNotices(t *testing.T) {
	note := entry(t, 9, "91", &protocol.Notice{Severity: "warning", Title: "The server is down."})
	for shows, want := range map[bool]int{false: 0, true: 1} {
		teller := rindv2.Teller{Session: "s1", Notices: shows}
		if got := teller.Tell(nil, []protocol.Entry{note}, false); len(got) != want {
			t.Errorf("shows notices: %v, told %+v", shows, got)
		}
	}
}

func TestAnApprovalIsAQuestionForClientsThatDoNotKnowApprovals(t *testing.T) {
	entries := []protocol.Entry{approval(t)}
	knows := rindv2.Teller{Session: "s1", Approvals: true}
	if got := knows.Tell(nil, entries, false); len(got) != 1 || got[0].Cursor != 9 {
		t.Fatalf("who knows approvals is told %+v", got)
	}
	older := rindv2.Teller{Session: "s1"}
	got := older.Tell(nil, entries, true)
	if len(got) != 2 || got[0].Cursor != 9 {
		t.Fatalf("who does not is told %+v", got)
	}
	got[1].Sequence = 8
	const want = `{"kind":"event","method":"session/update","sequence":8,"durability":"incremental","session_id":"s1","turn_id":"5e","event":` +
		`{"type":"user_question_requested","ts":"2026-01-02T10:15:04.120000+00:00","event_id":"77","session_id":"s1","turn_id":"5e",` +
		`"tool_call_id":"call_9","question":"Run: npm publish","options":[{"label":"Allow once","description":""},{"label":"Reject once","description":""}]}}`
	if line := rindv2.AppendEvent(nil, rindv2.Rind, &got[1]); string(line) != want {
		t.Errorf("got  %s\nwant %s", line, want)
	}
	damaged := entries[0]
	damaged.Event = json.RawMessage(`{"options":7}`)
	if _, ok := rindv2.Question("s1", &damaged); ok {
		t.Error("a damaged entry became a question")
	}
	other := entry(t, 1, "a", &protocol.TurnCancelled{})
	if _, ok := rindv2.Question("s1", &other); ok {
		t.Error("a cancelled turn became a question")
	}
}

func TestAReplayedLineEqualsTheLiveOneButForItsSequence(t *testing.T) {
	e := entry(t, 41, "91", &protocol.TurnCompleted{DurationMS: 4120})
	env, _ := rindv2.EnvelopeOf("s1", &e)
	env.Sequence = 12
	live := rindv2.AppendEvent(nil, rindv2.Rind, &env)
	replayed, ok := rindv2.Replayed("s1", &e)
	if want := strings.Replace(string(live), `"sequence":12,`, `"sequence":41,`, 1); !ok || string(replayed) != want || want == string(live) {
		t.Errorf("live     %s\nreplayed %s", live, replayed)
	}
}
