package acpagent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

func TestTheAgentsOwnOptionsAreAskedAndTheAnswerIsItsOwn(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	for option, want := range map[string]string{"yes": `"optionId":"yes"`, "ever": `"optionId":"ever"`, "no": `"optionId":"no"`} {
		ch := h.ask(s, "ask")
		a := h.action(s)
		if len(a.Approval.Options) != 3 || a.Approval.Options[2] != (protocol.Option{ID: "no", Label: "Leave it", Kind: "reject_once"}) || a.Title != "Run it" {
			t.Fatalf("%+v", a.Approval)
		}
		h.resolve(s, a.ID, option)
		if o := h.await(ch); !strings.Contains(o.Answer, want) {
			t.Errorf("%s: %s", option, o.Answer)
		}
	}
}

func TestAWordThatIsNoOptionRejects(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	ch := h.ask(s, "ask")
	a := h.action(s)
	done := make(chan error, 1)
	s.AnswerQuestion(a.CallID, "what?", func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if o := h.await(ch); !strings.Contains(o.Answer, `"optionId":"no"`) {
		t.Errorf("%s", o.Answer)
	}
}

func TestTheModeAnswersForThePersonWithoutARecord(t *testing.T) {
	for mode, want := range map[string]string{"full": `"optionId":"yes"`, "read": `"optionId":"no"`} {
		h := open(t, memory.New(), "plain")
		s := h.draft(mode)
		if o := h.prompt(s, "ask"); !strings.Contains(o.Answer, want) {
			t.Errorf("%s: %s", mode, o.Answer)
		}
		if asked := find[*protocol.ApprovalRequested](h, s.ID); len(asked) > 0 {
			t.Errorf("%s: %+v", mode, asked[0])
		}
	}
}

func TestACancelAnswersTheAgentsRequestAsCancelled(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	ch := h.ask(s, "ask hang")
	h.action(s)
	s.Cancel(session.CancelRequest{}, func(error) {})
	o := h.await(ch)
	if o.Outcome != session.OutcomeCancelled {
		t.Fatalf("%+v", o)
	}
	var said string
	for _, m := range find[*protocol.AssistantMessageCompleted](h, s.ID) {
		said += m.Content
	}
	if !strings.Contains(said, `"outcome":"cancelled"`) {
		t.Errorf("%q", said)
	}
	r := find[*protocol.ApprovalResolved](h, s.ID)
	if len(r) != 1 || r[0].Outcome != protocol.OutcomeCancelled {
		t.Errorf("%+v", r)
	}
}

func TestAHostedTurnThatAsksEndsWithItsProcessAndDoesNotWait(t *testing.T) {
	store := memory.New()
	h := open(t, store, "plain")
	s := h.draft("ask")
	ch := h.ask(s, "ask")
	h.action(s)
	h.close()
	if o := h.await(ch); o.Outcome != session.OutcomeCancelled || o.Stop != "shutdown" {
		t.Errorf("%+v", o)
	}
}

func TestAWriteThatNoConsentCoversAsksAndTellsWhatChanged(t *testing.T) {
	h := open(t, memory.New(), "plain")
	at := filepath.Join(h.dir, "new.txt")
	s := h.draft("ask")
	ch := h.ask(s, "write="+at)
	a := h.action(s)
	if a.Tool != "write_file" {
		t.Errorf("%+v", a)
	}
	h.resolve(s, a.ID, "reject_once")
	if o := h.await(ch); !strings.Contains(o.Answer, `"reason":"rejected"`) {
		t.Errorf("%s", o.Answer)
	}
	if _, err := os.Stat(at); err == nil {
		t.Fatal("it was written all the same")
	}
	ch = h.ask(s, "write="+at)
	h.resolve(s, h.action(s).ID, "allow_once")
	h.await(ch)
	if data, err := os.ReadFile(at); err != nil || string(data) != "written\n" {
		t.Errorf("%q %v", data, err)
	}
	ch2 := find[*protocol.FileChange](h, s.ID)
	if len(ch2) != 1 || !ch2[0].More.Created || !ch2[0].More.First {
		t.Errorf("%+v", ch2)
	}
}

func TestACommandRunsThroughUsAndItsOutputIsKept(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	ch := h.ask(s, "run")
	a := h.action(s)
	if a.Tool != "bash" || !strings.Contains(string(a.Approval.Arguments), "echo from terminal") {
		t.Errorf("%+v", a.Approval)
	}
	h.resolve(s, a.ID, "allow_once")
	o := h.await(ch)
	for _, want := range []string{`"exitCode":0`, `from terminal\n`, `-32002`} {
		if !strings.Contains(o.Answer, want) {
			t.Errorf("%s is not in %s", want, o.Answer)
		}
	}
	r := find[*protocol.ToolResult](h, s.ID)
	if len(r) != 1 || r[0].Status != protocol.ToolCompleted || !strings.Contains(r[0].Result, "from terminal") {
		t.Errorf("%+v", r)
	}
}

func TestAFormIsAQuestionToThePerson(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	ch := h.ask(s, "form")
	a := h.action(s)
	if !a.Question || a.Title != "Which one?" || len(a.Choices) != 2 {
		t.Fatalf("%+v", a)
	}
	done := make(chan error, 1)
	s.AnswerQuestion(a.CallID, "The second", func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if o := h.await(ch); !strings.Contains(o.Answer, `"action":"accept"`) || !strings.Contains(o.Answer, `"pick":"b"`) {
		t.Errorf("%s", o.Answer)
	}
}

func TestNobodyToAskRejectsAndDeclines(t *testing.T) {
	h := open(t, memory.New(), "plain", func(c *Config) { c.Unattended = true })
	s := h.draft("ask")
	h.prompt(s, "ask form write="+filepath.Join(h.dir, "x"))
	var said string
	for _, m := range find[*protocol.AssistantMessageCompleted](h, s.ID) {
		said += m.Content
	}
	for _, want := range []string{`"optionId":"no"`, `"action":"decline"`, `nobody can be asked`} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is not in %s", want, said)
		}
	}
}

func TestConsentToOneDeedIsNoneToAnother(t *testing.T) {
	h := open(t, memory.New(), "plain")
	at := filepath.Join(h.dir, "new.txt")
	s := h.draft("ask")
	ch := h.ask(s, `update={"sessionUpdate":"tool_call","toolCallId":"1","title":"Something","kind":"other","status":"in_progress"} run run write=`+at)
	for _, want := range []string{"bash", "write_file"} { // the same command is not asked twice
		a := h.action(s)
		if a.Approval.ToolName != want {
			t.Fatalf("asked for %s, want %s", a.Approval.ToolName, want)
		}
		h.resolve(s, a.ID, "allow_once")
	}
	if o := h.await(ch); o.Outcome != session.OutcomeCompleted {
		t.Errorf("%+v", o)
	}
	if n := len(find[*protocol.ApprovalRequested](h, s.ID)); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestARequestShowsWhatTheCallWouldChange(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	long := strings.Repeat("x", 300<<10)
	ch := h.ask(s, `update={"sessionUpdate":"tool_call","toolCallId":"p1","title":"T","kind":"edit","status":"pending","locations":[{"path":"/w/a","line":3},{"path":"b"}],"content":[`+
		`{"type":"diff","path":"/w/a","oldText":"old","newText":"new"},{"type":"diff","path":"/w/long","newText":"`+long+`"},{"type":"content","content":{"type":"text","text":"why"}},{"type":"terminal","terminalId":"none"}]} ask`)
	a := h.action(s)
	v := a.Approval.More.View
	if v == nil || len(v.Diffs) != 1 || v.Diffs[0].Path != "/w/a" || *v.Diffs[0].Old != "old" || v.Diffs[0].New != "new" || v.Kind != "execute" {
		t.Fatalf("%+v", v)
	}
	if v.Text != "/w/long: a change that cannot be shown here\nwhy" || len(v.Places) != 2 || v.Places[0] != (protocol.Place{Path: "/w/a", Line: 3}) || v.Places[1].Path != "/w/long" {
		t.Errorf("%q %+v", v.Text, v.Places)
	}
	h.resolve(s, a.ID, "no")
	h.await(ch)
}

func TestACallThatWasRefusedSaysSo(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	ch := h.ask(s, `ask update={"sessionUpdate":"tool_call_update","toolCallId":"p1","status":"failed"}`)
	h.resolve(s, h.action(s).ID, "no")
	h.await(ch)
	if r := find[*protocol.ToolResult](h, s.ID); len(r) != 1 || r[0].Status != protocol.ToolFailed || !strings.Contains(r[0].Result, "The user rejected this.") {
		t.Errorf("%+v", r)
	}
}

// Requests are put to the person one by one in the order they came; beyond 16 without an answer they are answered as cancelled.
func TestRequestsForConsentAreAskedInTheirOrderAndNoMoreThanSixteenWait(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	ch := h.ask(s, "asks=20")
	h.until(s, "requests", func(v *session.View) bool { return v.Serial != nil && len(v.Serial.Text) > 0 }) // all of them were read
	for i := range maxAsked {
		var a *session.Action
		h.until(s, "the next action", func(v *session.View) bool {
			if v.Serial == nil || len(v.Serial.Actions) == 0 || v.Serial.Actions[0].Approval.Title != fmt.Sprint("Number ", i) {
				return false
			}
			c := *v.Serial.Actions[0]
			a = &c
			return len(v.Serial.Actions) == 1
		})
		h.resolve(s, a.ID, "yes")
	}
	h.await(ch)
	said := saidIn(h, s.ID)
	if strings.Count(said, `"optionId":"yes"`) != maxAsked || strings.Count(said, `"outcome":"cancelled"`) != 4 || strings.Index(said, "cancelled") < strings.LastIndex(said, "yes") {
		t.Errorf("%s", said)
	}
}

// What a child takes back is asked nobody any more: the dialog is closed, and the next in line is.
func TestARequestThatTheAgentTakesBackIsClosed(t *testing.T) {
	h := open(t, memory.New(), "plain")
	at := filepath.Join(h.dir, "never")
	s := h.draft("ask")
	ch := h.ask(s, "withdraw="+at)
	h.action(s)
	put(t, filepath.Join(h.dir, "asked"), "")
	if o := h.await(ch); o.Outcome != session.OutcomeCompleted || !strings.Contains(o.Answer, `"outcome":"cancelled"`) || !strings.Contains(o.Answer, `"code":-32800`) {
		t.Errorf("%+v", o)
	}
	asked, resolved := find[*protocol.ApprovalRequested](h, s.ID), find[*protocol.ApprovalResolved](h, s.ID)
	if len(asked) != len(resolved) || len(asked) == 0 {
		t.Errorf("%d asked, %d resolved", len(asked), len(resolved))
	}
	if _, err := os.Stat(at); err == nil {
		t.Error("it was written all the same")
	}
}

func TestAnAnswerBecomesWhatTheFormWants(t *testing.T) {
	for _, c := range []struct{ field, answer, want string }{ // "" for what does not fit
		{`{"type":"string"}`, " blue ", `"blue"`},
		{`{}`, "blue", `"blue"`},
		{`{"type":"string"}`, " ", ""},
		{`{"type":"integer"}`, "7", "7"},
		{`{"type":"integer"}`, "seven", ""},
		{`{"type":"number"}`, "1.5", "1.5"},
		{`{"type":"boolean"}`, "yes", "true"},
		{`{"type":"boolean"}`, "No", "false"},
		{`{"type":"boolean"}`, "maybe", ""},
		{`{"type":"string","enum":["a","b"]}`, "B", `"b"`},
		{`{"type":"integer","enum":[1,2]}`, "2", "2"},
		{`{"type":"string","enum":["a"]}`, "c", ""},
		{`{"oneOf":[{"const":"x","title":"The first"},{"const":"y"}]}`, "the first", `"x"`},
		{`{"oneOf":[{"const":"x","title":"The first"},{"const":"y"}]}`, "y", `"y"`},
		{`{"type":"array"}`, "x", ""},
	} {
		var f field
		if err := json.Unmarshal([]byte(c.field), &f); err != nil {
			t.Fatal(err)
		}
		got := ""
		if v, fits := f.value(c.answer); fits {
			got = string(protocol.MustMarshal(v))
		}
		if got != c.want {
			t.Errorf("%s: %q became %s, want %s", c.field, c.answer, got, c.want)
		}
	}
}
